"""Reconciles a single object of the server with its expected content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...interfaces import IWatchSink
from ...registry.generic.reading import get_from_storage
from ...storage.cache.watches import CacheWatch
from ...storage.cache.window import CacheEvent

if TYPE_CHECKING:
    from ...registry.generic.store import Store

#: Seconds until a failed check is repeated.
RETRY_INTERVAL: Final = 5.0


@implementer(IWatchSink)
class SingletonReconciler:
    """
    Calls L{check} at the start and after every change of the object.

    @ivar namespace: The namespace of the object.
    @ivar name: The name of the object.
    """

    _log = Logger()
    namespace: str
    name: str

    def __init__(self, store: Store, reactor: IReactorTime) -> None:
        self.store = store
        self.reactor = reactor
        self._watch: CacheWatch | None = None
        self._scheduled: IDelayedCall | None = None
        self._checking = False
        self._rerun = False
        self._stopped = False

    async def check(self) -> None:
        """Compare the object with its expected content and correct it."""
        raise NotImplementedError

    async def start(self) -> None:
        """
        Create or correct the object, and watch it from now on.

        If the cache is not filled, the object is watched when it is: before, all writes of it fill the cache.
        """
        if self.store.cache.on_demand.pending:
            filled = self.store.cache.on_demand.wait()
            filled.addCallbacks(lambda _: self.schedule(), lambda _: self.schedule(RETRY_INTERVAL))
        else:
            self._start_watch()
        await self.check()

    async def read(self) -> JSONObject | None:
        """Return a copy of the object, which does not fill the cache; L{None} if it does not exist."""
        if not self.store.cache.on_demand.pending:
            return self.store.get_copy(self.namespace, self.name)
        try:
            record = await get_from_storage(self.store, RequestScope(self.namespace), self.name)
        except APIStatusError as error:
            if error.code != 404:
                raise
            return None
        obj: JSONObject = orjson.loads(record.item)
        return obj

    def stop(self) -> None:
        """Stop watching."""
        self._stopped = True
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        if self._watch is not None:
            self._watch.stop()

    def schedule(self, delay: float = 0) -> None:
        """Schedule a check after a delay in seconds, unless one is scheduled."""
        if self._scheduled is None and not self._stopped:
            self._scheduled = self.reactor.callLater(delay, self._check_now)

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """See L{IWatchSink.send}."""
        self.schedule()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Do nothing."""

    def end(self, error: Exception | None) -> None:
        """Restart the watch because the cache reloads."""
        self._watch = None
        self.schedule(RETRY_INTERVAL)

    def _start_watch(self) -> None:
        self._watch = self.store.cache.watch(f"{self.namespace}/{self.name}", sink=self)

    def _check_now(self) -> None:
        self._scheduled = None
        if self._checking:
            self._rerun = True
            return
        if self._watch is None:
            if not self.store.cache.ready:
                self.schedule(RETRY_INTERVAL)
                return
            self._start_watch()
        self._checking = True
        Deferred.fromCoroutine(self.check()).addErrback(self._failed).addCallback(self._check_done)

    def _failed(self, failure: Failure) -> None:
        self._log.failure(
            "cannot reconcile object: key={namespace}/{name}", failure, namespace=self.namespace, name=self.name
        )
        self.schedule(RETRY_INTERVAL)

    def _check_done(self, _: None) -> None:
        self._checking = False
        if self._rerun:
            self._rerun = False
            self.schedule()
