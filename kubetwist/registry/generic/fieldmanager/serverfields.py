"""Field managers for writes by the server itself, such as conditions and bootstrap objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....api.resource import GroupResource, GroupVersionKind, JSONObject
from ....api.times import now
from ..resourceinfo import ResourceInfo
from .manager import FieldManager, built_in_field_manager
from .resetfields import reset_fields

if TYPE_CHECKING:
    from ....schema.definitions import Definitions


class ServerFields:
    """The field managers of built-in resources, for writes by components of this server."""

    def __init__(self, definitions: Definitions) -> None:
        """
        @param definitions: The type definitions of the release.
        """
        self._definitions = definitions
        self._managers: dict[tuple[GroupResource, str], FieldManager] = {}

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
        Apply a subresource of an object with force: other managers lose conflicting fields.

        @param info: The resource.
        @param gvk: The kind of the objects.
        @param live: The stored object; not modified.
        @param applied: An object with the applied fields.
        @param subresource: The subresource.
        @param manager: The name of the component.
        @return: The merged object.
        """
        merged = self.manager(info, subresource).apply(live, applied, manager, now(), force=True)
        # Decoding adds fields that Go never omits, such as the reason of a condition; they have no owner.
        return self._definitions.type_for(gvk).decode(merged, [])

    def manager(self, info: ResourceInfo, subresource: str) -> FieldManager:
        """Return the field manager of a resource in its stored version, or of a subresource that is a part of it."""
        key = info.group_resource, subresource
        manager = self._managers.get(key)
        if manager is None:
            manager = built_in_field_manager(
                self._definitions, info, info.storage_version, reset_fields(info, subresource), subresource
            )
            self._managers[key] = manager
        return manager
