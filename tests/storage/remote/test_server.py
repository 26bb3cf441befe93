"""Tests for L{kubetwist.storage.remote._server} and its connections, with raw messages."""

from __future__ import annotations

from struct import pack
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import alsoProvides

from kubetwist.api.storage import Write
from kubetwist.interfaces import ISharedStorage, IStorageObserver, IStorageWatch
from kubetwist.storage.errors import StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.remote import _connection, _messages, _requests, _server
from kubetwist.storage.remote._frames import MAX_FRAME_SIZE, FrameReader, encode_frame
from kubetwist.storage.remote._messages import (
    COMMIT,
    EVENTS,
    HELLO,
    LOST,
    REQUEST,
    RESPONSE,
    RESULTS,
    WELCOME,
)
from kubetwist.storage.remote._requests import (
    FAILED,
    Method,
    Request,
)

from .wire import StorageProcess, TurningReactor, WireEnd

_HELLO = encode_frame(HELLO, [_messages.encode_hello()])


class RawFront:
    """A front that speaks the protocol by itself; it records the frames it receives."""

    def __init__(self, reactor: TurningReactor, process: StorageProcess) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.lost = False
        self._reader = FrameReader()
        self.wire, far = WireEnd(reactor), WireEnd(reactor)
        self.wire.other, far.other = far, self.wire
        self.wire.protocol = self
        assert process.server is not None
        self.connection: Any = process.server.factory().buildProtocol(None)
        far.protocol = self.connection
        self.far = far
        self.connection.makeConnection(far)

    def dataReceived(self, data: bytes) -> None:
        """Record frames."""
        self.frames += self._reader.feed(data)

    def connectionLost(self, reason: object) -> None:
        """Record the end."""
        self.lost = True

    def kinds(self) -> list[int]:
        """Return the kinds of the received frames, and forget the frames."""
        kinds = [kind for kind, _ in self.frames]
        self.frames = []
        return kinds


class ServerCase(SynchronousTestCase):
    """A server over a store in memory."""

    def setUp(self) -> None:
        """Start the server."""
        self.reactor = TurningReactor()
        self.storage = MemoryStorage(self.reactor)
        self.process = StorageProcess(self.storage, self.reactor)
        self.server = self.reactor.run(self.process.start())
        self.addCleanup(lambda: self.reactor.run(self.process.stop()))

    def front(self, *, welcomed: bool = True) -> RawFront:
        """Return a new front."""
        front = RawFront(self.reactor, self.process)
        if welcomed:
            front.wire.write(_HELLO)
            self.reactor.settle()
            self.assertEqual(front.kinds(), [WELCOME])
        return front

    def commit(self, front: RawFront, *transactions: list[Write], first: int = 1) -> None:
        """Send transactions in one frame."""
        encoded = [_messages.encode_transaction(first + index, writes) for index, writes in enumerate(transactions)]
        front.wire.write(encode_frame(COMMIT, encoded))
        self.reactor.settle()

    def request(self, front: RawFront, method: int, text: str = "") -> None:
        """Send a request."""
        front.wire.write(encode_frame(REQUEST, [_requests.encode_request(Request(1, method, text))]))
        self.reactor.settle()


class MessagesTests(ServerCase):
    """What a front receives."""

    def test_batch(self) -> None:
        """The events and results of transactions of one frame are sent together, the results last."""
        front, other = self.front(), self.front()
        self.commit(front, [Write("/r/a", b"1", 0)], [Write("/r/a", b"2", 0)], [Write("/r/b", b"3", 0)])
        self.assertEqual([kind for kind, _ in front.frames], [EVENTS, EVENTS, RESULTS])
        results = _messages.decode_results(front.frames[-1][1])
        self.assertEqual([(result.number, result.revision) for result in results], [(1, 2), (2, 0), (3, 3)])
        self.assertEqual(other.kinds(), [EVENTS, EVENTS])

    def test_references(self) -> None:
        """The value of a change is sent to the other fronts only."""
        front, other = self.front(), self.front()
        value = bytes(range(256)) * 100
        self.commit(front, [Write("/r/a", value, 0)])
        self.assertIn(value, other.frames[0][1])
        self.assertNotIn(value[:256], front.frames[0][1])
        self.assertLess(front.wire.received_bytes, 200)

    def test_divided_events(self) -> None:
        """Many events are divided between revisions."""
        front = self.front()
        self.patch(_server, "PART_SIZE", 100)
        for number in range(3):
            self.storage.commit([Write(f"/r/{number}{letter}", bytes(40), 0) for letter in "abcd"])
        events = list(self.storage._changes)
        self.reactor.settle()
        front.frames = []
        self.server.committed(events)
        self.server.progressed(10)
        self.reactor.settle()
        decoded = [
            _messages.decode_events(payload, lambda *place: self.fail("a reference")) for _, payload in front.frames
        ]
        self.assertEqual([(revision, len(found)) for revision, _, found in decoded], [(2, 4), (3, 4), (10, 4)])

    def test_huge_transaction(self) -> None:
        """Events that are too large for a frame are lost for fronts, which are notified."""
        front = self.front()
        self.patch(_server, "MAX_FRAME_SIZE", 1000)
        self.storage.commit([Write("/r/a", bytes(1000), 0)])
        self.reactor.settle()
        self.assertEqual(front.frames, [(LOST, _messages.encode_position(2, 0))])

    def test_page_before_result(self) -> None:
        """The newest revision is in shared memory before a result is sent."""
        assert self.server.page is not None
        written: list[int] = []
        self.patch(self.server.page, "write", lambda revision: written.append(revision))
        front = self.front()
        front.wire.write(encode_frame(COMMIT, [_messages.encode_transaction(1, [Write("/r/a", b"", 0)])]))
        self.reactor.turn()
        self.assertEqual((written, front.frames), ([2], []))
        self.reactor.settle()
        self.assertEqual(front.kinds(), [EVENTS, RESULTS])

    def test_shared_storage(self) -> None:
        """There is no shared memory if other servers write to the storage."""
        alsoProvides(self.storage, ISharedStorage)
        process = StorageProcess(self.storage, self.reactor)
        process._opened = True
        server = self.reactor.run(process.start())
        self.assertIsNone(server.page)
        self.reactor.run(server.stop())

    def test_failed_backend(self) -> None:
        """An unexpected exception of the backend is logged, and the front receives an error of storage."""
        front = self.front()
        self.patch(self.storage, "commit", lambda writes: fail(ZeroDivisionError()))
        self.commit(front, [Write("/r/a", b"", 0)])
        self.patch(self.storage, "commit", lambda writes: 1 // 0)
        self.commit(front, [Write("/r/a", b"", 0)])
        errors = [_messages.decode_results(payload)[0].error for _, payload in front.frames]
        self.assertEqual([error and error.reason for error in errors], ["the storage process failed to write"] * 2)
        front.frames = []

        async def read(key: str) -> None:
            raise ZeroDivisionError

        self.patch(self.storage, "read", read)
        self.request(front, Method.READ, "/r/a")
        _, kind, content = _requests.decode_response(front.frames[0][1])
        self.assertEqual(
            (kind, _requests.decode_failure(content).reason), (FAILED, "the storage process failed to answer")
        )
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 3)

    def test_disconnected_writer(self) -> None:
        """A transaction of a front that has disconnected is completed."""
        front, other = self.front(), self.front()
        answers: list[Deferred[int]] = []
        commit = self.storage.commit

        def late(writes: Any) -> Deferred[int]:
            answers.append(Deferred())
            return answers[-1]

        self.patch(self.storage, "commit", late)
        self.commit(front, [Write("/r/a", b"", 0)])
        front.wire.loseConnection()
        self.reactor.settle()
        commit([Write("/r/a", b"", 0)])
        answers[0].callback(2)
        self.reactor.settle()
        self.assertEqual(other.kinds(), [EVENTS])

    def test_stop(self) -> None:
        """A server that is stopped closes its connections, and accepts no more."""
        front = self.front()
        self.reactor.run(self.server.stop())
        self.reactor.settle()
        self.assertTrue(front.lost)
        late = self.front(welcomed=False)
        self.reactor.settle()
        self.assertTrue(late.lost)


class LimitTests(ServerCase):
    """Fronts that do not follow the protocol, or do not read."""

    def assert_refused(self, data: bytes, *, welcomed: bool = True) -> None:
        """Send data after which the connection is closed; another front is not affected."""
        front, other = self.front(welcomed=welcomed), self.front()
        front.wire.write(data)
        self.reactor.settle()
        self.assertTrue(front.lost)
        self.commit(other, [Write("/r/a", b"", None)])
        self.assertEqual(other.kinds(), [EVENTS, RESULTS])

    def test_malformed(self) -> None:
        """A front that sends a malformed message loses its connection."""
        self.assert_refused(encode_frame(COMMIT, [b"x"]))
        self.assert_refused(encode_frame(REQUEST, [b"x"]))

    def test_unknown(self) -> None:
        """A front that sends an unknown message, or calls an unknown method, loses its connection."""
        self.assert_refused(encode_frame(99, []))
        self.assert_refused(encode_frame(REQUEST, [_requests.encode_request(Request(1, 99))]))

    def test_oversized(self) -> None:
        """A front that announces too large a frame loses its connection."""
        self.assert_refused(pack("<IB", MAX_FRAME_SIZE + 1, COMMIT))

    def test_no_hello(self) -> None:
        """A front begins with its version, and sends it once."""
        transaction = encode_frame(COMMIT, [_messages.encode_transaction(1, [Write("/r/a", b"", 0)])])
        self.assert_refused(transaction, welcomed=False)
        self.assert_refused(_HELLO)
        self.assertEqual(self.reactor.run(self.storage.read_page("/r/")).items[0].revision, self.storage.revision)

    def test_many_connections(self) -> None:
        """The number of fronts is limited."""
        self.patch(_server, "MAX_CONNECTIONS", 1)
        first, second = self.front(), self.front(welcomed=False)
        self.reactor.settle()
        self.assertEqual((first.lost, second.lost), (False, True))

    def test_unread_events(self) -> None:
        """A front that does not read loses its position when too much is unread, and only that front."""
        self.patch(_connection, "MAX_UNREAD_EVENTS", 200_000)
        stuck, other = self.front(), self.front()
        stuck.wire.reading = False
        for _ in range(20):
            self.storage.commit([Write("/r/a", bytes(50_000), None)])
            self.reactor.settle()
        self.assertLess(stuck.connection._events_size, 200_000)
        self.assertEqual(other.kinds(), [EVENTS] * 20)
        stuck.wire.resumeProducing()
        self.reactor.settle()
        kinds = stuck.kinds()
        self.assertEqual((kinds[:-1], kinds[-1]), ([EVENTS] * (len(kinds) - 1), LOST))
        self.assertLess(len(kinds), 10)
        self.storage.commit([Write("/r/a", b"after", None)])
        self.reactor.settle()
        self.assertEqual(stuck.kinds(), [EVENTS])

    def test_unread_results(self) -> None:
        """A front that does not read receives the results of its transactions when it reads again."""
        self.patch(_connection, "MAX_UNREAD_EVENTS", 100_000)
        stuck = self.front()
        stuck.wire.reading = False
        for number in range(10):
            self.storage.commit([Write("/r/a", bytes(50_000), None)])
            self.commit(stuck, [Write(f"/r/{number}", b"", 0)], first=number)
        stuck.wire.resumeProducing()
        self.reactor.settle()
        results = [payload for kind, payload in stuck.frames if kind == RESULTS]
        numbers = [result.number for payload in results for result in _messages.decode_results(payload)]
        self.assertEqual(numbers, list(range(10)))

    def test_unread_responses(self) -> None:
        """A front that does not read its responses is not read until it does."""
        self.patch(_connection, "MAX_UNREAD_RESPONSES", 200_000)
        self.storage.commit([Write("/r/a", bytes(100_000), None)])
        front = self.front()
        front.wire.reading = False
        for _ in range(20):
            self.request(front, Method.READ, "/r/a")
        self.assertFalse(front.far.reading)
        self.assertLess(front.connection._responses_size, 400_000)
        front.wire.resumeProducing()
        self.reactor.settle()
        self.assertEqual(front.kinds(), [RESPONSE] * 20)
        self.assertTrue(front.far.reading)

    def test_many_in_progress(self) -> None:
        """A front with many transactions in progress is not read until some are completed."""
        self.patch(_connection, "MAX_IN_PROGRESS", 3)
        answers: list[Deferred[int]] = []

        def late(writes: Any) -> Deferred[int]:
            answers.append(Deferred())
            return answers[-1]

        self.patch(self.storage, "commit", late)
        front = self.front()
        for number in range(5):
            self.commit(front, [Write(f"/r/{number}", b"", 0)], first=number)
        self.assertEqual((len(answers), front.far.reading), (3, False))
        for answer in answers[:3]:
            answer.callback(2)
        self.reactor.settle()
        self.assertEqual((len(answers), front.far.reading), (5, True))


class LostWatchTests(ServerCase):
    """A backend that ends the watch of the server."""

    def test_watched_again(self) -> None:
        """The backend is watched again, and fronts are notified that changes may be missing."""
        front = self.front()
        self.storage._observers.end(StorageUnavailable("lost"))
        self.reactor.advance(1)
        self.reactor.settle()
        self.assertEqual(front.kinds(), [LOST])
        self.commit(front, [Write("/r/a", b"", 0)])
        self.assertEqual(front.kinds(), [EVENTS, RESULTS])

    def test_failing_backend(self) -> None:
        """The watch is tried again until the backend is available."""
        front = self.front()
        attempts: list[int] = []
        watch = self.storage.watch

        async def failing(prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
            attempts.append(revision)
            if len(attempts) < 3:
                raise StorageUnavailable("no member")
            return await watch(prefix, revision, observer)

        self.patch(self.storage, "watch", failing)
        self.storage._observers.end(StorageUnavailable("lost"))
        for _ in range(3):
            self.reactor.advance(1)
        self.reactor.settle()
        self.assertEqual(len(attempts), 3)
        front.frames = []
        self.commit(front, [Write("/r/a", b"", 0)])
        self.assertEqual(front.kinds(), [EVENTS, RESULTS])
