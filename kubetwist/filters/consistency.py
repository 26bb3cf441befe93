"""
Consistent reads with several API servers on one storage.

A request waits until the watch cache has reached the storage's revision at its arrival (KEP-2340, consistent reads from
the cache). A write that another server has acknowledged before is then visible: to reads, to authorization and to
quotas. All requests that wait at the same time share one query of the revision; a storage may know it without a query
(L{kubetwist.interfaces.IImmediateRevision}). Requests with a token or with impersonation headers wait before
authentication, which reads objects too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from ..api.errors import APIStatusError
from ..http.request import Handler, KubeRequest
from ..interfaces import IImmediateRevision, ISharedStorage
from ..metrics.registry import Registry
from ..storage.errors import FutureRevision, StorageError

if TYPE_CHECKING:
    from ..storage.cache.watchcache import WatchCache

#: Seconds to wait for a cache; after that, reads go to the storage.
CACHE_SYNC_TIMEOUT: Final = 3.0
#: Maximum iterations of the reactor in which requests are gathered.
MAX_GATHER_ITERATIONS: Final = 4
#: Seconds of one iteration in which waiting requests are continued.
SLICE_SECONDS: Final = 0.004
_READS: Final = frozenset(("get", "list"))

#: Returns the watch cache of a group and resource; L{None} if the resource has none.
FindCache = Callable[[str, str], "WatchCache | None"]


class ConsistentReadFilter:
    """Filter that delays requests until the watch cache has reached the storage's revision at their arrival."""

    def __init__(
        self,
        storage: ISharedStorage,
        find: FindCache,
        fallback: WatchCache,
        registry: Registry,
        call_later: Callable[[Callable[[], object]], object] = lambda call: call(),
        seconds: Callable[[], float] = perf_counter,
    ) -> None:
        """
        @param storage: Returns the current revision.
        @param find: Returns the watch cache of a resource.
        @param fallback: The cache to wait for if the resource has none.
        @param registry: Where the metric is registered.
        @param call_later: Calls a function in a later iteration of the reactor, after the requests that have arrived.
        @param seconds: Returns the seconds of a monotonic clock.
        """
        self._call_later = call_later
        self._seconds = seconds
        #: Waiting requests, their handlers, and whether an error of the storage is deferred.
        self._waiting: list[tuple[KubeRequest, Handler, bool]] = []
        self._querying = False
        self._storage = storage
        self._immediate: IImmediateRevision | None = IImmediateRevision(storage, None)
        self._find = find
        self._fallback = fallback
        self._reads = registry.counter(
            "apiserver_watch_cache_consistent_read_total",
            "Number of consistent reads from watch cache.",
            ("group", "resource", "success", "fallback"),
        )

    def wrap(self, handler: Handler) -> Handler:
        """Delay requests that have not waited before authentication, unless they allow stale reads."""

        def consistent(request: KubeRequest) -> None:
            if request.cache_is_current or _allows_stale_read(request):
                handler(request)
            elif request.consistency_error is not None:
                request.processingFailed(request.consistency_error)
            else:
                self._add(request, handler, False)

        return consistent

    def before_authentication(self, handler: Handler) -> Handler:
        """
        Delay requests whose authentication reads objects.

        An error of the storage is not answered here but after authentication, by L{wrap}.
        """

        def consistent(request: KubeRequest) -> None:
            if _needs_identity_lookup(request) and not _allows_stale_read(request):
                self._add(request, handler, True)
            else:
                handler(request)

        return consistent

    def _add(self, request: KubeRequest, handler: Handler, defer_error: bool) -> None:
        if self._immediate is not None:
            revision: int | Failure | None
            try:
                revision = self._immediate.newest_revision()
            except StorageError:
                revision = Failure()
            if revision is not None:
                self._pass(revision, request, handler, defer_error)
                return
        self._waiting.append((request, handler, defer_error))
        if not self._querying:
            self._querying = True
            self._call_later(self._gather)

    def _gather(self, known: int = 0, turns: int = 1) -> None:
        """Query the revision once an iteration brings no further request, or after L{MAX_GATHER_ITERATIONS}."""
        if len(self._waiting) > known and turns < MAX_GATHER_ITERATIONS:
            self._call_later(partial(self._gather, len(self._waiting), turns + 1))
        else:
            self._query_revision()

    def _query_revision(self) -> None:
        """Query the revision for all waiting requests; later ones need another query."""
        waiting, self._waiting = self._waiting, []
        query: Deferred[int] = Deferred.fromCoroutine(self._storage.current_revision())
        query.addBoth(self._revision_received, waiting)

    def _revision_received(self, result: int | Failure, waiting: list[tuple[KubeRequest, Handler, bool]]) -> None:
        self._querying = bool(self._waiting)
        if self._querying:
            self._call_later(self._gather)
        self._release(result, deque(waiting))

    def _release(self, result: int | Failure, waiting: deque[tuple[KubeRequest, Handler, bool]]) -> None:
        """Continue requests for L{SLICE_SECONDS}, and the rest in a later iteration, so that their output is sent."""
        until = self._seconds() + SLICE_SECONDS
        while waiting:
            if self._seconds() > until:
                self._call_later(partial(self._release, result, waiting))
                return
            self._pass(result, *waiting.popleft())

    def _pass(self, result: int | Failure, request: KubeRequest, handler: Handler, defer_error: bool) -> None:
        """
        Continue a request, when its cache has reached a revision.

        @param result: The revision, or the error of the storage.
        @param request: The request.
        @param handler: Its handler.
        @param defer_error: Whether an error of the storage is answered later.
        """
        if request.is_done:
            return
        if isinstance(result, Failure):
            if defer_error:
                request.consistency_error = result
                self._run(request, handler)
            else:
                request.processingFailed(result)
            return
        info = request.info
        cache = self._find(info.group, info.resource)
        if (cache or self._fallback).revision >= result:
            self._continue_request(request, handler, cache)
        elif cache is not None and cache.on_demand.pending and info.verb == "get":
            # One object is read from the storage; all other requests wait until the cache is filled.
            request.read_from_storage = True
            self._continue_request(request, handler, cache)
        else:
            waiting: Deferred[None] = Deferred.fromCoroutine(self._wait(request, handler, cache, result))
            waiting.addErrback(request.handle_failure)

    async def _wait(self, request: KubeRequest, handler: Handler, cache: WatchCache | None, revision: int) -> None:
        try:
            await (cache or self._fallback).wait_until_fresh(revision, CACHE_SYNC_TIMEOUT)
        except FutureRevision:
            if request.is_done:
                return
            if request.info.verb not in _READS or cache is None:
                request.fail(APIStatusError.timeout("this server has not heard of the newest changes yet", 1))
                return
            # The storage is available but its watch is late: read from the storage.
            request.read_from_storage = True
        if not request.is_done:
            self._continue_request(request, handler, cache)

    def _continue_request(self, request: KubeRequest, handler: Handler, cache: WatchCache | None) -> None:
        info = request.info
        if cache is not None and info.verb in _READS:
            fallback = "true" if request.read_from_storage else "false"
            self._reads.with_label_values(
                info.group, info.resource, "false" if request.read_from_storage else "true", fallback
            ).value += 1
        request.cache_is_current = True
        self._run(request, handler)

    def _run(self, request: KubeRequest, handler: Handler) -> None:
        try:
            handler(request)
        except Exception:
            request.processingFailed(Failure())


def _needs_identity_lookup(request: KubeRequest) -> bool:
    """Return whether authentication or impersonation of a request reads objects."""
    fields = request.fields
    return (
        b"authorization" in fields
        or b"sec-websocket-protocol" in fields
        or any(name.startswith(b"impersonate") for name in fields)
    )


def _allows_stale_read(request: KubeRequest) -> bool:
    """Return whether a request names a resource version, or concerns no stored resource."""
    info = request.info
    if not info.is_resource_request:
        return True
    if info.verb not in ("get", "list", "watch") or b"resourceVersion=" not in request.uri:
        return False
    return bool((request.query.get("resourceVersion") or ("",))[0])
