"""The controller: deletes objects whose time has come."""

from __future__ import annotations

from typing import ClassVar, Final

from kubetwist.api.record import Record
from kubetwist.api.resource import GroupVersionKind
from kubetwist.controllers.machinery.controller import Controller
from kubetwist.controllers.machinery.events import WARNING
from kubetwist.controllers.machinery.informer import Handler, Informer
from objectexpiry.annotations import DOMAIN, expiry_of

#: The resources that expire, all of the core group, and their kinds.
KINDS: Final = {
    resource: GroupVersionKind("", "v1", kind)
    for resource, kind in (("namespaces", "Namespace"), ("configmaps", "ConfigMap"), ("secrets", "Secret"))
}
#: Namespaces that the cluster needs. They do not expire, and nothing in them does.
PROTECTED_NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
#: Maximum seconds until an object is checked again.
MAX_DELAY: Final = 86400.0

#: A resource, and the key of an object in its informer.
ObjectKey = tuple[str, str]


class ObjectExpiryController(Controller[ObjectKey]):
    """
    Deletes objects at the time in their annotations.

    The queue has the objects with annotations. The key of an object that expires later is added again at that time.
    """

    name: ClassVar[str] = "object-expiry-controller"
    field_manager: ClassVar[str] = "object-expiry-controller"

    def register_handlers(self) -> None:
        """See L{Controller.register_handlers}."""
        self._recorder = self.context.recorder(self.name)
        self._informers: dict[str, Informer] = {}
        for resource in KINDS:
            self._informers[resource] = self.watch("", resource, self._handler(resource))

    def _handler(self, resource: str) -> Handler:
        def changed(event_type: str, record: Record, old: Record | None) -> None:
            # Most objects have no annotation. This is known without decoding them.
            if DOMAIN.encode() in record.item:
                self.queue.add((resource, record.key))

        return changed

    async def sync(self, key: ObjectKey) -> None:
        """Delete the object if its time has come; else check it again at that time."""
        resource, place = key
        record = self._informers[resource].by_key(place)
        if record is None or PROTECTED_NAMESPACES.intersection((record.namespace, place)):
            return
        obj = self._informers[resource].get_decoded(record.namespace, record.name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        try:
            expiry = expiry_of(obj)
        except ValueError as error:
            self._recorder.event(KINDS[resource], obj, WARNING, "InvalidExpiry", str(error))
            return
        if expiry is None:
            return
        remaining = expiry - self.clock.seconds()
        if remaining > 0:
            self.queue.add_after(key, min(remaining, MAX_DELAY))
            return
        # Only the state whose annotations were read is deleted. After a conflict, the key is processed again.
        await self.client.delete(
            "", resource, record.namespace, record.name, uid=obj["metadata"]["uid"], revision=record.revision
        )
        self._log.info("deleted expired object: resource={resource} key={place}", resource=resource, place=place)
