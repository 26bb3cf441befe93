"""
Base class of the controllers that protect volumes and claims in use with a finalizer.

The StorageObjectInUseProtection admission plugin adds the finalizers to created objects.

@see: kubernetes, C{pkg/controller/volume/pvcprotection}, C{pvprotection}.
"""

from __future__ import annotations

from typing import ClassVar

from ...api.record import Record
from ...api.resource import JSONObject
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.controller import Controller


class ProtectionController(Controller[str]):
    """
    Adds a finalizer to objects, and removes it from deleted objects that are not in use.

    @cvar resource: The plural name of the resource.
    @cvar finalizer: The finalizer.
    """

    resource: ClassVar[str]
    finalizer: ClassVar[str]

    def register_handlers(self) -> None:
        """Register a handler for the objects."""
        self._objects = self.watch("", self.resource, self._object_changed)

    def _object_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type != DELETED and self._candidate(decoded_object(record)):
            self.queue.add(record.key)

    def _candidate(self, obj: JSONObject) -> bool:
        """Return whether an object needs a sync: its finalizer is missing, or it is deleted and has the finalizer."""
        meta = obj["metadata"]
        return ("deletionTimestamp" in meta) == (self.finalizer in (meta.get("finalizers") or ()))

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._objects.by_key(key)
        if record is None or not self._candidate(decoded_object(record)):
            return
        deleted = "deletionTimestamp" in decoded_object(record)["metadata"]
        if deleted and self.in_use(record):
            return

        def change(obj: JSONObject) -> None:
            finalizers = [one for one in obj["metadata"].get("finalizers") or () if one != self.finalizer]
            if not deleted:
                finalizers.append(self.finalizer)
            if finalizers:
                obj["metadata"]["finalizers"] = finalizers
            else:
                obj["metadata"].pop("finalizers", None)

        await self.client.update("", self.resource, record.namespace, record.name, change, revision=record.revision)

    def in_use(self, record: Record) -> bool:
        """Return whether an object is in use."""
        raise NotImplementedError
