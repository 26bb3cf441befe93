"""Requests that wait until this server is as far as its storage."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.filters.consistency import CACHE_SYNC_TIMEOUT, MAX_GATHER_ITERATIONS, SLICE_SECONDS, ConsistentReadFilter
from kubetwist.http.requestinfo import request_info_of
from kubetwist.metrics.registry import Registry
from kubetwist.storage.errors import FutureRevision, StorageUnavailable

PODS = b"/api/v1/namespaces/default/pods"


class Storage:
    """Tells how far it is when a test wants."""

    def __init__(self) -> None:
        self.asked: list[Deferred[int]] = []

    async def current_revision(self) -> int:
        """Later."""
        asked: Deferred[int] = Deferred()
        self.asked.append(asked)
        return await asked


class Cache:
    """As far as a test says."""

    def __init__(self, clock: Clock) -> None:
        self.revision = 5
        self._clock = clock
        self._waiting: list[tuple[int, Deferred[None]]] = []

    def wait_until(self, revision: int, timeout: float) -> Deferred[None]:
        """As the real one."""
        waiting: Deferred[None] = Deferred()
        self._clock.callLater(
            timeout, lambda: waiting.called or waiting.errback(FutureRevision(revision, self.revision))
        )
        self._waiting.append((revision, waiting))
        return waiting

    def advance(self, revision: int) -> None:
        """Hear the news."""
        self.revision = revision
        for wanted, waiting in self._waiting:
            if wanted <= revision and not waiting.called:
                waiting.callback(None)


class Request:
    """One request, as far as the filter looks."""

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
        """As that of real ones."""
        return self.finished or self._disconnected

    @property
    def query(self) -> dict[str, list[str]]:
        """The resourceVersion, if any."""
        name, _, value = self.uri.partition(b"?")[2].decode().partition("=")
        return {name: [value]}

    def fail(self, error: APIStatusError) -> None:
        """Be answered with an error."""
        self.failure, self.finished = error, True

    def processingFailed(self, reason: Any) -> None:
        """Likewise."""
        self.failure, self.finished = reason.value, True

    def handle_failure(self, reason: Any) -> None:
        """A bug."""
        raise AssertionError(reason)


class ConsistencyTests(SynchronousTestCase):
    """The filter."""

    def setUp(self) -> None:
        """A storage and two caches."""
        self.clock = Clock()
        self.storage, self.pods, self.others = Storage(), Cache(self.clock), Cache(self.clock)
        self.answered: list[Request] = []

        def find(group: str, resource: str) -> Any:
            return self.pods if resource == "pods" else None

        consistency = ConsistentReadFilter(self.storage, find, self.others, Registry())  # type: ignore[arg-type]
        self.consistency = consistency
        self.handler: Any = consistency.wrap(self.answered.append)  # type: ignore[arg-type]

    def ask(self, *arguments: bytes) -> Request:
        """A request on its way."""
        request = Request(*arguments)
        self.handler(request)
        return request

    def test_waiting(self) -> None:
        """A request is answered when this server is as far as the storage was after it came."""
        request = self.ask()
        self.storage.asked[0].callback(7)
        self.assertEqual(self.answered, [])
        self.pods.advance(6)
        self.assertEqual(self.answered, [])
        self.pods.advance(7)
        self.assertEqual(self.answered, [request])

    def test_asked_once(self) -> None:
        """Those who wait are asked for together; not with those who came before them, whose answer may be too old."""
        first = self.ask()
        others = [self.ask() for _ in range(5)]
        self.assertEqual(len(self.storage.asked), 1)
        self.storage.asked[0].callback(5)
        self.assertEqual(self.answered, [first])
        self.assertEqual(len(self.storage.asked), 2)
        self.storage.asked[1].callback(5)
        self.assertEqual(self.answered, [first, *others])

    def in_turns(self, seconds: Any = lambda: 0.0) -> Any:
        """The filter, where what is to be done soon is done in the next L{turn}."""
        self.soon: list[Any] = []
        return ConsistentReadFilter(
            self.storage,
            lambda *_: None,
            self.others,  # type: ignore[arg-type]
            Registry(),
            self.soon.append,
            seconds,
        ).wrap(self.answered.append)  # type: ignore[arg-type]

    def turn(self) -> int:
        """A turn of the reactor; how often the storage was asked by then."""
        calls, self.soon[:] = self.soon[:], []
        for call in calls:
            call()
        return len(self.storage.asked)

    def test_gathered(self) -> None:
        """As long as each turn brings somebody new they are gathered, up to a few turns; one who is alone waits one."""
        handler = self.in_turns()
        handler(Request())
        self.assertEqual([self.turn(), self.turn()], [0, 1])
        for number in range(MAX_GATHER_ITERATIONS):
            handler(Request())
            if not number:
                self.storage.asked[0].callback(5)
            self.assertEqual(self.turn(), 1 if number < MAX_GATHER_ITERATIONS - 1 else 2)
        self.storage.asked[1].callback(5)
        self.assertEqual(len(self.answered), 1 + MAX_GATHER_ITERATIONS)

    def test_long_turns(self) -> None:
        """What takes long is gone on with in another turn."""
        times = iter((0.0, 0.0, SLICE_SECONDS / 2, SLICE_SECONDS * 2, 1.0, 1.0))
        handler = self.in_turns(lambda: next(times))
        for _ in range(3):
            handler(Request())
        self.assertEqual([self.turn(), self.turn()], [0, 1])
        self.storage.asked[0].callback(5)
        self.assertEqual(len(self.answered), 2)
        self.turn()
        self.assertEqual(len(self.answered), 3)

    def test_what_waits(self) -> None:
        """Writes wait as reads do; what says how old it may be does not, nor what is no resource."""
        for method in (b"POST", b"PUT", b"PATCH", b"DELETE"):
            self.ask(method)
        self.ask(b"GET", PODS + b"?watch=1")
        self.assertEqual(self.answered, [])
        at_once = [self.ask(b"GET", PODS + b"?resourceVersion=0"), self.ask(b"GET", b"/version")]
        self.assertEqual(self.answered, at_once)

    def test_no_news(self) -> None:
        """If the news does not come, reads go to the storage itself; writes are to be tried again."""
        read, write, other = self.ask(), self.ask(b"PUT", PODS + b"/a"), self.ask(b"GET", b"/api/v1/nodes")
        self.storage.asked[0].callback(7)
        self.storage.asked[1].callback(7)
        self.clock.advance(CACHE_SYNC_TIMEOUT)
        self.assertEqual((self.answered, read.read_from_storage), ([read], True))
        self.assertEqual([one.failure.code for one in (write, other)], [504, 504])

    def test_no_storage(self) -> None:
        """If the storage does not answer, neither does this server: nobody is told what may be wrong."""
        request = self.ask()
        self.storage.asked[0].errback(StorageUnavailable("etcdserver: no leader"))
        self.assertEqual((self.answered, str(request.failure)), ([], "etcdserver: no leader"))

    def test_before_authentication(self) -> None:
        """Who is known by objects, or acts as another, waits before it is looked up who it is, and then no more."""
        answered: list[Request] = []
        early: Any = self.consistency.before_authentication(answered.append)  # type: ignore[arg-type]
        anybody, token, other = Request(), Request(), Request()
        token.fields = {b"authorization": [b"Bearer x"]}
        other.fields = {b"impersonate-user": [b"jane"]}
        for request in (anybody, token, other):
            early(request)
        self.assertEqual(answered, [anybody])
        self.storage.asked[0].callback(5)
        self.storage.asked[1].callback(5)
        self.assertEqual(answered, [anybody, token, other])
        for request in (token, other):
            self.handler(request)
        self.assertEqual(self.answered, [token, other])
        self.assertEqual(len(self.storage.asked), 2)

    def test_no_storage_before_authentication(self) -> None:
        """That the storage does not answer is told to nobody before it is known who it is."""
        known: list[Request] = []
        early: Any = self.consistency.before_authentication(known.append)  # type: ignore[arg-type]
        request = Request()
        request.fields = {b"authorization": [b"Bearer x"]}
        early(request)
        self.storage.asked[0].errback(StorageUnavailable("etcdserver: no leader"))
        self.assertEqual((known, request.failure), ([request], None))
        self.handler(request)
        self.assertEqual((self.answered, str(request.failure)), ([], "etcdserver: no leader"))
        self.assertEqual(len(self.storage.asked), 1)

    def test_gone(self) -> None:
        """Who has gone meanwhile is not worked for."""
        early, late = self.ask(), self.ask()
        early._disconnected = True
        self.storage.asked[0].callback(5)
        self.storage.asked[1].callback(7)
        late._disconnected = True
        self.pods.advance(7)
        self.assertEqual(self.answered, [])
