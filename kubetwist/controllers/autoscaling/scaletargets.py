"""Reads and writes the scale of objects: of built-in and custom resources with the subresource C{scale}."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isawaitable

from attrs import frozen

from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.options import GetOptions, UpdateOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject, UserInfo
from ...api.times import now
from ...registry.customresources.fieldmanager import scale_manager
from ...registry.customresources.scale import CustomScaleStore
from ...registry.customresources.store import CustomStore
from ...registry.generic.codec import Codec
from ...registry.generic.fieldmanager.manager import BuiltInVersionConverter, FieldManager
from ...registry.generic.resourceinfo import ResourceInfo
from ...registry.generic.scalestore import SCALE, ScaleStore
from ..machinery.client import DEFAULT_FIELD_MANAGER
from ..machinery.context import ControllerContext


class NoScale(Exception):
    """There is no such kind, or it cannot be scaled. The message is the one of the reference."""


@frozen
class ScaleTarget:
    """
    An object that can be scaled, and its C{autoscaling/v1} Scale.

    @ivar resource: The group and the resource of the object.
    @ivar scale: The scale.
    """

    storage: ScaleStore | CustomScaleStore
    name: str
    namespace: str
    scale: JSONObject

    @property
    def replicas(self) -> int:
        """The desired number of replicas."""
        return int((self.scale.get("spec") or {}).get("replicas") or 0)

    @property
    def current(self) -> int:
        """The observed number of replicas."""
        return int((self.scale.get("status") or {}).get("replicas") or 0)

    @property
    def selector(self) -> str:
        """The text of the selector of the pods; C{""} without one."""
        return str((self.scale.get("status") or {}).get("selector") or "")


class ScaleTargets:
    """The objects that can be scaled."""

    def __init__(self, context: ControllerContext, user: UserInfo) -> None:
        """
        @param context: The context of the controller.
        @param user: The user of the writes.
        """
        self._context = context
        self._user = user

    def resources(self, group: str, kind: str) -> list[ResourceInfo]:
        """Return the resources of a kind."""
        return [info for info in self._context.resources() if (info.group, info.kind) == (group, kind)]

    async def get(self, namespace: str, reference: JSONObject) -> ScaleTarget:
        """
        Return the target of a reference.

        @param namespace: The namespace of the object.
        @param reference: Its C{apiVersion}, C{kind} and C{name}. The version does not matter.
        @raise NoScale: There is no such kind, or it has no scale.
        @raise APIStatusError: There is no such object (404), or it has no replicas.
        """
        group = (reference.get("apiVersion") or "").rpartition("/")[0]
        kind, name = reference["kind"], reference["name"]
        infos = self.resources(group, kind)
        if not infos:
            raise NoScale(f"no matches for kind {quoted(kind)} in group {quoted(group)}")
        storage = await self._storage(infos[0])
        if storage is None:
            raise NoScale("the server could not find the requested resource")
        result = storage.get(RequestScope(namespace, self._user), name, GetOptions())
        scale = await result if isawaitable(result) else result
        return ScaleTarget(storage, name, namespace, scale)

    async def _storage(self, info: ResourceInfo) -> ScaleStore | CustomScaleStore | None:
        store = await self._context.store(info.group, info.resource)
        if isinstance(store, CustomStore):
            return next(_custom_scales(store), None)
        if not any(one.view == "scale" for one in info.subresources):
            return None
        return ScaleStore(store, info.versions[0])

    async def update(self, target: ScaleTarget, replicas: int) -> None:
        """
        Change the desired number of replicas.

        @raise APIStatusError: The write is refused, or the object has changed since it was read (409).
        """

        def change(stored: JSONObject | None) -> JSONObject:
            assert stored is not None, "an update creates no objects"
            if stored["metadata"]["resourceVersion"] != target.scale["metadata"]["resourceVersion"]:
                raise APIStatusError.modified(target.storage.info.group_resource, target.name)
            scale = {**stored, "metadata": {**stored["metadata"]}, "spec": {"replicas": replicas}}
            self._field_manager(target.storage).update(stored, scale, DEFAULT_FIELD_MANAGER, now())
            return scale

        options = UpdateOptions(field_manager=DEFAULT_FIELD_MANAGER)
        scope = RequestScope(target.namespace, self._user, user_agent=DEFAULT_FIELD_MANAGER)
        await target.storage.update(scope, target.name, change, options)

    def _field_manager(self, storage: ScaleStore | CustomScaleStore) -> FieldManager:
        definitions = self._context.registry.context.definitions
        assert definitions is not None, "there is no scale without definitions"
        if isinstance(storage, CustomScaleStore):
            return scale_manager(definitions)
        versions = BuiltInVersionConverter(definitions, {SCALE.api_version: SCALE})
        return FieldManager(SCALE, versions, Codec(definitions, SCALE, SCALE).zero, subresource="scale")


def _custom_scales(store: CustomStore) -> Iterator[CustomScaleStore]:
    served = store.served
    for version in served.definition.served:
        if version.scale is not None:
            yield CustomScaleStore(served.store(version), version.scale)
