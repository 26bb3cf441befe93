"""
Tests for the durability of acknowledged writes after kill -9.

C{KUBETWIST_TEST_LONG=1} makes it 20 rounds of 5,000 writes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist.api.storage import (
    StoredValue,
    Write,
)
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.testing.storage import RecordingObserver, StorageReactor
from tests.storage.sqlite.killedwriter import is_intact

LONG = bool(os.environ.get("KUBETWIST_TEST_LONG"))
ROUNDS, WRITES, WRITERS = (20, 5000, 100) if LONG else (3, 400, 20)

ROOT = Path(kubetwist.__file__).parent.parent
SCRIPT = Path(__file__).with_name("killedwriter.py")


class KillTests(SynchronousTestCase):
    """kill -9 in the middle of concurrent writes."""

    def setUp(self) -> None:
        """Choose a path for the store."""
        self.path = os.path.abspath(self.mktemp())
        self.dice = random.Random(20)
        #: What was acknowledged, or found, last for each key: revision and checksum.
        self.acknowledged: dict[str, tuple[int, str]] = {}
        self.newest = 1

    def write_and_kill(self, number: int) -> None:
        """Run a writer process, and kill it after a number of acknowledgements."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        # Far more writes than a pipe has room for: the writer cannot finish before it is killed.
        command = [sys.executable, str(SCRIPT), self.path, str(WRITES * 100), str(WRITERS), str(number)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        with process, process.stdout as lines:
            opened = lines.readline().split()
            self.assertEqual(opened[0], b"open")
            self.assertGreaterEqual(int(opened[1]), self.newest)
            remaining = self.dice.randrange(1, WRITES * 3 // 4)
            for line in lines:
                self.acknowledge(line)
                remaining -= 1
                if remaining == 0:
                    # Lines that were printed before the kill are still in the pipe.
                    process.kill()
        self.assertEqual(process.returncode, -9)

    def acknowledge(self, line: bytes) -> None:
        """Record a line of the writer."""
        word, revision, key, checksum = line.decode().split()
        self.assertEqual(word, "done")
        self.acknowledged[key] = (int(revision), checksum)
        self.newest = max(self.newest, int(revision))

    def check(self) -> None:
        """Open the store and compare it with the acknowledged writes."""
        reactor = StorageReactor()
        storage = SQLiteStorage(self.path, reactor)
        reactor.run(storage.open())
        try:
            self.assertGreaterEqual(storage.revision, self.newest)
            stored = {item.key: item for item in reactor.run(storage.read_page("/r/")).items}
            for item in stored.values():
                self.assertTrue(is_intact(item.value), f"{item.key} is torn")
            events = RecordingObserver()
            reactor.run(storage.watch("/r/", storage.compacted, events))
            history: dict[str, list[int]] = {}
            for event in events.events:
                history.setdefault(event.key, []).append(event.revision)
            for key, (revision, checksum) in self.acknowledged.items():
                if revision > storage.compacted:
                    self.assertIn(revision, history.get(key, ()), f"{key} lost an acknowledged write")
                if history.get(key, [0])[-1] <= revision:
                    self.check_key(key, revision, checksum, stored.get(key))
            for key, item in stored.items():
                twin = stored.get(f"{key}-twin")
                if twin is not None and twin.revision == item.revision:
                    self.assertEqual(twin.value, item.value)
            revisions = [event.revision for event in events.events]
            self.assertEqual(revisions, sorted(revisions))
            self.check_found_values(stored, history)
            before, self.newest = self.newest, reactor.run(storage.commit([Write("/check/a", b"", None)]))
            self.assertGreater(self.newest, max([before, *revisions]))
        finally:
            reactor.run(storage.close())

    def check_key(self, key: str, revision: int, checksum: str, result: StoredValue | None) -> None:
        """The last acknowledged write is stored, or a later write of the same key."""
        if checksum == "-":
            self.assertIsNone(result, f"the deletion of {key} is lost")
        else:
            assert result is not None, f"{key} is lost"
            self.assertEqual((result.revision, result.value[:32].hex()), (revision, checksum))

    def check_found_values(self, stored: dict[str, StoredValue], history: dict[str, list[int]]) -> None:
        """Values that were found in the store remain, whether or not they were acknowledged."""
        for key in self.acknowledged.keys() - stored.keys():
            self.acknowledged[key] = (max(self.acknowledged[key][0], *history.get(key, [0])), "-")
        for key, item in stored.items():
            self.acknowledged[key] = (item.revision, item.value[:32].hex())

    def test_kill(self) -> None:
        """After a kill every acknowledged write is stored, none is torn, and revisions continue."""
        for number in range(ROUNDS):
            self.write_and_kill(number)
            self.check()

    def test_unharmed(self) -> None:
        """Without a kill the process would finish: the kills hit it while it writes."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(SCRIPT), self.path, "40", "4", "1"]
        lines = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True).stdout.splitlines()
        self.assertEqual(lines[-1], b"finished")
        for line in lines[1:-1]:
            self.acknowledge(line)
        self.check()
