"""
Keeps an APIService for each group-version that this server serves. APIServices define the order of discovery.

@see: kubernetes/kube-aggregator, C{pkg/controllers/autoregister}.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import orjson
from attrs import frozen

from twisted.internet.defer import CancelledError, Deferred, FirstError, gatherResults
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ...api.errors import APIStatusError
from ...api.options import CreateOptions, DeleteOptions, UpdateOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersion, JSONObject
from ...registry.apiregistration.bootstrap import AUTOMANAGED, api_service
from ...registry.generic.bootstrap import SERVER
from ...registry.generic.store import Store
from ...registry.kinds import Priority, group_priority, version_priority
from ...storage.cache.window import DELETED
from ...storage.errors import StorageError
from ..machinery.informer import Informer
from ..machinery.queue import WorkQueue
from .apiservices import GROUP, LOCAL, APIServiceSpec, Condition, api_service_name
from .availablecondition import reset_local_condition

#: Priority of the groups of custom resources, and of their versions.
CUSTOM_PRIORITY: Final = Priority(1000, 100)
#: Values of the label: sync the APIService at the start, or continuously (Go: AutoRegisterManagedLabel).
MANAGE_ON_START: Final = "onstart"
MANAGE_CONTINUOUSLY: Final = "true"
_MANAGED: Final = (MANAGE_ON_START, MANAGE_CONTINUOUSLY)
_WORKERS: Final = 5


@frozen
class _DesiredAPIService:
    """An APIService to create or update."""

    group_version: GroupVersion
    priority: Priority
    managed: str

    def obj(self) -> JSONObject:
        return api_service(self.group_version, self.priority.group, self.priority.version, self.managed)


class AutoRegisterController:
    """
    Creates, updates and deletes the APIServices of the served group-versions.

    APIServices of built-in groups are synced once, at the start. APIServices of custom resources are synced
    continuously. An APIService whose label was removed by a user is not changed.
    """

    _log = Logger()

    def __init__(
        self,
        store: Store,
        informer: Informer,
        clock: IReactorTime,
        *,
        built_in: Iterable[GroupVersion] = (),
        priorities: Mapping[GroupVersion, Priority] = MappingProxyType({}),
        custom: Callable[[], Collection[GroupVersion]] = lambda: (),
        subscribe: Callable[[Callable[[], None]], object] = lambda changed: None,
    ) -> None:
        """
        @param store: The store of APIServices.
        @param informer: The informer of APIServices, started by the caller.
        @param built_in: The group-versions of the server.
        @param priorities: The priorities of those among them that kube-apiserver does not serve.
        @param custom: Returns the current group-versions of custom resources.
        @param subscribe: Registers a function that is called after every change of them.
        """
        self._store = store
        self._informer = informer
        self._clock = clock
        self._custom = custom
        self._desired: dict[str, _DesiredAPIService] = {}
        for one in built_in:
            if one.group != GROUP:
                priority = priorities.get(one) or Priority(group_priority(one.group), version_priority(*one))
                self._desired[api_service_name(one)] = _DesiredAPIService(one, priority, MANAGE_ON_START)
        self._built_in = frozenset(self._desired)
        self._queue: WorkQueue[str] = WorkQueue(clock, self._work, workers=_WORKERS)
        self._at_start: frozenset[str] = frozenset()
        #: APIServices that were synced at the start and need no further sync.
        self._done: set[str] = set()
        self._scheduled: IDelayedCall | None = None
        self._started = self._stopped = False
        subscribe(self._custom_changed)

    async def start(self) -> None:
        """
        Sync all APIServices, and start syncing changes.

        @raise APIStatusError: A required APIService cannot be written.
        """
        records = self._informer.list()
        self._at_start = frozenset(record.name for record in records)
        self._started = True
        self._sync_custom()
        names = sorted({*self._desired, *self._at_start})
        # Written concurrently, so that one commit contains them all.
        try:
            await gatherResults(
                [Deferred.fromCoroutine(self._sync_at_start(name)) for name in names], consumeErrors=True
            )
        except FirstError as error:
            error.subFailure.raiseException()
        self._informer.add_event_handler(self._changed, initial=False)
        self._queue.start()

    async def _sync_at_start(self, name: str) -> None:
        record = self._informer.by_key(name)
        if name in self._built_in:
            await self._sync(name)
        elif record is not None or name in self._desired:
            self._queue.add(name)

    async def stop(self) -> None:
        """Stop the queue and remove the handlers."""
        self._stopped = True
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        await self._queue.stop()

    @property
    def idle(self) -> bool:
        """Return whether no APIService is waiting or being synced."""
        return self._scheduled is None and self._queue.idle

    # --- events

    def _changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if not self._stopped and (event_type == DELETED or self._is_relevant(record)):
            self._queue.add(record.name)

    def _is_relevant(self, record: Record) -> bool:
        return record.name in self._desired or AUTOMANAGED in record.labels or _is_marked_unavailable(record)

    def _custom_changed(self) -> None:
        # Many group-versions may change in one reactor iteration.
        if self._started and not self._stopped and self._scheduled is None:
            self._scheduled = self._clock.callLater(0, self._sync_custom)

    def _sync_custom(self) -> None:
        self._scheduled = None
        served = {api_service_name(one): one for one in self._custom()}
        for name in [name for name in self._desired if name not in served and name not in self._built_in]:
            del self._desired[name]
            self._queue.add(name)
        for name, one in served.items():
            if name not in self._desired:
                self._desired[name] = _DesiredAPIService(one, CUSTOM_PRIORITY, MANAGE_CONTINUOUSLY)
                self._queue.add(name)

    # --- sync

    async def _work(self, name: str) -> None:
        try:
            await self._sync(name)
        except CancelledError:
            raise
        except (APIStatusError, StorageError) as error:
            if not (isinstance(error, APIStatusError) and error.code in (404, 409)):
                self._log.warn("cannot write APIService: name={name} error={error}", name=name, error=error)
            self._queue.add_rate_limited(name)
        except Exception:
            self._log.failure("cannot sync APIService: name={name}", name=name)
            self._queue.add_rate_limited(name)
        else:
            self._queue.forget(name)

    async def _sync(self, name: str) -> None:
        """Create, update or delete an APIService (Go: checkAPIService)."""
        desired, record = self._desired.get(name), self._informer.by_key(name)
        if record is not None and _is_marked_unavailable(record):
            await reset_local_condition(self._store, name)
            record = self._informer.by_key(name)
        first = name not in self._done
        if desired is None and record is None:
            self._done.discard(name)
            return
        if first or desired is None or desired.managed != MANAGE_ON_START:
            await self._sync_existing(name, desired, record, first)
        self._done.add(name)

    async def _sync_existing(
        self, name: str, desired: _DesiredAPIService | None, record: Record | None, first: bool
    ) -> None:
        if record is None:
            if desired is not None:
                await self._create(desired)
            return
        managed = record.labels.get(AUTOMANAGED)
        if managed not in _MANAGED or (managed == MANAGE_ON_START and (name not in self._at_start or not first)):
            return
        if desired is None:
            await self._remove(record)
        elif APIServiceSpec.from_object(name, orjson.loads(record.item)["spec"]) != APIServiceSpec.from_object(
            name, desired.obj()["spec"]
        ):
            await self._update(record, desired)

    async def _create(self, desired: _DesiredAPIService) -> None:
        obj = desired.obj()
        self._store.strategy.default(obj)
        self._store.update_managed_fields(None, obj, "", SERVER)
        try:
            await self._store.create(RequestScope(), obj, CreateOptions())
        except APIStatusError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _remove(self, record: Record) -> None:
        options = DeleteOptions(precondition_uid=orjson.loads(record.item)["metadata"]["uid"])
        try:
            await self._store.delete(RequestScope(), record.name, options)
        except APIStatusError as error:
            # Deleted or changed concurrently: another event follows.
            if error.code not in (404, 409):
                raise

    async def _update(self, record: Record, desired: _DesiredAPIService) -> None:
        def changed(obj: JSONObject | None) -> JSONObject:
            assert obj is not None, "an update creates no objects"
            if (obj["metadata"].get("labels") or {}).get(AUTOMANAGED) not in _MANAGED:
                return obj
            new = {**obj, "metadata": {**obj["metadata"]}, "spec": desired.obj()["spec"]}
            self._store.strategy.default(new)
            self._store.update_managed_fields(obj, new, "", SERVER)
            return new

        try:
            await self._store.update(RequestScope(), record.name, changed, UpdateOptions(), patching=True)
        except APIStatusError as error:
            if error.code not in (404, 409):
                raise


def _is_marked_unavailable(record: Record) -> bool:
    """Return whether a local APIService has a condition Available that is not true."""
    obj = orjson.loads(record.item)
    return obj["spec"].get("service") is None and Condition.from_object(obj) != LOCAL
