"""Tests for L{kubetwist.storage.remote._sockets}, with real sockets."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from kubetwist.api.storage import Write
from kubetwist.storage.errors import KeyExists, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.remote import RemoteStorage, StorageServer, _sockets, connect
from kubetwist.testing.storage import RecordingObserver


class SocketTests(TestCase):
    """Fronts at the socket of a storage process."""

    async def setUp(self) -> None:
        """Start a server over a store in memory."""
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.sockets = os.path.join(self.directory, "sockets")
        self.storage = MemoryStorage(reactor)
        await self.storage.open()
        self.addCleanup(lambda: Deferred.fromCoroutine(self.storage.close()))
        self.server = StorageServer(self.storage, reactor)
        await self.server.start()
        self.server.listen(reactor, self.sockets)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.server.stop()))

    def front(self, **options: Any) -> RemoteStorage:
        """Return the storage of a new front."""
        front = RemoteStorage(connect(reactor, self.sockets), reactor, **options)
        self.addCleanup(lambda: Deferred.fromCoroutine(front.close()))
        return front

    async def test_permissions(self) -> None:
        """The directory and the socket are accessible to their owner only."""
        modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (self.sockets, f"{self.sockets}/storage.sock")]
        self.assertEqual(modes, [0o700, 0o600])

    async def test_fronts(self) -> None:
        """All fronts receive all writes, and read the newest revision from shared memory without a request."""
        first, second = self.front(), self.front()
        await first.open()
        await second.open()
        observers = [RecordingObserver(), RecordingObserver()]
        await first.watch("/r/", first.revision, observers[0])
        await second.watch("/r/", second.revision, observers[1])
        mark = object()
        one = await first.commit([Write("/r/a", b"1", 0, attachment=mark)])
        self.assertEqual((first.newest_revision(), second.newest_revision()), (one, one))
        two = await second.commit([Write("/r/a", bytes(300_000), one)])
        self.assertEqual(await first.current_revision(), two)
        await first.commit([Write("/r/b", b"3", 0)])
        expected = [("/r/a", b"1", one, 0), ("/r/a", bytes(300_000), two, one), ("/r/b", b"3", two + 1, 0)]
        self.assertEqual(observers[0].seen(), expected)
        await second.read("/r/b")
        self.assertEqual(observers[1].seen(), expected)
        self.assertEqual([event.attachment for event in observers[0].events], [mark, None, None])
        with self.assertRaises(KeyExists):
            await second.commit([Write("/r/b", b"", 0)])

    async def test_large_pages(self) -> None:
        """Pages that are larger than the buffers of a socket arrive complete."""
        front = self.front()
        await front.open()
        for number in range(20):
            await front.commit([Write(f"/r/{number:02}", bytes([number]) * 200_000, 0)])
        page = await front.read_page("/r/")
        self.assertEqual([item.value for item in page.items], [bytes([number]) * 200_000 for number in range(20)])

    async def test_old_socket(self) -> None:
        """A socket that an earlier process left is replaced."""
        path = os.path.join(self.directory, "left")
        os.mkdir(path)
        left = socket.socket(socket.AF_UNIX)
        left.bind(f"{path}/storage.sock")
        left.close()
        other = StorageServer(self.storage, reactor)
        self.addCleanup(lambda: Deferred.fromCoroutine(other.stop()))
        await other.start()
        other.listen(reactor, path)
        front = RemoteStorage(connect(reactor, path), reactor)
        self.addCleanup(lambda: Deferred.fromCoroutine(front.close()))
        await front.open()
        self.assertEqual(front.revision, 1)

    async def test_refused_directory(self) -> None:
        """A directory that is a link or a file is refused."""
        os.symlink(self.sockets, os.path.join(self.directory, "link"))
        open(os.path.join(self.directory, "file"), "w").close()
        for name in ("link", "file"):
            with self.assertRaises(StorageUnavailable):
                self.server.listen(reactor, os.path.join(self.directory, name))

    async def test_long_path(self) -> None:
        """A socket with a long path is used through a descriptor of its directory."""
        path = os.path.join(self.directory, "x" * 100)
        other = StorageServer(self.storage, reactor)
        self.addCleanup(lambda: Deferred.fromCoroutine(other.stop()))
        await other.start()
        other.listen(reactor, path)
        self.assertEqual(os.listdir(path), ["storage.sock"])
        front = RemoteStorage(connect(reactor, path), reactor)
        await front.open()
        self.assertEqual(front.revision, 1)
        await front.close()
        await other.stop()
        self.assertEqual(os.listdir(path), [])

    async def test_too_long_path(self) -> None:
        """A long path is refused with a clear error where it cannot be replaced, or its directory cannot be used."""
        path = os.path.join(self.directory, "x" * 100)
        with self.assertRaises(StorageUnavailable):
            connect(reactor, path)
        self.patch(_sockets, "DESCRIPTORS", os.path.join(self.directory, "none"))
        for call in (lambda: self.server.listen(reactor, path), lambda: connect(reactor, path)):
            with self.assertRaises(StorageUnavailable) as caught:
                call()
            self.assertIn("at most 103 bytes", str(caught.exception))

    async def test_other_user_at_the_socket(self) -> None:
        """A process of another user is refused by the storage process."""
        user = os.geteuid() + 1
        self.patch(_sockets, "peer_user", lambda transport: user)
        front = socket.socket(socket.AF_UNIX)
        self.addCleanup(front.close)
        front.connect(f"{self.sockets}/storage.sock")
        front.setblocking(False)
        closed: Deferred[bytes] = Deferred()

        def poll() -> None:
            try:
                closed.callback(front.recv(100))
            except BlockingIOError:
                reactor.callLater(0.01, poll)
            except OSError:
                closed.callback(b"")

        poll()
        self.assertEqual(await closed, b"")
        self.assertEqual(self.server._connections, set())

    async def test_other_user_behind_the_socket(self) -> None:
        """A front refuses a socket at which a process of another user listens."""
        self.patch(_sockets, "peer_user", lambda transport: os.geteuid() + 1 if _is_client(transport) else os.geteuid())
        front = self.front(start_timeout=0.2)
        with self.assertRaises(StorageUnavailable) as caught:
            await front.open()
        self.assertIn("belongs to another user", str(caught.exception))

    async def test_peer_user(self) -> None:
        """The user of the other process is known."""
        seen: list[int | None] = []
        real = _sockets.peer_user

        def record(transport: Any) -> int | None:
            seen.append(real(transport))
            return seen[-1]

        self.patch(_sockets, "peer_user", record)
        front = self.front()
        await front.open()
        self.assertEqual(seen, [os.geteuid()] * 2)


def _is_client(transport: Any) -> bool:
    return hasattr(transport, "connector")
