"""The C{scale} subresource: another kind's object, made of the resource's and written back into it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import orjson

from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.options import GetOptions, WriteOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupResource, GroupVersionKind, JSONObject
from ...interfaces import IPatcher
from .fieldmanager.scalehandler import replicas_paths, to_parent, to_subresource
from .scale import apply_scale, scale_of, validate_scale
from .updates import AdmittedView, UpdateRules, parse_version

if TYPE_CHECKING:
    from .store import Store

#: What clients send and get.
SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


def check_scale(scale: JSONObject, name: str) -> None:
    """
    Look at what is asked for.

    @raise APIStatusError: It is nothing that can be (422).
    """
    errors = validate_scale(scale)
    if errors:
        raise APIStatusError.invalid(SCALE.group_kind, name, errors)


@implementer(IPatcher)
class ScaleStore:
    """How many replicas an object wants and has, as C{autoscaling/v1, Scale}."""

    def __init__(self, store: Store, version: str) -> None:
        """
        @param version: Of the main resource, through which it is scaled.
        """
        self._store = store
        self.info = store.info
        self._api_version = store.info.gvk(version).api_version
        self._paths = replicas_paths([store.info.gvk(one).api_version for one in store.info.known_versions])

    def _scale(self, obj: JSONObject) -> JSONObject:
        return scale_of(obj, self.info.group, self.info.kind)

    def _put(self, obj: JSONObject, admitted: JSONObject) -> None:
        """
        Apply an admitted scale to its object.

        @raise APIStatusError: It is invalid (422), or belongs to another object or version of it (409).
        """
        meta, said = obj["metadata"], admitted["metadata"]
        name = meta["name"]
        check_scale(admitted, name)
        uid, version = said.get("uid") or meta["uid"], said.get("resourceVersion") or meta["resourceVersion"]
        if uid != meta["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
            raise APIStatusError.conflict(GroupResource(self.info.group, f"{self.info.resource}/scale"), name, why)
        if version != meta["resourceVersion"]:
            raise APIStatusError.modified(self._store.group_resource, name)
        apply_scale(obj, admitted, self.info.group, self.info.kind)

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{kubetwist.interfaces.IGetter.get}."""
        return self._scale(orjson.loads(self._store.existing(scope, name).item))

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """As the store's."""
        self._store.check_uid(scope, obj, old)

    async def update(
        self,
        scope: RequestScope,
        name: str,
        change: Callable[[JSONObject | None], JSONObject],
        options: WriteOptions,
        *,
        patching: bool = False,
        creating: bool = False,
        may_create: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[Any, bool]:
        """See L{kubetwist.interfaces.IUpdater.update}; C{change} is given, and gives, a C{Scale}."""
        store = self._store
        store.existing(scope, name)

        def scale(stored: JSONObject | None) -> JSONObject:
            assert stored is not None, "scales do not create"
            entries = stored["metadata"].get("managedFields") or []
            before = self._scale(stored)
            shown = to_subresource(entries, self._paths)
            if shown:
                before["metadata"]["managedFields"] = shown
            wanted = change(before)
            version = parse_version(wanted["metadata"].get("resourceVersion", ""))
            if version and str(version) != stored["metadata"]["resourceVersion"]:
                raise APIStatusError.modified(store.group_resource, name)
            wanted["metadata"].setdefault("namespace", scope.namespace)
            check_scale(wanted, name)
            apply_scale(stored, wanted, self.info.group, self.info.kind)
            scaled = wanted["metadata"].get("managedFields") or []
            stored["metadata"]["managedFields"] = to_parent(entries, scaled, self._api_version, self._paths)
            return stored

        strategy = store.strategy
        view = AdmittedView(SCALE, self._scale, self._put)
        rules = UpdateRules("scale", strategy.prepare_for_update, strategy.validate_update, main=True, view=view)
        record, _ = await store.update(scope, name, scale, options, rules, patching=True)
        return self._scale(orjson.loads(record.item)), False
