"""
Tests for L{kubetwist.storage.remote} with a storage process that is killed in the middle of batches of writes.

C{KUBETWIST_TEST_LONG=1} makes it 20 kills.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

import kubetwist
from kubetwist.api.storage import Write
from kubetwist.storage.errors import OutcomeUnknown, StorageUnavailable
from kubetwist.storage.remote import RemoteStorage, connect
from kubetwist.testing.storage import RecordingObserver

ROOT = Path(kubetwist.__file__).parent.parent
SCRIPT = Path(__file__).with_name("killedprocess.py")
KILLS = 20 if os.environ.get("KUBETWIST_TEST_LONG") else 1
#: The number of writes before each kill, and after it.
WRITES = 150
WRITERS = 8


class KillTests(TestCase):
    """kill -9 of the storage process."""

    def setUp(self) -> None:
        """Start the process."""
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.committed: dict[str, int] = {}
        self.failed: set[str] = set()
        self.unknown: set[str] = set()
        self.count = 0
        self.start()
        self.addCleanup(self.kill)

    def start(self) -> None:
        """Start the process."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen([sys.executable, str(SCRIPT), self.directory], env=environment)

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()

    async def write(self, front: RemoteStorage, until: int) -> None:
        """Create objects one after the other, and record the outcomes."""
        while self.count < until:
            self.count += 1
            key = f"/r/{self.count:05}"
            try:
                self.committed[key] = await front.commit([Write(key, key.encode(), 0, unique=True)])
            except StorageUnavailable:
                self.failed.add(key)
                await deferLater(reactor, 0.02)
            except OutcomeUnknown:
                self.unknown.add(key)

    async def test_kill(self) -> None:
        """No acknowledged write is lost, no failed write is found, and no front misses a change."""
        fronts = [RemoteStorage(connect(reactor, self.directory), reactor) for _ in range(2)]
        observers = [RecordingObserver() for _ in fronts]
        for front, observer in zip(fronts, observers, strict=True):
            self.addCleanup(lambda front=front: Deferred.fromCoroutine(front.close()))
            await front.open()
            await front.watch("/r/", front.revision, observer)
        for _ in range(KILLS):
            until = self.count + WRITES
            writers = [
                Deferred.fromCoroutine(self.write(front, until + WRITES)) for front in fronts for _ in range(WRITERS)
            ]
            while self.count < until:
                await deferLater(reactor, 0.001)
            self.kill()
            self.start()
            # The writers end when they have tried their number of writes, with or without the process.
            await gatherResults(writers)
            await self.until_connected(fronts)
        revision = await fronts[0].commit([Write("/r/last", b"", 0)])
        self.committed["/r/last"] = revision
        page = await fronts[1].read_page("/r/")
        found = {item.key: item.revision for item in page.items}
        self.assertEqual({key: found.get(key) for key in self.committed}, self.committed)
        self.assertEqual(self.failed & found.keys(), set())
        self.assertEqual(found.keys() - self.committed.keys() - self.unknown, set())
        # The unique values are recognized in the changes since the loss.
        self.assertEqual(self.unknown, set())
        for observer in observers:
            self.assertEqual([event.revision for event in observer.events], list(range(2, revision + 1)))
            self.assertEqual(observer.reasons, [])

    async def until_connected(self, fronts: list[RemoteStorage]) -> None:
        """Wait until all fronts have a connection."""
        for front in fronts:
            while True:
                try:
                    await front.current_revision()
                    break
                except StorageUnavailable:
                    await deferLater(reactor, 0.02)
