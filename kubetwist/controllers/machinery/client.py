"""How controllers write: as themselves, through admission and all rules, without HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ...api.errors import APIStatusError
from ...api.frozen import thawed
from ...api.mergepatch import merge_patch
from ...api.options import CreateOptions, DeleteOptions, PatchOptions, UpdateOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject, UserInfo
from ...api.times import now
from ...registry.certificates.subresources import approval_rules
from ...registry.core.namespace.store import finalize_rules
from ...registry.generic.codec import Codec
from ...registry.generic.fieldmanager.manager import built_in_field_manager
from ...registry.generic.parts import status_rules
from ...registry.generic.store import Store
from ...registry.generic.updates import UpdateRules, other_uid

if TYPE_CHECKING:
    from ...registry.assembly import ResourceRegistry
    from ...registry.stores import Stores

#: Who owns the fields that controllers write, as in the reference.
DEFAULT_FIELD_MANAGER: Final = "kube-controller-manager"
_RULES: Final[dict[str, Callable[[Store], UpdateRules]]] = {
    "status": status_rules,
    "approval": approval_rules,
    "finalize": finalize_rules,
}


def controller_user(service_account: str) -> UserInfo:
    """
    Who a controller is: a service account in C{kube-system}, for which the built-in roles are.

    @param service_account: The name of the account, or of one of the system's own users.
    """
    if service_account.startswith("system:"):
        return UserInfo(service_account, groups=("system:authenticated",))
    return UserInfo(
        f"system:serviceaccount:kube-system:{service_account}",
        groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
    )


def is_namespace_terminating_error(error: APIStatusError) -> bool:
    """Whether something can not be made because its namespace is on its way out: then it need not be tried again."""
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


class ClientContext(Protocol):
    """The stores that a client writes to; L{kubetwist.controllers.machinery.context.ControllerContext} provides it."""

    @property
    def registry(self) -> ResourceRegistry:
        """The stores of the server, and what they share."""

    @property
    def stores(self) -> Stores:
        """The stores of the server."""

    async def store(self, group: str, resource: str, /) -> Store:
        """
        Return the store of a resource, custom ones included.

        @raise APIStatusError: There is no such resource (404).
        """


class Client:
    """
    Writes to the stores.

    Objects are in the version that is stored, and need neither C{kind} nor C{apiVersion}. All methods raise an
    L{APIStatusError} as a request would be answered with it: 404, 409 (C{AlreadyExists} or C{Conflict}), 422, 403.

    @ivar user: Whom admission and audit see.
    """

    def __init__(self, context: ClientContext, user: UserInfo, field_manager: str = DEFAULT_FIELD_MANAGER) -> None:
        self._context = context
        self.user = user
        self.field_manager = field_manager

    def _scope(self, namespace: str) -> RequestScope:
        return RequestScope(namespace, self.user, user_agent=DEFAULT_FIELD_MANAGER)

    def get(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """A copy of an object as it is now, to be changed at will; L{None} where there is none."""
        return self._context.stores.lookup(group, resource, namespace, name)

    async def create(self, group: str, resource: str, obj: JSONObject) -> Record:
        """
        Make an object.

        @param obj: Is not changed; its metadata says the namespace, and C{name} or C{generateName}.
        @return: What was made.
        """
        store = await self._context.store(group, resource)
        made = thawed(obj)
        store.strategy.default(made)
        store.update_managed_fields(None, made, "", self.field_manager)
        scope = self._scope(made["metadata"].get("namespace", ""))
        result: Record = await store.create(scope, made, CreateOptions(field_manager=self.field_manager))
        return result

    async def update(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        change: Callable[[JSONObject], JSONObject | None],
        *,
        subresource: str = "",
        uid: str = "",
        revision: int = 0,
    ) -> Record:
        """
        Change an object; nothing is written where nothing changes.

        @param change: Changes what it is given, a copy of the newest state, or returns another object; called again
            when somebody else writes in between. It may raise to give up.
        @param subresource: C{""} for the object, or C{"status"}, C{"approval"}, C{"finalize"}.
        @param uid: That the object must have; another one is a conflict.
        @param revision: That it must be at (a record's C{revision}); then it is not tried again.
        @return: What is stored now.
        """
        store = await self._context.store(group, resource)

        def changed(stored: JSONObject | None) -> JSONObject:
            assert stored is not None, "a patch makes nothing"
            meta = stored["metadata"]
            if uid and meta.get("uid") != uid:
                raise other_uid(store, store.key(namespace, name), {"uid": uid, "name": name}, meta)
            if revision and meta.get("resourceVersion") != str(revision):
                raise APIStatusError.modified(store.group_resource, name)
            # What is given to those who change it is theirs; ownership compares with what was there.
            new = thawed(stored)
            new = change(new) or new
            if not subresource:
                store.strategy.default(new)
            store.update_managed_fields(stored, new, subresource, self.field_manager)
            return new

        rules = _RULES[subresource](store) if subresource else None
        options = UpdateOptions(field_manager=self.field_manager)
        record: Record = (await store.update(self._scope(namespace), name, changed, options, rules, patching=True))[0]
        return record

    async def update_status(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        change: Callable[[JSONObject], JSONObject | None],
        *,
        uid: str = "",
        revision: int = 0,
    ) -> Record:
        """As L{update}, for the status."""
        return await self.update(
            group, resource, namespace, name, change, subresource="status", uid=uid, revision=revision
        )

    async def patch(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        patch: JSONObject,
        *,
        subresource: str = "",
        uid: str = "",
    ) -> Record:
        """Change an object by a JSON merge patch."""
        return await self.update(
            group, resource, namespace, name, lambda obj: merge_patch(obj, patch), subresource=subresource, uid=uid
        )

    async def apply(self, group: str, resource: str, obj: JSONObject) -> Record:
        """
        Apply an object with force, as server-side apply does. L{field_manager} then owns exactly the fields in C{obj}.

        @param obj: In the stored version; what is not there is made. Only built-in resources have this.
        """
        store = await self._context.store(group, resource)
        definitions = self._context.registry.context.definitions
        assert definitions is not None, "there is no apply without definitions"
        gvk = store.info.gvk(store.info.storage_version)
        fields = built_in_field_manager(definitions, store.info, gvk.version)
        codec = Codec(definitions, gvk, gvk)
        meta = obj["metadata"]
        applied = {"apiVersion": gvk.api_version, "kind": gvk.kind, **thawed(obj)}

        def changed(stored: JSONObject | None) -> JSONObject:
            merged = fields.apply(stored, applied, self.field_manager, now(), True)
            new: JSONObject = codec.to_storage(codec.redecode(merged, [], converted=True))
            store.strategy.default(new)
            return new

        options = PatchOptions(field_manager=self.field_manager, force=True)
        scope = self._scope(meta.get("namespace", ""))
        record: Record = (await store.update(scope, meta["name"], changed, options, patching=True, creating=True))[0]
        return record

    async def delete(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        revision: int | None = None,
        propagation: str | None = None,
        grace: int | None = None,
    ) -> bool:
        """
        Delete an object.

        @param uid: That it must have.
        @param revision: That it must be at.
        @param propagation: C{Background}, C{Foreground} or C{Orphan}.
        @param grace: Seconds that a pod has.
        @return: Whether it is gone already.
        """
        store = await self._context.store(group, resource)
        options = DeleteOptions(
            grace_period_seconds=grace,
            propagation_policy=propagation,
            precondition_uid=uid,
            precondition_resource_version=None if revision is None else str(revision),
        )
        gone: bool = (await store.delete(self._scope(namespace), name, options))[1]
        return gone
