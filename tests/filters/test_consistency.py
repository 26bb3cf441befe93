"""Tests of L{kubetwist.filters.consistency}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.errors import APIStatusError
from kubetwist.filters.consistency import CACHE_SYNC_TIMEOUT, MAX_GATHER_ITERATIONS, SLICE_SECONDS, ConsistentReadFilter
from kubetwist.http.requestinfo import request_info_of
from kubetwist.interfaces import IImmediateRevision
from kubetwist.metrics.registry import Registry
from kubetwist.storage.errors import FutureRevision, StorageUnavailable

PODS = b"/api/v1/namespaces/default/pods"


class Storage:
    """A storage whose current revision is set by the test."""

    def __init__(self) -> None:
        self.queries: list[Deferred[int]] = []

    async def current_revision(self) -> int:
        """Wait until the test sets the revision."""
        queries: Deferred[int] = Deferred()
        self.queries.append(queries)
        return await queries


@implementer(IImmediateRevision)
class ImmediateStorage(Storage):
    """A storage that knows its newest revision."""

    def __init__(self) -> None:
        super().__init__()
        self.newest: int | None = 5
        self.error: StorageUnavailable | None = None

    def newest_revision(self) -> int | None:
        """See L{IImmediateRevision.newest_revision}."""
        if self.error is not None:
            raise self.error
        return self.newest


class Cache:
    """A watch cache whose revision is set by the test."""

    def __init__(self, clock: Clock) -> None:
        self.revision = 5
        self.on_demand = SimpleNamespace(pending=False)
        self._clock = clock
        self._waiting: list[tuple[int, Deferred[None]]] = []

    def wait_until_fresh(self, revision: int, timeout: float) -> Deferred[None]:
        """Wait for a revision, or fail after the timeout."""
        waiting: Deferred[None] = Deferred()
        self._clock.callLater(
            timeout, lambda: waiting.called or waiting.errback(FutureRevision(revision, self.revision))
        )
        self._waiting.append((revision, waiting))
        return waiting

    def advance(self, revision: int) -> None:
        """Set the revision, and call the waiters."""
        self.revision = revision
        for awaited_revision, waiting in self._waiting:
            if awaited_revision <= revision and not waiting.called:
                waiting.callback(None)


class Request:
    """A request with the attributes that the filter reads."""

    def __init__(self, method: bytes = b"GET", uri: bytes = PODS) -> None:
        self.info = request_info_of(method, uri)
        self.uri = uri
        self.finished = self._disconnected = False
        self.read_from_storage = self.cache_is_current = False
        self.consistency_error: Any = None
        self.fields: dict[bytes, list[bytes]] = {}
        self.failure: Any = None

    @property
    def is_done(self) -> bool:
        """Return whether the request is answered or disconnected."""
        return self.finished or self._disconnected

    @property
    def query(self) -> dict[str, list[str]]:
        """Return the only query parameter."""
        name, _, value = self.uri.partition(b"?")[2].decode().partition("=")
        return {name: [value]}

    def fail(self, error: APIStatusError) -> None:
        """Record the error of the response."""
        self.failure, self.finished = error, True

    def processingFailed(self, reason: Any) -> None:
        """Record the failure of the response."""
        self.failure, self.finished = reason.value, True

    def handle_failure(self, reason: Any) -> None:
        """Fail the test."""
        raise AssertionError(reason)


class ConsistencyTests(SynchronousTestCase):
    """L{ConsistentReadFilter}."""

    def setUp(self) -> None:
        """Create a storage and two caches."""
        self.clock = Clock()
        self.storage, self.pods, self.fallback = Storage(), Cache(self.clock), Cache(self.clock)
        self.handled: list[Request] = []

        def find(group: str, resource: str) -> Any:
            return self.pods if resource == "pods" else None

        consistency = ConsistentReadFilter(self.storage, find, self.fallback, Registry())  # type: ignore[arg-type]
        self.consistency = consistency
        self.handler: Any = consistency.wrap(self.handled.append)  # type: ignore[arg-type]

    def ask(self, *arguments: bytes) -> Request:
        """Pass a request to the filter."""
        request = Request(*arguments)
        self.handler(request)
        return request

    def test_waiting(self) -> None:
        """A request continues when the cache has reached the storage's revision at its arrival."""
        request = self.ask()
        self.storage.queries[0].callback(7)
        self.assertEqual(self.handled, [])
        self.pods.advance(6)
        self.assertEqual(self.handled, [])
        self.pods.advance(7)
        self.assertEqual(self.handled, [request])

    def test_unfilled_cache(self) -> None:
        """While the cache is not filled, an object is read from the storage, and lists and writes wait."""
        self.pods.on_demand.pending = True
        get, listing, write = self.ask(b"GET", PODS + b"/a"), self.ask(), self.ask(b"POST")
        for query in self.storage.queries:
            query.callback(7)
        self.assertEqual((self.handled, get.read_from_storage), ([get], True))
        self.pods.advance(7)
        self.assertEqual((self.handled, listing.read_from_storage), ([get, listing, write], False))

    def test_shared_query(self) -> None:
        """Waiting requests share a query; later requests need another one, since its result may be newer."""
        first = self.ask()
        fallback = [self.ask() for _ in range(5)]
        self.assertEqual(len(self.storage.queries), 1)
        self.storage.queries[0].callback(5)
        self.assertEqual(self.handled, [first])
        self.assertEqual(len(self.storage.queries), 2)
        self.storage.queries[1].callback(5)
        self.assertEqual(self.handled, [first, *fallback])

    def deferring_filter(self, seconds: Any = lambda: 0.0) -> Any:
        """Return a handler whose deferred calls run in the next L{turn}."""
        self.soon: list[Any] = []
        return ConsistentReadFilter(
            self.storage,
            lambda *_: None,
            self.fallback,  # type: ignore[arg-type]
            Registry(),
            self.soon.append,
            seconds,
        ).wrap(self.handled.append)  # type: ignore[arg-type]

    def turn(self) -> int:
        """Run the deferred calls; return the number of queries so far."""
        calls, self.soon[:] = self.soon[:], []
        for call in calls:
            call()
        return len(self.storage.queries)

    def test_gathered(self) -> None:
        """
        Requests are gathered while each iteration brings another one, up to the maximum; a single request waits for
        one iteration.
        """
        handler = self.deferring_filter()
        handler(Request())
        self.assertEqual([self.turn(), self.turn()], [0, 1])
        for number in range(MAX_GATHER_ITERATIONS):
            handler(Request())
            if not number:
                self.storage.queries[0].callback(5)
            self.assertEqual(self.turn(), 1 if number < MAX_GATHER_ITERATIONS - 1 else 2)
        self.storage.queries[1].callback(5)
        self.assertEqual(len(self.handled), 1 + MAX_GATHER_ITERATIONS)

    def test_slices(self) -> None:
        """Requests are continued in slices of the maximum duration."""
        times = iter((0.0, 0.0, SLICE_SECONDS / 2, SLICE_SECONDS * 2, 1.0, 1.0))
        handler = self.deferring_filter(lambda: next(times))
        for _ in range(3):
            handler(Request())
        self.assertEqual([self.turn(), self.turn()], [0, 1])
        self.storage.queries[0].callback(5)
        self.assertEqual(len(self.handled), 2)
        self.turn()
        self.assertEqual(len(self.handled), 3)

    def test_what_waits(self) -> None:
        """Writes and watches wait; reads with a resource version and non-resource requests do not."""
        for method in (b"POST", b"PUT", b"PATCH", b"DELETE"):
            self.ask(method)
        self.ask(b"GET", PODS + b"?watch=1")
        self.assertEqual(self.handled, [])
        at_once = [self.ask(b"GET", PODS + b"?resourceVersion=0"), self.ask(b"GET", b"/version")]
        self.assertEqual(self.handled, at_once)

    def test_late_cache(self) -> None:
        """After the timeout of the cache, reads go to the storage and other requests fail with a retriable error."""
        read, write, other = self.ask(), self.ask(b"PUT", PODS + b"/a"), self.ask(b"GET", b"/api/v1/nodes")
        self.storage.queries[0].callback(7)
        self.storage.queries[1].callback(7)
        self.clock.advance(CACHE_SYNC_TIMEOUT)
        self.assertEqual((self.handled, read.read_from_storage), ([read], True))
        self.assertEqual([one.failure.code for one in (write, other)], [504, 504])

    def test_storage_error(self) -> None:
        """An error of the storage fails the request."""
        request = self.ask()
        self.storage.queries[0].errback(StorageUnavailable("etcdserver: no leader"))
        self.assertEqual((self.handled, str(request.failure)), ([], "etcdserver: no leader"))

    def test_before_authentication(self) -> None:
        """A request with a token or impersonation headers waits before authentication, and not again after it."""
        handled: list[Request] = []
        early: Any = self.consistency.before_authentication(handled.append)  # type: ignore[arg-type]
        anonymous, token, other = Request(), Request(), Request()
        token.fields = {b"authorization": [b"Bearer x"]}
        other.fields = {b"impersonate-user": [b"jane"]}
        for request in (anonymous, token, other):
            early(request)
        self.assertEqual(handled, [anonymous])
        self.storage.queries[0].callback(5)
        self.storage.queries[1].callback(5)
        self.assertEqual(handled, [anonymous, token, other])
        for request in (token, other):
            self.handler(request)
        self.assertEqual(self.handled, [token, other])
        self.assertEqual(len(self.storage.queries), 2)

    def test_storage_error_before_authentication(self) -> None:
        """An error of the storage before authentication is answered after it."""
        known: list[Request] = []
        early: Any = self.consistency.before_authentication(known.append)  # type: ignore[arg-type]
        request = Request()
        request.fields = {b"authorization": [b"Bearer x"]}
        early(request)
        self.storage.queries[0].errback(StorageUnavailable("etcdserver: no leader"))
        self.assertEqual((known, request.failure), ([request], None))
        self.handler(request)
        self.assertEqual((self.handled, str(request.failure)), ([], "etcdserver: no leader"))
        self.assertEqual(len(self.storage.queries), 1)

    def test_disconnected(self) -> None:
        """A request whose client has disconnected is not continued."""
        early, late = self.ask(), self.ask()
        early._disconnected = True
        self.storage.queries[0].callback(5)
        self.storage.queries[1].callback(7)
        late._disconnected = True
        self.pods.advance(7)
        self.assertEqual(self.handled, [])


class ImmediateRevisionTests(SynchronousTestCase):
    """L{ConsistentReadFilter} with a storage that knows its newest revision."""

    def setUp(self) -> None:
        """Create a storage and a cache."""
        self.clock = Clock()
        self.storage, self.pods = ImmediateStorage(), Cache(self.clock)
        self.handled: list[Request] = []
        consistency = ConsistentReadFilter(
            self.storage,  # type: ignore[arg-type]
            lambda group, resource: self.pods,  # type: ignore[arg-type, return-value]
            self.pods,  # type: ignore[arg-type]
            Registry(),
            lambda call: self.clock.callLater(0, call),
        )
        self.handler: Any = consistency.wrap(self.handled.append)  # type: ignore[arg-type]
        self.before: Any = consistency.before_authentication(self.handled.append)  # type: ignore[arg-type]

    def test_current(self) -> None:
        """A request continues at once if its cache has the newest revision."""
        request = Request()
        self.handler(request)
        self.assertEqual((self.handled, self.storage.queries), ([request], []))

    def test_behind(self) -> None:
        """A request waits until its cache has reached the newest revision at its arrival."""
        self.storage.newest = 7
        request = Request()
        self.handler(request)
        self.storage.newest = 8
        self.pods.advance(6)
        self.assertEqual(self.handled, [])
        self.pods.advance(7)
        self.assertEqual((self.handled, self.storage.queries), ([request], []))

    def test_unknown(self) -> None:
        """The revision is requested if the storage does not know it."""
        self.storage.newest = None
        request = Request()
        self.handler(request)
        for _ in range(MAX_GATHER_ITERATIONS):
            self.clock.advance(0)
        self.storage.queries[0].callback(5)
        self.assertEqual(self.handled, [request])

    def test_unavailable(self) -> None:
        """An error of the storage is answered after authentication."""
        self.storage.error = StorageUnavailable("no connection")
        request, identified = Request(), Request()
        self.handler(request)
        self.assertIs(request.failure, self.storage.error)
        identified.fields[b"authorization"] = [b"Bearer token"]
        self.before(identified)
        self.assertEqual(self.handled, [identified])
        self.handler(identified)
        self.assertIs(identified.failure, self.storage.error)
