"""The C{scale} subresource of custom resources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.options import GetOptions, WriteOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersionKind, JSONObject
from ...api.tables import Describe, TableDefinition
from ...interfaces import IPatcher, ITableConvertor
from ..generic.fieldmanager.scalehandler import to_parent, to_subresource
from ..generic.scalestore import SCALE
from ..generic.updates import AdmittedView, UpdateRules, parse_version
from .fieldmanager import scale_paths
from .store import CustomStore
from .strategy import nested, wrong_type

#: Value of unset replicas in the object that a patch is applied to.
_UNSET: Final = -(1 << 31)


@implementer(IPatcher, ITableConvertor)
class CustomScaleStore:
    """Desired and actual replicas of a custom resource, as C{autoscaling/v1, Scale}."""

    def __init__(self, store: CustomStore, paths: JSONObject) -> None:
        self._store = store
        self.info = store.info
        self._spec: str = paths["specReplicasPath"]
        self._status: str = paths["statusReplicasPath"]
        self._selector: str = paths.get("labelSelectorPath") or ""
        self._paths = scale_paths(store.served.definition)

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{kubetwist.interfaces.IGetter.get}."""
        record = self._store.existing(scope, name)
        if self._store.is_converted(record):
            return self._shown(record)
        return self._shown_later(record)

    async def _shown_later(self, record: Record) -> JSONObject:
        await self._store.ensure_converted((record,))
        return self._shown(record)

    def _shown(self, record: Record) -> JSONObject:
        obj = self._store.decode_record(record)
        if _integer(obj, self._spec) is None:
            raise APIStatusError.internal(f'the spec replicas field "{self._spec}" does not exist')
        return self._scale(obj)

    def _scale(self, obj: JSONObject) -> JSONObject:
        meta = obj["metadata"]
        names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        status: JSONObject = {"replicas": _integer(obj, self._status) or 0}
        selector = _found(obj, self._selector) if self._selector else None
        if selector:
            if not isinstance(selector, str):
                raise APIStatusError.unknown(wrong_type(self._selector, selector, "string"))
            status["selector"] = selector
        spec = _integer(obj, self._spec)
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: meta[name] for name in names if name in meta},
            "spec": {"replicas": spec} if spec else {},
            "status": status,
        }

    def _admit(self, obj: JSONObject, admitted: JSONObject) -> None:
        """Write the replicas of an admitted Scale into its object."""
        replicas = (admitted.get("spec") or {}).get("replicas", 0)
        if replicas != (_integer(obj, self._spec) or 0):
            _put(obj, self._spec, replicas)

    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """See L{kubetwist.interfaces.ITableConvertor.table}."""
        return self._store.tables(kind, describe)

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """Check the uid as the store does."""
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

        @param scope: The request.
        @param name: The name of the object.
        @param change: Takes and returns a C{Scale}.
        @param options: The options of the write.
        @param patching: Whether the request is a PATCH.
        @param creating: Ignored: a Scale cannot be created.
        @param may_create: Ignored for the same reason.
        """
        store = self._store

        def update_replicas(stored: JSONObject | None) -> JSONObject:
            assert stored is not None, "a Scale cannot be created"
            before = self._scale(stored)
            if _integer(stored, self._spec) is None:
                before["spec"]["replicas"] = _UNSET
            entries = stored["metadata"].get("managedFields") or ()
            shown = to_subresource(entries, self._paths)
            if shown:
                before["metadata"]["managedFields"] = shown
            scale = change(before)
            replicas = (scale.get("spec") or {}).get("replicas", 0)
            if replicas == _UNSET:
                raise APIStatusError.bad_request(f'the spec replicas field "{self._spec}" cannot be empty')
            version = parse_version(scale["metadata"].get("resourceVersion", ""))
            if version and str(version) != stored["metadata"]["resourceVersion"]:
                raise APIStatusError.modified(store.group_resource, name)
            _put(stored, self._spec, replicas)
            owned = scale["metadata"].get("managedFields") or ()
            api_version = store.codec.gvk.api_version
            managed = to_parent(entries, owned, api_version, self._paths)
            if managed:
                stored["metadata"]["managedFields"] = managed
            else:
                stored["metadata"].pop("managedFields", None)
            return stored

        strategy = store.strategy
        view = AdmittedView(SCALE, self._scale, self._admit)
        rules = UpdateRules("scale", strategy.prepare_for_update, strategy.validate_update, main=True, view=view)
        record, _ = await store.update(scope, name, update_replicas, options, rules, patching=True)
        assert isinstance(record, Record)
        return self._scale(store.decode_record(record)), False


def _found(obj: JSONObject, path: str) -> JSONValue:
    try:
        return nested(obj, path)
    except LookupError as error:
        raise APIStatusError.unknown(str(error)) from None


def _integer(obj: JSONObject, path: str) -> int | None:
    value = _found(obj, path)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise APIStatusError.unknown(wrong_type(path, value, "int64"))
    return value


def _put(obj: JSONObject, path: str, value: int) -> None:
    *way, last = path.removeprefix(".").split(".")
    for name in way:
        inner = obj.setdefault(name, {})
        if not isinstance(inner, dict):
            raise APIStatusError.unknown(f"value cannot be set because {path} is not a map[string]interface{{}}")
        obj = inner
    obj[last] = value
