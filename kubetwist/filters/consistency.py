"""
Where several servers work on one storage: no request is answered by what this server has not heard of yet.

Before anything is looked up for a request, it is asked how far the storage is, and waited until this server has come as
far: what anybody was told is done before the request came, by whatever server, counts in it, be it an object, a role or
a quota. However many requests wait at a time, the storage is asked once. Tokens, and whom one may act as, are looked up
as well: who shows a token, or acts as another, waits before that.

@see: kubernetes/enhancements, KEP-2340 (consistent reads from the cache).
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
from ..interfaces import ISharedStorage
from ..metrics.registry import Registry
from ..storage.errors import FutureRevision

if TYPE_CHECKING:
    from ..storage.cache.watchcache import WatchCache

#: Seconds that a cache is waited for; then reads go to the storage itself.
PATIENCE: Final = 3.0
#: Turns of the reactor in which requests are gathered, at most.
MOST_TURNS: Final = 4
#: Seconds that requests are worked on in a turn.
TURN: Final = 0.004
_READS: Final = frozenset(("get", "list"))

#: Finds the cache of a group and resource; L{None} for what is not kept here.
FindCache = Callable[[str, str], "WatchCache | None"]


class Consistency:
    """Has requests wait until this server is as far as the storage was when they came."""

    def __init__(
        self,
        storage: ISharedStorage,
        find: FindCache,
        fallback: WatchCache,
        registry: Registry,
        soon: Callable[[Callable[[], object]], object] = lambda call: call(),
        seconds: Callable[[], float] = perf_counter,
    ) -> None:
        """
        @param find: Finds the cache of what a request is about.
        @param fallback: Some cache, for what is kept nowhere.
        @param soon: Calls something when all requests were read that are there already: they are asked for together.
        """
        self._soon = soon
        self._seconds = seconds
        #: Who waits, for what, and whether it goes on, as before, where the storage does not answer.
        self._waiting: list[tuple[KubeRequest, Handler, bool]] = []
        self._asking = False
        self._storage = storage
        self._find = find
        self._fallback = fallback
        self._reads = registry.counter(
            "apiserver_watch_cache_consistent_read_total",
            "Reads that waited until the cache was as far as the storage.",
            ("group", "resource", "success", "fallback"),
        )

    def in_front(self, handler: Handler) -> Handler:
        """Have requests wait before C{handler} looks at anything, if they have not waited already."""

        def consistent(request: KubeRequest) -> None:
            if request.fresh or _any_age(request):
                handler(request)
            elif request.staleness is not None:
                request.processingFailed(request.staleness)
            else:
                self._add(request, handler, False)

        return consistent

    def before_authentication(self, handler: Handler) -> Handler:
        """
        Have those requests wait before C{handler} for which objects tell who sends them.

        Nobody is told here that the storage does not answer: only who is known by then is, C{in_front}.
        """

        def consistent(request: KubeRequest) -> None:
            if _looked_up(request) and not _any_age(request):
                self._add(request, handler, True)
            else:
                handler(request)

        return consistent

    def _add(self, request: KubeRequest, handler: Handler, tolerant: bool) -> None:
        self._waiting.append((request, handler, tolerant))
        if not self._asking:
            self._asking = True
            self._soon(self._gather)

    def _gather(self, known: int = 0, turns: int = 1) -> None:
        """Ask when a turn has brought nobody new, or after L{MOST_TURNS}: each question costs the storage the same."""
        if len(self._waiting) > known and turns < MOST_TURNS:
            self._soon(partial(self._gather, len(self._waiting), turns + 1))
        else:
            self._ask()

    def _ask(self) -> None:
        """Ask for all who wait; who comes meanwhile is asked for next, as the answer may be older than he is."""
        waiting, self._waiting = self._waiting, []
        asked: Deferred[int] = Deferred.fromCoroutine(self._storage.current_revision())
        asked.addBoth(self._answered, waiting)

    def _answered(self, result: int | Failure, waiting: list[tuple[KubeRequest, Handler, bool]]) -> None:
        self._asking = bool(self._waiting)
        if self._asking:
            self._soon(self._gather)
        self._let_go(result, deque(waiting))

    def _let_go(self, result: int | Failure, waiting: deque[tuple[KubeRequest, Handler, bool]]) -> None:
        """Let requests go on; after a while the rest in another turn, so that what these want of others is sent."""
        until = self._seconds() + TURN
        while waiting:
            if self._seconds() > until:
                self._soon(partial(self._let_go, result, waiting))
                return
            request, handler, tolerant = waiting.popleft()
            if request.over:
                continue
            if isinstance(result, Failure):
                if tolerant:
                    request.staleness = result
                    self._run(request, handler)
                else:
                    request.processingFailed(result)
                continue
            info = request.info
            cache = self._find(info.group, info.resource)
            if (cache or self._fallback).revision >= result:
                self._go_on(request, handler, cache)
            else:
                late: Deferred[None] = Deferred.fromCoroutine(self._wait(request, handler, cache, result))
                late.addErrback(request.crashed)

    async def _wait(self, request: KubeRequest, handler: Handler, cache: WatchCache | None, revision: int) -> None:
        try:
            await (cache or self._fallback).wait_until(revision, PATIENCE)
        except FutureRevision:
            if request.over:
                return
            if request.info.verb not in _READS or cache is None:
                request.fail(APIStatusError.timeout("this server has not heard of the newest changes yet", 1))
                return
            # The storage answers, only the news does not come: it is read itself.
            request.from_storage = True
        if not request.over:
            self._go_on(request, handler, cache)

    def _go_on(self, request: KubeRequest, handler: Handler, cache: WatchCache | None) -> None:
        info = request.info
        if cache is not None and info.verb in _READS:
            fallback = "true" if request.from_storage else "false"
            self._reads.with_label_values(
                info.group, info.resource, "false" if request.from_storage else "true", fallback
            ).value += 1
        request.fresh = True
        self._run(request, handler)

    def _run(self, request: KubeRequest, handler: Handler) -> None:
        try:
            handler(request)
        except Exception:
            request.processingFailed(Failure())


def _looked_up(request: KubeRequest) -> bool:
    """Whether objects tell who sends a request, or for whom it is."""
    fields = request.fields
    return (
        b"authorization" in fields
        or b"sec-websocket-protocol" in fields
        or any(name.startswith(b"impersonate") for name in fields)
    )


def _any_age(request: KubeRequest) -> bool:
    """Whether a request says how old what it is answered may be, or is about nothing that is stored."""
    info = request.info
    if not info.is_resource_request:
        return True
    if info.verb not in ("get", "list", "watch") or b"resourceVersion=" not in request.uri:
        return False
    return bool((request.query.get("resourceVersion") or ("",))[0])
