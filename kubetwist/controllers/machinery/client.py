"""Client of controllers: writes to the stores in process, with admission and validation, without HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ...api.errors import APIStatusError
from ...api.frozen import mutable_copy
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
from ...registry.generic.updates import UpdateRules, uid_mismatch_error

if TYPE_CHECKING:
    from ...registry.assembly import ResourceRegistry
    from ...registry.stores import Stores

#: The field manager of controllers' writes, as in kube-controller-manager.
DEFAULT_FIELD_MANAGER: Final = "kube-controller-manager"
_RULES: Final[dict[str, Callable[[Store], UpdateRules]]] = {
    "status": status_rules,
    "approval": approval_rules,
    "finalize": finalize_rules,
}


def controller_user(service_account: str) -> UserInfo:
    """
    Return the user of a controller: a service account in C{kube-system}, as named in the built-in roles.

    @param service_account: The name of the service account, or a user name with the prefix C{system:}.
    """
    if service_account.startswith("system:"):
        return UserInfo(service_account, groups=("system:authenticated",))
    return UserInfo(
        f"system:serviceaccount:kube-system:{service_account}",
        groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
    )


def is_namespace_terminating_error(error: APIStatusError) -> bool:
    """Return whether a create failed because the namespace is terminating. Then a retry is useless."""
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


class ClientContext(Protocol):
    """The stores that a client writes to. Provided by L{kubetwist.controllers.machinery.context.ControllerContext}."""

    @property
    def registry(self) -> ResourceRegistry:
        """The registry of the server's resources."""

    @property
    def stores(self) -> Stores:
        """The stores of the server."""

    async def store(self, group: str, resource: str, /) -> Store:
        """
        Return the store of a built-in or custom resource.

        @raise APIStatusError: There is no such resource (404).
        """


class Client:
    """
    Writes objects to the stores.

    Objects are in the stored version and need neither C{kind} nor C{apiVersion}. All methods raise the same
    L{APIStatusError} as a request: 404, 409 (C{AlreadyExists} or C{Conflict}), 422, 403.

    @ivar user: The user that admission gets.
    """

    def __init__(self, context: ClientContext, user: UserInfo, field_manager: str = DEFAULT_FIELD_MANAGER) -> None:
        self._context = context
        self.user = user
        self.field_manager = field_manager

    def _scope(self, namespace: str) -> RequestScope:
        return RequestScope(namespace, self.user, user_agent=DEFAULT_FIELD_MANAGER)

    def get(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """
        Return a private copy of the current object, or L{None} if it does not exist.

        @param group: The API group; C{""} for core.
        @param resource: The plural name of the resource.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param name: The name of the object.
        """
        return self._context.stores.get_copy(group, resource, namespace, name)

    async def create(self, group: str, resource: str, obj: JSONObject) -> Record:
        """
        Create an object.

        @param obj: The object, which is not modified. Its metadata has the namespace and C{name} or C{generateName}.
        @return: The record of the created object.
        """
        store = await self._context.store(group, resource)
        new = mutable_copy(obj)
        store.strategy.default(new)
        store.update_managed_fields(None, new, "", self.field_manager)
        scope = self._scope(new["metadata"].get("namespace", ""))
        result: Record = await store.create(scope, new, CreateOptions(field_manager=self.field_manager))
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
        Update an object. Nothing is written if nothing changes.

        @param group: The API group; C{""} for core.
        @param resource: The plural name of the resource.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param name: The name of the object.
        @param change: Modifies its argument, a copy of the newest state, or returns another object. It is called again
            after a conflict. If it raises, the update is cancelled and the exception is raised.
        @param subresource: C{""} for the object, or C{"status"}, C{"approval"}, C{"finalize"}.
        @param uid: Precondition: the uid of the object. Another uid is a conflict.
        @param revision: Precondition: the C{revision} of the record. Then a conflict is not retried.
        @return: The stored record.
        """
        store = await self._context.store(group, resource)

        def changed(stored: JSONObject | None) -> JSONObject:
            assert stored is not None, "an update creates no objects"
            meta = stored["metadata"]
            if uid and meta.get("uid") != uid:
                raise uid_mismatch_error(store, store.cache_key(namespace, name), {"uid": uid, "name": name}, meta)
            if revision and meta.get("resourceVersion") != str(revision):
                raise APIStatusError.modified(store.group_resource, name)
            # C{change} gets a private copy: managed fields are computed against the stored object.
            new = mutable_copy(stored)
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
        """
        Update the subresource C{status}.

        @param group: See L{update}.
        @param resource: See L{update}.
        @param namespace: See L{update}.
        @param name: See L{update}.
        @param change: See L{update}.
        @param uid: See L{update}.
        @param revision: See L{update}.
        @return: The stored record.
        """
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
        """
        Update an object with a JSON merge patch.

        @param group: See L{update}.
        @param resource: See L{update}.
        @param namespace: See L{update}.
        @param name: See L{update}.
        @param patch: The merge patch (RFC 7386).
        @param subresource: See L{update}.
        @param uid: See L{update}.
        @return: The stored record.
        """
        return await self.update(
            group, resource, namespace, name, lambda obj: merge_patch(obj, patch), subresource=subresource, uid=uid
        )

    async def apply(self, group: str, resource: str, obj: JSONObject) -> Record:
        """
        Apply an object with force, as server-side apply does. L{field_manager} then owns exactly the fields in C{obj}.

        @param obj: The object in the stored version. It is created if it does not exist. Built-in resources only.
        """
        store = await self._context.store(group, resource)
        definitions = self._context.registry.context.definitions
        assert definitions is not None, "there is no apply without definitions"
        gvk = store.info.gvk(store.info.storage_version)
        fields = built_in_field_manager(definitions, store.info, gvk.version, store.reset_fields)
        codec = Codec(definitions, gvk, gvk)
        meta = obj["metadata"]
        applied = {"apiVersion": gvk.api_version, "kind": gvk.kind, **mutable_copy(obj)}

        def changed(stored: JSONObject | None) -> JSONObject:
            merged = fields.apply(stored, applied, self.field_manager, now(), True)
            new: JSONObject = codec.to_storage(codec.decode_patched(merged, [], converted=True))
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

        @param group: The API group; C{""} for core.
        @param resource: The plural name of the resource.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param name: The name of the object.
        @param uid: Precondition: the uid of the object.
        @param revision: Precondition: the revision of the record.
        @param propagation: The propagation policy: C{Background}, C{Foreground} or C{Orphan}.
        @param grace: The grace period of a pod, in seconds.
        @return: Whether the object was removed from storage immediately.
        """
        store = await self._context.store(group, resource)
        options = DeleteOptions(
            grace_period_seconds=grace,
            propagation_policy=propagation,
            precondition_uid=uid,
            precondition_resource_version=None if revision is None else str(revision),
        )
        removed: bool = (await store.delete(self._scope(namespace), name, options))[1]
        return removed
