"""Tests for L{kubetwist.testing._changes}."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.storage import StorageEvent, Write
from kubetwist.interfaces import IStorageObserver
from kubetwist.storage.errors import RevisionCompacted
from kubetwist.storage.memory import MemoryStorage
from kubetwist.testing._changes import MAX_OBJECT, StorageChanges, _ChangeConnection, _ChangeFactory, change_line


class ChangeTests(SynchronousTestCase):
    """L{StorageChanges}, and its connections."""

    def setUp(self) -> None:
        """Open a store in memory."""
        self.backend = MemoryStorage(Clock())  # type: ignore[arg-type]
        self.successResultOf(self.backend.open())  # type: ignore[arg-type]
        self.changes = StorageChanges(self.backend, "/registry/")  # type: ignore[arg-type]
        self.seen: list[str] = []

    def see(self, event: StorageEvent) -> None:
        """Record the key of a change."""
        self.seen.append(event.key)

    def write(self, key: str, value: bytes | None = b"{}") -> None:
        """Write a value."""
        self.successResultOf(self.backend.commit([Write(key, value, None)]))

    def test_subscribed(self) -> None:
        """A subscriber is called with each later change, until it is removed."""
        verifyObject(IStorageObserver, self.changes)
        self.write("/registry/pods/a/before")
        self.successResultOf(self.changes.subscribe(self.see))  # type: ignore[arg-type]
        self.write("/registry/pods/a/one")
        self.write("/registry/pods/a/one", None)
        self.assertEqual(self.seen, ["/registry/pods/a/one"] * 2)
        self.changes.unsubscribe(self.see)
        self.changes.unsubscribe(self.see)
        self.write("/registry/pods/a/two")
        self.assertEqual(len(self.seen), 2)

    def test_ended(self) -> None:
        """After the end of the watch another one begins, and the gap counts as a change."""
        self.successResultOf(self.changes.subscribe(self.see))  # type: ignore[arg-type]
        watch: Any = self.changes._watch
        watch.stop()
        self.changes.ended(RevisionCompacted(1, 2))
        self.assertEqual(self.seen, ["/registry/"])
        self.write("/registry/pods/a/one")
        self.assertEqual(self.seen[1:], ["/registry/pods/a/one"])
        self.changes.stop()
        self.changes.ended(RevisionCompacted(1, 2))
        self.assertEqual(len(self.seen), 2)

    def test_connection(self) -> None:
        """A client gets a line for each change; while it does not read, it gets the newest one only."""
        connection: Any = _ChangeFactory(self.changes).buildProtocol(None)  # type: ignore[arg-type]
        self.assertIsInstance(connection, _ChangeConnection)
        transport = StringTransport()
        connection.makeConnection(transport)
        self.assertEqual(transport.value(), b"{}\n")
        transport.clear()
        self.write("/registry/pods/a/one", b'{\n"kind":"Pod"}\n')
        self.assertEqual(json.loads(transport.value())["object"], {"kind": "Pod"})
        transport.clear()
        connection.pauseProducing()
        for number in range(3):
            self.write(f"/registry/pods/a/{number}")
        self.assertEqual(transport.value(), b"")
        connection.resumeProducing()
        self.assertEqual(json.loads(transport.value())["key"], "/registry/pods/a/2")
        transport.clear()
        connection.connectionLost()
        self.write("/registry/pods/a/one")
        self.assertEqual(transport.value(), b"")

    def test_line(self) -> None:
        """Deletions, large objects and other encodings have no object."""
        self.assertEqual(
            json.loads(change_line(StorageEvent("/k", None, 3, 2))), {"key": "/k", "revision": 3, "deleted": True}
        )
        for value in (b"k8s\0abc", b"{", b"{" + b" " * MAX_OBJECT + b"}"):
            self.assertEqual(json.loads(change_line(StorageEvent("/k", value, 3, 2))), {"key": "/k", "revision": 3})
