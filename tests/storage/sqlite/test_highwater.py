"""Tests for L{kubetwist.storage.sqlite._highwater}."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import kubetwist
from kubetwist.storage.errors import StorageCorrupt
from kubetwist.storage.sqlite._highwater import HighWaterMark
from tests.storage.sqlite.test_storage import FileCase

#: A process that writes some keys, prints the last revision, and kills itself.
KILLED = """
import os, signal, sys
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.api.storage import Write
from kubetwist.testing.storage import StorageReactor
reactor = StorageReactor()
storage = SQLiteStorage(sys.argv[1], reactor)
reactor.run(storage.open())
for number in range(60):
    newest = reactor.run(storage.commit([Write(f"/r/{number:02}", b"%d" % number * 400, 0)]))
os.write(1, b"%d" % newest)
os.kill(os.getpid(), signal.SIGKILL)
"""


class KilledTests(FileCase):
    """kill -9 of a real process."""

    def test_mark_after_kill(self) -> None:
        """After kill -9 the mark is the last acknowledged revision, and 16 changed bytes in the log stop the start."""
        environment = {**os.environ, "PYTHONPATH": str(Path(kubetwist.__file__).parent.parent)}
        done = subprocess.run(
            [sys.executable, "-c", KILLED, self.path], stdout=subprocess.PIPE, env=environment, check=False
        )
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertEqual(HighWaterMark(f"{self.path}-mark").read(), int(done.stdout))
        complete, damaged = self.path, os.path.abspath(self.mktemp())
        for suffix in ("", "-wal", "-mark"):
            shutil.copyfile(complete + suffix, damaged + suffix)
        with open(f"{damaged}-wal", "r+b") as log:
            log.seek(os.path.getsize(f"{damaged}-wal") // 2)
            log.write(b"\x55" * 16)
        self.path = damaged
        self.refused(StorageCorrupt, "was changed, and transactions follow it")
        self.path = complete
        storage = self.open()
        self.assertEqual((storage.revision, len(self.page(storage))), (int(done.stdout), 60))
