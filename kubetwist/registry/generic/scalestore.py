"""Storage of the C{scale} subresource, whose objects are derived from those of the resource."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import orjson

from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.options import GetOptions, WriteOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupResource, GroupVersionKind, JSONObject
from ...api.tables import Describe, TableDefinition
from ...interfaces import IPatcher, ITableConvertor
from .fieldmanager.scalehandler import replicas_paths, to_parent, to_subresource
from .scale import apply_scale, scale_of, validate_scale
from .updates import AdmittedView, UpdateRules, parse_version

if TYPE_CHECKING:
    from .store import Store

#: The kind of requests and responses.
SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


def check_scale(scale: JSONObject, name: str) -> None:
    """
    Validate a scale.

    @raise APIStatusError: The scale is invalid (422).
    """
    errors = validate_scale(scale)
    if errors:
        raise APIStatusError.invalid(SCALE.group_kind, name, errors)


@implementer(IPatcher, ITableConvertor)
class ScaleStore:
    """Storage of the desired and current number of replicas of objects, as C{autoscaling/v1, Scale}."""

    def __init__(self, store: Store, version: str) -> None:
        """
        @param store: The store of the scaled resource.
        @param version: The version of the resource in the path of requests.
        """
        self._store = store
        self.info = store.info
        self._api_version = store.info.gvk(version).api_version
        self._paths = replicas_paths([store.info.gvk(one).api_version for one in store.info.known_versions])

    def _scale(self, obj: JSONObject) -> JSONObject:
        return scale_of(obj, self.info.group, self.info.kind)

    def _apply_admitted(self, obj: JSONObject, admitted: JSONObject) -> None:
        """
        Apply an admitted scale to its object.

        @raise APIStatusError: The scale is invalid (422), or has another uid or resourceVersion (409).
        """
        meta, scale_meta = obj["metadata"], admitted["metadata"]
        name = meta["name"]
        check_scale(admitted, name)
        uid = scale_meta.get("uid") or meta["uid"]
        version = scale_meta.get("resourceVersion") or meta["resourceVersion"]
        if uid != meta["uid"]:
            reason = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
            raise APIStatusError.conflict(GroupResource(self.info.group, f"{self.info.resource}/scale"), name, reason)
        if version != meta["resourceVersion"]:
            raise APIStatusError.modified(self._store.group_resource, name)
        apply_scale(obj, admitted)

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{kubetwist.interfaces.IGetter.get}."""
        return self._scale(orjson.loads(self._store.existing(scope, name).item))

    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """See L{kubetwist.interfaces.ITableConvertor.table}."""
        return self._store.tables(kind, describe)

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """See L{Store.check_uid}."""
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
        """
        See L{kubetwist.interfaces.IUpdater.update}.

        @param change: Returns the new C{Scale} for the current one.
        @return: The new C{Scale}, and L{False}, since nothing is created.
        """
        store = self._store
        store.existing(scope, name)

        def scale(stored: JSONObject | None) -> JSONObject:
            assert stored is not None, "the scale rules do not create objects"
            entries = stored["metadata"].get("managedFields") or []
            current = self._scale(stored)
            current_entries = to_subresource(entries, self._paths)
            if current_entries:
                current["metadata"]["managedFields"] = current_entries
            requested = change(current)
            version = parse_version(requested["metadata"].get("resourceVersion", ""))
            if version and str(version) != stored["metadata"]["resourceVersion"]:
                raise APIStatusError.modified(store.group_resource, name)
            requested["metadata"].setdefault("namespace", scope.namespace)
            check_scale(requested, name)
            apply_scale(stored, requested)
            new_entries = requested["metadata"].get("managedFields") or []
            stored["metadata"]["managedFields"] = to_parent(entries, new_entries, self._api_version, self._paths)
            return stored

        strategy = store.strategy
        view = AdmittedView(SCALE, self._scale, self._apply_admitted)
        rules = UpdateRules("scale", strategy.prepare_for_update, strategy.validate_update, main=True, view=view)
        record, _ = await store.update(scope, name, scale, options, rules, patching=True)
        return self._scale(orjson.loads(record.item)), False
