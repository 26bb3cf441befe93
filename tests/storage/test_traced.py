"""Tests for L{kubetwist.storage.traced}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.storage import Write
from kubetwist.interfaces import IProbedStorage, IStorageHistory, IStorageWrapper
from kubetwist.storage.errors import KeyExists, KeyNotFound
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.storage.traced import TracedStorage
from kubetwist.storage.wrappers import unwrap_backend
from kubetwist.testing.storage import StorageReactor, storage_tests
from kubetwist.tracing.spans import Span, Tracer, current

from .remote.wire import StorageProcess, TurningReactor


class TracedMemoryTests(storage_tests(lambda case, reactor: TracedStorage(MemoryStorage(reactor)))):
    """L{TracedStorage} over a store in memory passes the tests of all stores."""


class TracedSQLiteTests(storage_tests(lambda case, reactor: TracedStorage(SQLiteStorage(case.mktemp(), reactor)))):
    """L{TracedStorage} over a store in a file passes the tests of all stores."""


class SpanCase(SynchronousTestCase):
    """Collects spans."""

    def setUp(self) -> None:
        """Start a trace."""
        self.spans: list[Span] = []
        self.tracer = Tracer(1_000_000, self.spans.append)
        root = self.tracer.start_trace(None, False, b"", 0.0)
        assert isinstance(root, Span)
        root.trace.audit_id = "an-id"
        self.root = root

    def traced(self, reactor: Any, call: Any, *arguments: Any, **named: Any) -> Any:
        """Call a method of a storage within the trace; return its result."""
        current.set(self.root)
        try:
            return reactor.run(call(*arguments, **named))
        finally:
            current.set(None)

    def one(self, name: str) -> Span:
        """Return the only span with a name."""
        (span,) = [span for span in self.spans if span.name == name]
        return span


class TracedStorageTests(SpanCase):
    """Spans of the embedded store."""

    def setUp(self) -> None:
        """Open a store."""
        super().setUp()
        self.reactor = StorageReactor()
        self.inner = SQLiteStorage(self.mktemp(), self.reactor)
        self.storage = TracedStorage(self.inner)
        self.reactor.run(self.storage.open())
        self.addCleanup(lambda: self.reactor.run(self.storage.close()))

    def test_interfaces(self) -> None:
        """It provides the interfaces of the store, and is a wrapper of it."""
        for interface in (IStorageWrapper, IStorageHistory, IProbedStorage):
            verifyObject(interface, self.storage)
        self.assertIs(unwrap_backend(self.storage), self.inner)

    def test_writes(self) -> None:
        """A write has a span with its key, below the current span; a failed one has its error."""
        self.traced(self.reactor, self.storage.commit, [Write("/r/a", b"1", 0)])
        span = self.one("sqlite commit")
        self.assertEqual(span.parent_id, self.root.span_id)
        expected = {"key": "/r/a", "writes": 1, "audit-id": "an-id", "db.system.name": "sqlite"}
        self.assertEqual(span.attributes, expected)
        self.assertTrue(span.ended)
        self.spans.clear()
        with self.assertRaises(KeyExists):
            self.traced(self.reactor, self.storage.commit, [Write("/r/a", b"1", 0)])
        self.assertEqual(self.one("sqlite commit").attributes["error.type"], "KeyExists")

    def test_reads(self) -> None:
        """Reads of a key, of a page and of past changes have spans."""
        revision = self.reactor.run(self.storage.commit([Write("/r/a", b"1", 0)]))
        self.traced(self.reactor, self.storage.read, "/r/a")
        self.assertEqual(self.one("sqlite read").attributes["key"], "/r/a")
        self.traced(self.reactor, self.storage.read_page, "/r/", limit=5)
        self.assertEqual(self.one("sqlite list").attributes["limit"], 5)
        self.traced(self.reactor, self.storage.read_changes, "/r/", revision - 1, revision, 10, 1000)
        self.assertEqual(self.one("sqlite history").attributes["resource-version"], revision - 1)
        with self.assertRaises(KeyNotFound):
            self.traced(self.reactor, self.storage.read, "/r/b")
        self.assertEqual({span.parent_id for span in self.spans}, {self.root.span_id})

    def test_untraced(self) -> None:
        """Without a current span there are no spans."""
        revision = self.reactor.run(self.storage.commit([Write("/r/a", b"1", 0)]))
        self.assertEqual(self.reactor.run(self.storage.read("/r/a")).value, b"1")
        self.assertEqual(len(self.reactor.run(self.storage.read_page("/r/")).items), 1)
        self.reactor.run(self.storage.read_changes("/r/", revision - 1, revision, 10, 1000))
        self.assertEqual(self.spans, [])


class StorageProcessTests(SpanCase):
    """Traces through a storage process."""

    def setUp(self) -> None:
        """Open the storage of a front."""
        super().setUp()
        self.reactor = TurningReactor()
        self.process = StorageProcess(MemoryStorage(self.reactor), self.reactor)
        self.addCleanup(lambda: self.reactor.run(self.process.stop()))
        self.storage = TracedStorage(self.process.front())
        self.reactor.run(self.storage.open())
        self.addCleanup(lambda: self.reactor.run(self.storage.close()))
        #: The spans of the storage process.
        self.remote: list[Span] = []
        assert self.process.server is not None

    def test_context(self) -> None:
        """The span of a write in the storage process is a child of the span in the front, in the same trace."""
        assert self.process.server is not None
        self.process.server.tracer = Tracer(0, self.remote.append)
        self.traced(self.reactor, self.storage.commit, [Write("/r/a", b"1", 0), Write("/r/b", b"2", 0)])
        front = self.one("storage process commit")
        (span,) = self.remote
        self.assertEqual((span.name, span.attributes["writes"]), ("memory commit", 2))
        self.assertEqual((span.trace.id, span.parent_id, span.remote_parent), (self.root.trace.id, front.span_id, True))
        self.reactor.run(self.storage.commit([Write("/r/c", b"1", 0)]))
        self.assertEqual(len(self.remote), 1)

    def test_storage_process_without_tracing(self) -> None:
        """A storage process without tracing ignores the context."""
        self.traced(self.reactor, self.storage.commit, [Write("/r/a", b"1", 0)])
        self.assertEqual(self.remote, [])
        self.assertEqual(self.one("storage process commit").attributes["key"], "/r/a")
