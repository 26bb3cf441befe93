"""
Deletes the content of terminating namespaces, pods first, and then finalizes the namespaces.

@see: kubernetes, C{pkg/controller/namespace/deletion/namespaced_resources_deleter.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

import orjson

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import GroupResource, JSONObject
from ...api.times import format_time
from ...registry.generic.deletion import read_timestamp
from ...registry.generic.resourceinfo import ResourceInfo
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ...storage.errors import StorageError
from ..machinery.context import ControllerContext
from ..machinery.controller import Controller
from ..machinery.informer import HandlerRegistration
from ..machinery.parallel import parallelize
from ..machinery.queue import WorkQueue
from .conditions import ContentDeletionResult, update_conditions

FINALIZER: Final = "kubernetes"
PODS: Final = GroupResource("", "pods")
#: Seconds that finalizers of objects are expected to take.
FINALIZER_SECONDS: Final = 15
#: Maximum delay, in seconds, between two attempts to delete the content of a namespace.
RETRY_MAX: Final = 60.0
#: Seconds in which deletions of objects are coalesced.
COALESCE_DELAY: Final = 0.05
_DELETED: Final = b'"deletionTimestamp":"'


class ContentDeletionError(Exception):
    """The content of a namespace could not be deleted."""


class NamespaceController(Controller[str]):
    """Deletes the content of terminating namespaces and finalizes them. Keys are the names of namespaces."""

    name: ClassVar[str] = "namespace-controller"
    workers: ClassVar[int] = 10

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.queue = WorkQueue(context.clock, self._work, workers=self.workers, retry_max=RETRY_MAX)
        #: Namespaces with remaining objects, by resource.
        self._waiting_namespaces: dict[GroupResource, set[str]] = {}
        self._watched: dict[GroupResource, HandlerRegistration] = {}

    def register_handlers(self) -> None:
        """Register handlers for namespaces, and for deletions in terminating namespaces."""
        self._namespaces = self.watch("", "namespaces", self._namespace_changed)
        self.context.on_resources_changed(self._resources_changed)

    async def stop(self) -> None:
        """See L{Controller.stop}."""
        for subscription in self._watched.values():
            subscription.stop()
        self._watched.clear()
        await super().stop()

    def _namespace_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED:
            self._forget(record.name)
        elif _DELETED in record.item and (old is None or _DELETED not in old.item):
            # Later updates, such as our own conditions, do not change the remaining content.
            self.queue.add(record.name)

    def _resources_changed(self) -> None:
        # Objects of a removed resource are not waited for.
        for resource in [one for one in self._watched if not self.context.served(*one)]:
            self._watched.pop(resource).stop()
            for name in self._waiting_namespaces.pop(resource, ()):
                self.queue.add(name)

    # --- waiting for deletions

    def _forget(self, name: str) -> None:
        for resource in list(self._waiting_namespaces):
            names = self._waiting_namespaces[resource]
            names.discard(name)
            if not names:
                del self._waiting_namespaces[resource]
                watched = self._watched.pop(resource, None)
                if watched is not None:
                    watched.stop()

    def _requeue_on_delete(self, name: str, resource: GroupResource) -> None:
        """Sync a namespace again when objects of the resource in it are deleted."""
        self._waiting_namespaces.setdefault(resource, set()).add(name)
        if resource in self._watched:
            return

        def changed(event_type: str, record: Record, old: Record | None) -> None:
            if event_type == DELETED and record.namespace in self._waiting_namespaces.get(resource, ()):
                self.queue.add_after(record.namespace, COALESCE_DELAY)

        try:
            informer = self.context.informer(*resource)
        except KeyError:
            return
        self._watched[resource] = informer.add_event_handler(changed, initial=False)

    # --- sync

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        self._forget(key)
        record = self._namespaces.get("", key)
        if record is None:
            return
        namespace = decoded_object(record)
        meta = namespace["metadata"]
        if not meta.get("deletionTimestamp") or not (namespace.get("spec") or {}).get("finalizers"):
            return
        if (namespace.get("status") or {}).get("phase") != "Terminating":
            await self._update(key, meta["uid"], _terminating, "status")
        outcome = await self._delete_all_content(key, meta["deletionTimestamp"])
        for resource in outcome.remaining:
            self._requeue_on_delete(key, resource)
        now = format_time(self.clock.seconds())
        if outcome.failures or outcome.discovery:
            await self._update_status(key, meta["uid"], outcome, now)
            raise ContentDeletionError("; ".join([outcome.discovery] * bool(outcome.discovery) + outcome.failures))
        await self._update_status(key, meta["uid"], outcome, now)
        if outcome.estimate:
            self.queue.add_after(key, outcome.estimate // 2 + 1)
            return
        await self._update(key, meta["uid"], _finalized, "finalize")

    def _failed(self, key: str, error: Exception) -> None:
        if isinstance(error, ContentDeletionError):
            if not self.queue.num_requeues(key):
                self._log.warn("cannot delete namespace content: namespace={name} error={error}", name=key, error=error)
            self.queue.add_rate_limited(key)
            return
        super()._failed(key, error)

    async def _update_status(self, name: str, uid: str, outcome: ContentDeletionResult, now: str) -> None:
        await self._update(name, uid, lambda obj: update_conditions(obj, outcome, now), "status")

    async def _update(self, name: str, uid: str, change: Callable[[JSONObject], None], subresource: str) -> None:
        try:
            await self.client.update("", "namespaces", "", name, change, subresource=subresource, uid=uid)
        except APIStatusError as error:
            if error.code != 404:
                raise

    # --- content

    async def _delete_all_content(self, namespace: str, since: str) -> ContentDeletionResult:
        """Delete the content of a namespace: pods first, and other objects when no pods remain."""
        outcome = ContentDeletionResult()
        infos = {info.group_resource: info for info in self.context.resources() if info.namespaced}
        pods = infos.pop(PODS, None)
        if pods is not None:
            await self._delete_all(pods, namespace, since, outcome)
            if outcome.remaining:
                return outcome
        prefixes = set()
        for info in infos.values():
            # Some resources are served in several groups.
            if info.key_prefix not in prefixes:
                prefixes.add(info.key_prefix)
                await self._delete_all(info, namespace, since, outcome)
                await self.yield_to_reactor()
        aggregation = self.context.aggregation
        if aggregation is not None and aggregation.aggregated_servers:
            # Imported here because most servers have no aggregated API servers.
            from .remotecontent import AggregatedContentDeleter

            content = AggregatedContentDeleter(aggregation, self.client.user, self.context.resources())
            await content.empty(namespace, outcome)
        return outcome

    async def _delete_all(self, info: ResourceInfo, namespace: str, since: str, outcome: ContentDeletionResult) -> None:
        """Delete the objects of one resource."""
        resource = info.group_resource
        try:
            if not self.context.is_cached(*resource) and not await self.context.stores.any_stored(info, namespace):
                return
            store = await self.context.store(*resource)
            records = store.cache.list(f"{namespace}/").records
            if not records:
                return
            estimate = self._estimate_graceful_termination(records, since) if resource == PODS else 0
            outcome.estimate = max(outcome.estimate, estimate)

            async def delete(record: Record) -> None:
                await self.client.delete(
                    resource.group, resource.resource, namespace, record.name, propagation="Background"
                )

            errors = await parallelize(records, delete, self.yield_to_reactor)
            if errors:
                outcome.failures.append(str(errors[0]))
                return
            remaining = store.cache.list(f"{namespace}/").records
        except APIStatusError as error:
            if error.code != 404:
                outcome.failures.append(str(error))
            return
        except StorageError as error:
            outcome.failures.append(str(error))
            return
        if not remaining:
            if resource == PODS:
                outcome.estimate = 0
            return
        outcome.remaining[resource] += len(remaining)
        has_finalizers = False
        for record in remaining:
            finalizers = orjson.loads(record.item)["metadata"].get("finalizers") or ()
            outcome.finalizers.update(finalizers)
            has_finalizers = has_finalizers or bool(finalizers)
            await self.yield_to_reactor()
        if estimate:
            return
        if has_finalizers:
            outcome.estimate = max(outcome.estimate, FINALIZER_SECONDS)
        else:
            kind = f"{info.group}/{info.versions[0]}, Resource={info.resource}"
            outcome.failures.append(f"unexpected items still remain in namespace: {namespace} for gvr: {kind}")

    def _estimate_graceful_termination(self, pods: Iterable[Record], since: str) -> int:
        """Return the longest grace period of the pods in seconds, or 0 if it has passed."""
        max_grace = 0
        for record in pods:
            pod = decoded_object(record)
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                max_grace = max(max_grace, pod["spec"].get("terminationGracePeriodSeconds") or 0)
        elapsed = self.clock.seconds() - read_timestamp(since).timestamp()
        return 0 if elapsed >= max_grace else max_grace


def _terminating(namespace: JSONObject) -> None:
    namespace.setdefault("status", {})["phase"] = "Terminating"


def _finalized(namespace: JSONObject) -> None:
    spec = namespace.setdefault("spec", {})
    spec["finalizers"] = sorted({one for one in spec.get("finalizers") or () if one != FINALIZER})
