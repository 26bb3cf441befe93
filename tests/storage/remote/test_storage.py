"""Tests for L{kubetwist.storage.remote._storage}."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import alsoProvides
from zope.interface.verify import verifyObject

from kubetwist.api.record import Draft
from kubetwist.api.storage import Write
from kubetwist.interfaces import IExpiringStorage, IImmediateRevision, IProbedStorage, ISharedStorage, IStorageHistory
from kubetwist.storage.errors import (
    InvalidArgument,
    OutcomeUnknown,
    RevisionCompacted,
    StorageUnavailable,
    StorageUnwritable,
    WatchInterrupted,
)
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.remote import RemoteStorage, _calls, _client, _connection
from kubetwist.storage.remote._connection import StorageConnection
from kubetwist.storage.remote._errors import ErrorFields
from kubetwist.storage.remote._frames import encode_frame
from kubetwist.storage.remote._messages import LOST, RESULTS, Result, encode_result
from kubetwist.storage.remote._requests import Method, Request, encode_number, encode_page_head
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.testing.storage import RecordingObserver, storage_tests

from .wire import StorageProcess, TurningReactor, remote_memory


def remote_sqlite(case: Any, reactor: Any) -> RemoteStorage:
    """Return the storage of a front over a store in a file."""
    directory = tempfile.TemporaryDirectory()
    process = StorageProcess(SQLiteStorage(f"{directory.name}/store", reactor), reactor)
    case.addCleanup(directory.cleanup)
    case.addCleanup(lambda: reactor.run(process.stop()))
    return process.front()


class RemoteMemoryTests(storage_tests(remote_memory, TurningReactor)):
    """L{RemoteStorage} over a store in memory passes the tests of all stores."""


class RemoteSQLiteTests(storage_tests(remote_sqlite, TurningReactor)):
    """L{RemoteStorage} over a store in a file passes the tests of all stores."""


class RemoteCase(SynchronousTestCase):
    """A storage process with a store in memory."""

    def setUp(self) -> None:
        """Start the process."""
        self.reactor = TurningReactor()
        self.memory = MemoryStorage(self.reactor)
        self.process = StorageProcess(self.memory, self.reactor)
        self.addCleanup(lambda: self.reactor.run(self.process.stop()))

    def open(self, **options: Any) -> RemoteStorage:
        """Return the open storage of a new front."""
        front = self.process.front(**options)
        self.addCleanup(lambda: self.reactor.run(front.close()))
        self.reactor.run(front.open())
        return front

    def follow(self, front: RemoteStorage) -> RecordingObserver:
        """Watch all keys of the tests."""
        observer = RecordingObserver()
        self.reactor.run(front.watch("/r/", front.revision, observer))
        return observer

    def reconnect(self, front: RemoteStorage) -> None:
        """Wait until a front has its connection again."""
        self.process.refusing = False
        for _ in range(20):
            self.reactor.advance(2)
            self.reactor.settle()
        self.assertIsNotNone(front._client)


class SharingTests(RemoteCase):
    """Several fronts."""

    def test_interface(self) -> None:
        """The storage of a front is shared, keeps past changes, and has the other capabilities of backends."""
        front = self.open()
        for interface in (ISharedStorage, IImmediateRevision, IStorageHistory, IExpiringStorage, IProbedStorage):
            verifyObject(interface, front)

    def test_writes_of_all_fronts(self) -> None:
        """All fronts observe all writes; attachments are for the writer's front only."""
        first, second = self.open(), self.open()
        observers = [self.follow(first), self.follow(second)]
        mark = object()
        one = self.reactor.run(first.commit([Write("/r/a", b"1", 0, attachment=mark)]))
        two = self.reactor.run(second.commit([Write("/r/a", b"2", one, attachment=mark)]))
        self.memory.commit([Write("/r/a", b"3", two)])
        self.reactor.settle()
        expected = [("/r/a", b"1", one, 0), ("/r/a", b"2", two, one), ("/r/a", b"3", two + 1, two)]
        self.assertEqual([observer.seen() for observer in observers], [expected, expected])
        attached = [[event.attachment for event in observer.events] for observer in observers]
        self.assertEqual(attached, [[mark, None, None], [None, mark, None]])

    def test_drafts(self) -> None:
        """The draft of an object is attached to its events in all fronts."""
        first, second = self.open(), self.open()
        observers = [self.follow(first), self.follow(second)]
        draft = Draft(b'{"metadata":{"name":"a","labels":{"app":"x"}}}', {"app": "x"}, {"spec.nodeName": "n"})
        value = b'{"kind":"Pod",' + draft.body[1:] + b"\n"
        self.reactor.run(first.commit([Write("/r/a", value, 0, attachment=draft)]))
        self.reactor.settle()
        own, other = (observer.events[0].attachment for observer in observers)
        self.assertIs(own, draft)
        assert isinstance(other, Draft)
        self.assertEqual((other.body, other.labels, other.fields), (draft.body, draft.labels, draft.fields))

    def test_revision_request(self) -> None:
        """Without shared memory, all readers of an iteration share one request of the newest revision."""
        front = self.open()
        self.assertIsNone(front.newest_revision())
        requests: list[Request] = []
        client = front._client
        assert client is not None
        send = client.request

        def record(request: Request) -> Deferred[list[bytes]]:
            requests.append(request)
            return send(request)

        self.patch(client, "request", record)
        revision = self.reactor.run(front.commit([Write("/r/a", b"", 0)]))
        answers = [Deferred.fromCoroutine(front.current_revision()) for _ in range(20)]
        self.assertEqual([self.reactor.run(answer) for answer in answers], [revision] * 20)
        self.assertEqual([request.method for request in requests], [Method.CURRENT_REVISION])

    def test_compaction_claim(self) -> None:
        """One front compacts; another one takes over when it disconnects."""
        first, second = self.open(), self.open()
        turns = [[self.reactor.run(front.claim_compaction(1)) for front in (first, second)] for _ in range(2)]
        self.assertEqual(turns, [[True, False]] * 2)
        self.reactor.run(first.close())
        self.reactor.settle()
        self.assertTrue(self.reactor.run(second.claim_compaction(1)))

    def test_compaction_by_another_front(self) -> None:
        """The compaction of another front is known with the next change, or the next read that needs it."""
        first, second = self.open(), self.open()
        for number in range(4):
            self.reactor.run(first.commit([Write("/r/a", b"%d" % number, None)]))
        self.reactor.run(first.compact(4))
        with self.assertRaises(RevisionCompacted):
            self.reactor.run(second.read_page("/r/", revision=3))
        self.assertEqual(second.compacted, 4)
        self.reactor.run(first.compact(5))
        self.reactor.run(first.commit([Write("/r/b", b"", None)]))
        self.reactor.settle()
        self.assertEqual(second.compacted, 5)

    def test_expirations(self) -> None:
        """The times at which keys expire are read from the storage process."""
        front = self.open()
        self.reactor.run(front.commit([Write("/r/a", b"", 0, ttl=10)]))
        self.reactor.run(front.commit([Write("/r/b", b"", 0)]))
        expirations = self.reactor.run(front.expiration_times("/r/"))
        self.assertEqual(expirations, {"/r/a": self.reactor.seconds() + 10})

    def test_probe(self) -> None:
        """The check for writes is made by the storage process, if its backend can be readable but not writable."""
        front = self.open()
        self.reactor.run(front.probe_writing())
        alsoProvides(self.memory, IProbedStorage)

        async def probe() -> None:
            raise StorageUnwritable("/data/store", "the disk is full")

        self.memory.probe_writing = probe  # type: ignore[attr-defined]
        with self.assertRaises(StorageUnwritable) as caught:
            self.reactor.run(front.probe_writing())
        self.assertEqual((caught.exception.path, caught.exception.reason), ("/data/store", "the disk is full"))

    def test_long_page(self) -> None:
        """A long page is sent in several parts."""
        front = self.open()
        writes = [Write(f"/r/{number:04}", bytes(1000), 0) for number in range(1500)]
        self.reactor.run(front.commit(writes))
        page = self.reactor.run(front.read_page("/r/"))
        self.assertEqual([item.key for item in page.items], [write.key for write in writes])
        assert front._client is not None
        parts = self.reactor.run(front._client.request(Request(0, Method.READ_PAGE, "/r/")))
        self.assertGreater(len(parts), 5)
        self.assertLess(max(map(len, parts)), 300_000)

    def test_oversized_transaction(self) -> None:
        """A transaction that is too large for a frame is refused; the connection remains."""
        front = self.open()
        self.patch(_client, "MAX_FRAME_SIZE", 10_000)
        with self.assertRaises(InvalidArgument):
            self.reactor.run(front.commit([Write("/r/a", bytes(10_000), 0)]))
        self.reactor.run(front.commit([Write("/r/a", bytes(9000), 0)]))

    def test_divided_batch(self) -> None:
        """The transactions of an iteration are divided into frames, and keep their order."""
        front = self.open()
        self.patch(_client, "PART_SIZE", 1000)
        answers = [front.commit([Write("/r/a", bytes(400), None)]) for _ in range(10)]
        self.assertEqual([self.reactor.run(answer) for answer in answers], list(range(2, 12)))

    def test_unread_writes(self) -> None:
        """Writes are refused while the storage process does not read them, and nothing of these is written."""
        front = self.open()
        self.patch(_client, "MAX_UNREAD_WRITES", 400_000)
        (_, far) = self.process.wires[0]
        far.reading = False
        accepted, refused = 0, 0
        answers = []
        for number in range(20):
            answer = front.commit([Write(f"/r/{number:02}", bytes(50_000), 0)])
            self.reactor.settle()
            if answer.called:
                self.failureResultOf(answer, StorageUnavailable)
                refused += 1
            else:
                answers.append(answer)
                accepted += 1
        self.assertGreater(refused, 5)
        far.resumeProducing()
        self.assertEqual([self.reactor.run(answer) for answer in answers], list(range(2, 2 + accepted)))
        self.assertEqual(len(self.reactor.run(front.read_page("/r/")).items), accepted)


class StartTests(RemoteCase):
    """The start of a front."""

    def test_late_process(self) -> None:
        """A front waits for the storage process."""
        self.process.refusing = True
        front = self.process.front()
        opening = Deferred.fromCoroutine(front.open())
        self.addCleanup(lambda: self.reactor.run(front.close()))
        self.reactor.advance(1)
        self.assertNoResult(opening)
        self.reconnect(front)
        self.successResultOf(opening)

    def test_no_process(self) -> None:
        """A front without a storage process does not start."""
        self.process.refusing = True
        front = self.process.front(start_timeout=3)
        opening = Deferred.fromCoroutine(front.open())
        self.reactor.advance(3)
        error = self.failureResultOf(opening, StorageUnavailable).value
        self.assertIn("the process is not running", str(error))
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_silent_process(self) -> None:
        """A connection that is not welcomed is closed, and tried again."""
        front = self.process.front()
        opening = Deferred.fromCoroutine(front.open())
        self.addCleanup(lambda: self.reactor.run(front.close()))
        self.reactor.run(self.process.start())
        (wire,) = self.process.wires
        wire[1].reading = False
        self.reactor.settle()
        self.reactor.advance(_client.WELCOME_TIMEOUT)
        self.reactor.settle()
        self.assertNoResult(opening)
        self.reconnect(front)
        self.successResultOf(opening)
        self.assertEqual(len(self.process.wires), 2)

    def test_opened_twice(self) -> None:
        """A storage is opened once."""
        front = self.open()
        with self.assertRaises(StorageUnavailable):
            self.reactor.run(front.open())


class LossTests(RemoteCase):
    """A front that loses its connection."""

    def lose(self) -> None:
        """Cut all connections, and refuse new ones."""
        self.process.refusing = True
        self.process.disconnect()

    def test_calls(self) -> None:
        """Calls without a connection fail immediately, and succeed when there is one again."""
        front = self.open()
        self.lose()
        attempts = (
            lambda: front.commit([Write("/r/a", b"", 0)]),
            lambda: front.read("/r/a"),
            lambda: front.current_revision(),
            lambda: front.watch("/r/", 1, RecordingObserver()),
        )
        for attempt in attempts:
            with self.assertRaises(StorageUnavailable):
                self.reactor.run(attempt())
        self.reconnect(front)
        self.assertEqual(self.reactor.run(front.commit([Write("/r/a", b"", 0)])), 2)

    def test_requests(self) -> None:
        """Requests in progress fail."""
        front = self.open()
        answers = [Deferred.fromCoroutine(front.read("/r/a")), Deferred.fromCoroutine(front.current_revision())]
        self.reactor.advance(0)
        self.lose()
        for answer in answers:
            self.failureResultOf(answer, StorageUnavailable)

    def test_watches(self) -> None:
        """Watches continue with the changes since the loss, without a gap."""
        front = self.open()
        observer = self.follow(front)
        self.reactor.run(front.commit([Write("/r/a", b"1", 0)]))
        self.lose()
        self.memory.commit([Write("/r/a", b"2", None)])
        self.memory.commit([Write("/r/b", b"3", None)])
        self.reconnect(front)
        self.memory.commit([Write("/r/b", b"4", None)])
        self.reactor.settle()
        self.assertEqual([revision for _, _, revision, _ in observer.seen()], [2, 3, 4, 5])
        self.assertEqual((observer.reasons, front.revision), ([], 5))

    def test_changes_while_resuming(self) -> None:
        """Changes that arrive while the missed ones are read follow these."""
        front = self.open()
        observer = self.follow(front)
        self.lose()
        self.memory.commit([Write("/r/a", b"1", None)])
        read = _calls._METHODS[Method.READ_EVENTS]
        waiting: Deferred[None] = Deferred()

        async def late(*args: Any) -> bytes:
            self.memory.commit([Write("/r/a", b"2", None)])
            await waiting
            return await read(*args)

        self.patch(_calls, "_METHODS", {**_calls._METHODS, Method.READ_EVENTS: late})
        self.process.refusing = False
        self.reactor.advance(1)
        self.reactor.settle()
        self.assertEqual(observer.events, [])
        with self.assertRaises(StorageUnavailable):
            self.reactor.run(front.commit([Write("/r/a", b"3", None)]))
        waiting.callback(None)
        self.reactor.settle()
        self.assertEqual([event.value for event in observer.events], [b"1", b"2"])
        self.assertEqual(self.reactor.run(front.commit([Write("/r/a", b"3", None)])), 4)

    def test_compacted_changes(self) -> None:
        """Watches end if the changes since the loss are compacted."""
        front = self.open()
        observer = self.follow(front)
        self.lose()
        for number in range(3):
            self.memory.commit([Write("/r/a", b"%d" % number, None)])
        self.reactor.run(self.memory.compact(4))
        self.reconnect(front)
        (reason,) = observer.reasons
        self.assertIsInstance(reason, RevisionCompacted)
        self.assertEqual((front.revision, front.compacted), (4, 4))

    def test_replaced_data(self) -> None:
        """Watches end if the storage process returns with an older state."""
        front = self.open()
        observer = self.follow(front)
        self.reactor.run(front.commit([Write("/r/a", b"1", 0)]))
        self.lose()
        self.memory = MemoryStorage(self.reactor)
        process = StorageProcess(self.memory, self.reactor)
        self.addCleanup(lambda: self.reactor.run(process.stop()))
        self.patch(self.process, "_connect", process._connect)
        self.reconnect(front)
        self.assertIsInstance(observer.reasons[0], StorageUnavailable)
        self.assertEqual(front.revision, 1)
        self.assertEqual(self.reactor.run(front.commit([Write("/r/a", b"1", 0)])), 2)

    def test_unread_events(self) -> None:
        """The watches of a front that has not read for too long end, and the next ones begin at the newest state."""
        self.patch(_connection, "MAX_UNREAD_EVENTS", 100_000)
        front = self.open()
        observer = self.follow(front)
        near, _ = self.process.wires[0]
        near.reading = False
        for _ in range(10):
            self.memory.commit([Write("/r/a", bytes(50_000), None)])
            self.reactor.settle()
        near.resumeProducing()
        self.reactor.settle()
        self.assertIsInstance(observer.reasons[0], WatchInterrupted)
        self.assertLess(len(observer.events), 10)
        again = self.follow(front)
        self.reactor.run(front.commit([Write("/r/b", b"", 0)]))
        self.assertEqual(again.seen(), [("/r/b", b"", 12, 0)])

    def test_invalid_message(self) -> None:
        """A front that receives an invalid message connects again."""
        front = self.open()
        _, far = self.process.wires[0]
        self.process.refusing = True
        far.write(encode_frame(RESULTS, [b"x"]))
        self.reactor.settle()
        with self.assertRaises(StorageUnavailable) as caught:
            self.reactor.run(front.read("/r/a"))
        self.assertIn("invalid message", str(caught.exception))
        self.reconnect(front)

    def test_invalid_error(self) -> None:
        """A write whose result has an unknown error is resolved as one without a result."""
        front = self.open()
        _, far = self.process.wires[0]
        far.reading = False
        answer = front.commit([Write("/r/a", b"", 0)])
        self.reactor.advance(0)
        assert front._client is not None
        (number,) = front._client.transactions
        far.write(encode_frame(RESULTS, [encode_result(Result(number, 0, ErrorFields(200)))]))
        self.reactor.settle()
        self.assertNoResult(answer)
        self.reconnect(front)
        self.failureResultOf(answer, OutcomeUnknown)

    def test_invalid_response(self) -> None:
        """A response that does not match its request is an error of storage; the connection remains."""
        front = self.open()
        invalid = [encode_number(1), encode_page_head(1, False), b""]

        async def answer(*args: Any) -> bytes:
            return invalid.pop()

        async def divided(server: Any, claimant: object, request: Request, send_part: Any) -> bytes:
            send_part(encode_number(1))
            return encode_number(2)

        self.patch(_calls, "_METHODS", {**_calls._METHODS, Method.READ: answer, Method.CURRENT_REVISION: divided})
        while invalid:
            with self.assertRaises(StorageUnavailable):
                self.reactor.run(front.read("/r/a"))
        with self.assertRaises(StorageUnavailable):
            self.reactor.run(front.current_revision())
        self.reactor.run(front.commit([Write("/r/a", b"", 0)]))

    @settings(max_examples=30, deadline=None)
    @given(frames=st.lists(st.tuples(st.sampled_from([0, 16, 17, 18, 19, 20]), st.binary(max_size=40)), max_size=3))
    def test_random_messages(self, frames: list[tuple[int, bytes]]) -> None:
        """After any messages of the storage process, a front has a connection, or establishes another one."""
        front = self.open()
        _, far = self.process.wires[-1]
        for kind, payload in frames:
            if kind != LOST:
                far.write(encode_frame(kind, [payload]))
        self.reconnect(front)
        self.reactor.run(front.read_page("/r/"))
        self.reactor.run(front.close())

    # Transactions without a result.

    def commit_and_lose(self, write: Write) -> tuple[RemoteStorage, Deferred[int]]:
        """Send a write, and lose the connection before it arrives."""
        front = self.open()
        self.reactor.run(front.commit([Write("/r/first", b"", 0)]))
        answer = front.commit([write])
        self.reactor.advance(0)
        self.lose()
        self.assertNoResult(answer)
        return front, answer

    def restart(self) -> None:
        """Let another process serve the storage."""
        self.process.server = None

    def test_not_sent(self) -> None:
        """A write that was not sent has failed."""
        front = self.open()
        answer = front.commit([Write("/r/a", b"", 0)])
        self.lose()
        self.failureResultOf(answer, StorageUnavailable)

    def test_committed(self) -> None:
        """A write is successful if its unique value was committed."""
        front, answer = self.commit_and_lose(Write("/r/a", b"uid", 0, unique=True))
        self.memory.commit([Write("/r/a", b"uid", 0)])
        self.reconnect(front)
        self.assertEqual(self.successResultOf(answer), 3)

    def test_event_without_result(self) -> None:
        """A write whose event was received is successful, although its result is lost."""
        front = self.open()
        observer = self.follow(front)
        answer = front.commit([Write("/r/a", b"", 0)])
        self.patch(StorageConnection, "_committed", lambda connection, result, number: None)
        self.reactor.settle()
        self.assertEqual(len(observer.events), 1)
        self.lose()
        self.assertEqual(self.successResultOf(answer), 2)

    def test_not_committed(self) -> None:
        """A write that the process did not commit before its end has failed."""
        front, answer = self.commit_and_lose(Write("/r/a", b"", 0))
        self.restart()
        self.reconnect(front)
        self.failureResultOf(answer, StorageUnavailable)
        self.assertEqual(self.reactor.run(front.commit([Write("/r/a", b"", 0)])), 3)

    def test_process_goes_on(self) -> None:
        """The outcome of a write is unknown if the same process may still commit it."""
        front, answer = self.commit_and_lose(Write("/r/a", b"uid", 0, unique=True))
        self.reconnect(front)
        self.failureResultOf(answer, OutcomeUnknown)

    def test_no_other_process(self) -> None:
        """The outcome of a write is unknown if there is no connection for some time."""
        _, answer = self.commit_and_lose(Write("/r/a", b"", 0))
        self.reactor.advance(9)
        self.assertNoResult(answer)
        self.reactor.advance(1)
        self.failureResultOf(answer, OutcomeUnknown)

    def test_close_without_connection(self) -> None:
        """A front that is closed without a connection does not wait for it."""
        front, answer = self.commit_and_lose(Write("/r/a", b"", 0))
        self.reactor.run(front.close())
        self.failureResultOf(answer, OutcomeUnknown)

    def test_close_beside_silent_process(self) -> None:
        """A front that is closed waits for its writes for a limited time."""
        front = self.open()
        _, far = self.process.wires[0]
        far.reading = False
        answer = front.commit([Write("/r/a", b"", 0)])
        self.reactor.advance(0)
        closing = Deferred.fromCoroutine(front.close())
        self.reactor.advance(9)
        self.assertNoResult(closing)
        self.reactor.advance(1)
        self.reactor.settle()
        self.successResultOf(closing)
        self.failureResultOf(answer, OutcomeUnknown)
