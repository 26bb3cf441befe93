"""
Recalculates the usage of ResourceQuotas.

The ResourceQuota admission plugin adds the usage of a write in the same transaction. This controller computes the
initial usage, and decreases it after deletions and updates.

@see: kubernetes, C{pkg/controller/resourcequota/resource_quota_controller.go}.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ..api.quantity import Quantity
from ..api.record import Record
from ..api.resource import GroupResource, JSONObject
from ..registry.core.pod.resources import ResourceList, amounts
from ..registry.core.resourcequota.usage import matches_quota, matching_resources, measured, scopes_of, usage
from ..registry.generic.resourceinfo import ResourceInfo
from ..registry.stores import decoded_object
from ..storage.cache.window import DELETED, MODIFIED
from .machinery.controller import Controller
from .machinery.informer import Informer

#: Seconds between full recalculations of a quota.
RESYNC: Final = 300.0
#: Number of objects that are counted between two yields to the reactor.
_YIELD_EVERY: Final = 200
_ZERO: Final = Quantity.parse(0)


class ResourceQuotaController(Controller[str]):
    """Computes the usage of quotas. The queue contains keys of quotas."""

    name: ClassVar[str] = "resourcequota-controller"
    service_account: ClassVar[str] = "resourcequota-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register a handler for quotas. Resources are watched when a quota counts them."""
        self._informers: dict[GroupResource, Informer] = {}
        self._quotas = self.watch("", "resourcequotas", self._quota_changed)
        self._by_namespace = self._quotas.index("namespace", _namespace)
        self.context.on_resources_changed(self._resources_changed)

    def _quota_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED:
            return
        # Ignore updates by admission, which change only the usage.
        if old is None or _hard(decoded_object(old)) != _hard(decoded_object(record)):
            self.queue.add(record.key)

    def _resources_changed(self) -> None:
        for key in [key for key in self._informers if not self.context.served(*key)]:
            del self._informers[key]
        for record in self._quotas.list():
            if any(name.startswith("count/") for name in _hard(decoded_object(record))):
                self.queue.add(record.key)

    def _watch_resource(self, info: ResourceInfo) -> Informer | None:
        """Return the informer of a resource and watch it, or return L{None} if it is not served."""
        key = info.group_resource
        informer = self._informers.get(key)
        if informer is None:
            try:
                informer = self._informers[key] = self.context.informer(*key)
            except KeyError:
                return None
            is_measured = measured(*key)

            def changed(event_type: str, record: Record, old: Record | None) -> None:
                if not self._by_namespace.count(record.namespace):
                    return
                if event_type == DELETED or (
                    is_measured and event_type == MODIFIED and old is not None and _used(key, old) != _used(key, record)
                ):
                    self._replenish(key, record.namespace)

            self._registrations.append(informer.add_event_handler(changed, initial=False))
        return informer

    def _replenish(self, counted: GroupResource, namespace: str) -> None:
        """Enqueue the quotas in a namespace that count a resource."""
        for record in self._by_namespace.get(namespace):
            if matching_resources(*counted, _hard(decoded_object(record))):
                self.queue.add(record.key)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._quotas.by_key(key)
        if record is None:
            return
        quota = decoded_object(record)
        self.queue.add_after(key, RESYNC)
        hard = _hard(quota)
        counted: ResourceList = {}
        for info in self.context.resources():
            # Events are not counted: they change too often.
            if not info.namespaced or info.resource == "events":
                continue
            names = matching_resources(*info.group_resource, hard)
            if not names:
                continue
            informer = self._watch_resource(info)
            if informer is None:
                continue
            if not informer.ready:
                informer.synced.addCallback(self._retry, key)
                continue
            usages = await self._count(informer, record.namespace, quota)
            counted.update({name: usages.get(name, _ZERO) for name in names})
        await self._update_status(record, quota, counted)

    def _retry(self, result: None, key: str) -> None:
        self.queue.add(key)

    async def _count(self, informer: Informer, namespace: str, quota: JSONObject) -> ResourceList:
        """Return the usage of all objects of a resource."""
        resource = informer.group_resource
        records = informer.list(namespace)
        scoped = bool(scopes_of(quota))
        if not measured(*resource) and not scoped:
            return {name: Quantity.parse(len(records)) for name in usage(*resource, {})}
        total: ResourceList = {}
        for number, record in enumerate(records, 1):
            if not scoped or matches_quota(quota, *resource, decoded_object(record)):
                for name, amount in _used(resource, record).items():
                    total[name] = total[name] + amount if name in total else amount
            if number % _YIELD_EVERY == 0:
                await self.yield_to_reactor()
        return total

    async def _update_status(self, record: Record, quota: JSONObject, counted: ResourceList) -> None:
        """Write the usage of a quota. If it was charged concurrently, this is a conflict and the sync is retried."""
        status = quota.get("status") or {}
        previous = status.get("used") or {}
        used: dict[str, str] = {}
        for name in _hard(quota):
            amount = counted.get(name)
            if amount is None:
                # Unknown resources are ignored.
                if name in previous:
                    used[name] = previous[name]
            elif name in previous and Quantity.parse(previous[name]) == amount:
                used[name] = previous[name]
            else:
                used[name] = str(amount)
        hard = dict(_hard(quota))
        if "used" in status and status["used"] == used and amounts(status.get("hard")) == amounts(hard):
            return

        def change(new: JSONObject) -> None:
            new["status"] = {"hard": hard, "used": used}

        await self.client.update_status(
            "", "resourcequotas", record.namespace, record.name, change, revision=record.revision
        )


def _namespace(record: Record) -> tuple[str]:
    return (record.namespace,)


def _hard(quota: JSONObject) -> JSONObject:
    hard: JSONObject = (quota.get("spec") or {}).get("hard") or {}
    return hard


def _used(resource: GroupResource, record: Record) -> ResourceList:
    """Return the usage of an object. The result is cached in the record and must not be changed."""
    views: dict[Any, Any] | None = record.views
    if views is None:
        views = record.views = {}
    used: ResourceList | None = views.get(_used)
    if used is None:
        used = views[_used] = usage(*resource, decoded_object(record))
    return used
