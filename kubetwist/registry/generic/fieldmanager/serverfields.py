"""The owners of the fields that this server writes itself, such as conditions and bootstrap objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....api.resource import GroupResource, GroupVersionKind, JSONObject
from ....api.times import now
from ..resourceinfo import ResourceInfo
from .manager import FieldManager, built_in_field_manager

if TYPE_CHECKING:
    from ....schema.definitions import Definitions


class ServerFields:
    """Updates the managed fields of built-in objects for parts of this server."""

    def __init__(self, definitions: Definitions) -> None:
        """
        @param definitions: The types of the release.
        """
        self._definitions = definitions
        self._managers: dict[tuple[GroupResource, str], FieldManager] = {}

    def update(
        self, info: ResourceInfo, live: JSONObject | None, obj: JSONObject, subresource: str, manager: str
    ) -> None:
        """
        Set the managed fields of an object that the server updates.

        @param info: The resource.
        @param live: The object before; L{None} for a new one.
        @param obj: The object after, which is changed.
        @param manager: The part of the server.
        """
        self._manager(info, subresource).update(live, obj, manager, now())

    def apply(
        self,
        info: ResourceInfo,
        gvk: GroupVersionKind,
        live: JSONObject,
        applied: JSONObject,
        subresource: str,
        manager: str,
    ) -> JSONObject:
        """
        Return an object after the server applied a subresource; other managers lose conflicting fields.

        @param gvk: The kind of the objects.
        """
        merged = self._manager(info, subresource).apply(live, applied, manager, now(), force=True)
        # Decoding adds fields that Go never omits, such as the reason of a condition, and that have no owner.
        return self._definitions.type_for(gvk).decode(merged, [])

    def _manager(self, info: ResourceInfo, subresource: str) -> FieldManager:
        key = info.group_resource, subresource
        manager = self._managers.get(key)
        if manager is None:
            manager = built_in_field_manager(self._definitions, info, info.storage_version, subresource)
            self._managers[key] = manager
        return manager
