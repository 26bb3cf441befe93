# mypy: allow-untyped-calls
"""
Tests for the consistency of the responses and events of a SQLite store over many kills.

C{KUBETWIST_TEST_LONG=1} makes it 500 kills; C{KUBETWIST_TEST_SEED} repeats a schedule.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.testing.history import Action, History, Operation, Outcome, WatchHistory
from kubetwist.testing.historycheck import violations
from kubetwist.testing.storage import StorageReactor

KILLS = 500 if os.environ.get("KUBETWIST_TEST_LONG") else 20
ROOT = Path(kubetwist.__file__).parent.parent
SCRIPT = Path(__file__).with_name("historywriter.py")

_REFUSALS = {
    "KeyExists": Outcome.EXISTS,
    "KeyNotFound": Outcome.MISSING,
    "RevisionConflict": Outcome.CONFLICT,
}


class HistoryTests(SynchronousTestCase):
    """kill -9 during reads, writes and compaction."""

    def setUp(self) -> None:
        """Choose a path for the store, and a schedule."""
        self.path = os.path.abspath(self.mktemp())
        self.seed = int(os.environ.get("KUBETWIST_TEST_SEED") or random.randrange(1 << 30))
        self.dice = random.Random(self.seed)
        self.history = History()
        self.watched: WatchHistory | None = None
        #: What each client waits for.
        self.asked: dict[str, Operation] = {}
        self.acknowledged = 0

    def run_and_kill(self, number: int) -> None:
        """Run one process, and kill it after some acknowledgements."""
        resume = self.watched.last if self.watched is not None else 0
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(SCRIPT), self.path, str(number), str(resume)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        remaining = self.dice.randrange(1, 400)
        before = self.acknowledged
        with process, process.stdout as lines:
            for line in lines:
                self.record_line(*json.loads(line))
                if self.acknowledged - before == remaining:
                    # Lines that were printed before the kill are still in the pipe.
                    process.kill()
        self.assertEqual(process.returncode, -9)
        self.asked.clear()

    def record_line(self, at: float, what: str, *rest: Any) -> None:
        """Record a line of a client or of the watch."""
        history, watched = self.history, self.watched
        history.now = lambda: at
        if what == "watch":
            self.watched = history.watch("/r/", rest[0])
        elif watched is not None and what == "event":
            watched.event(*rest)
        elif watched is not None and what == "progress":
            watched.bookmark(rest[0])
        elif what == "begin":
            client, action, key, value, expected = rest
            self.asked[client] = history.begin(Action(action), key, value, expected, client)
        elif what in ("done", "listed", "refused"):
            operation = self.asked.pop(rest[0])
            operation._now = history.now
            if what == "done":
                self.acknowledged += 1
                operation.done(rest[1])
            elif what == "listed":
                operation.listed(rest[1], {key: (revision, value) for key, (revision, value) in rest[2].items()})
            else:
                operation.failed(_REFUSALS[rest[1]])
        else:
            self.assertEqual(what, "open")

    def test_kills(self) -> None:
        """No write is lost, repeated, reordered or stale, and a watch that resumes after a kill misses nothing."""
        for number in range(KILLS):
            self.run_and_kill(number)
        reactor = StorageReactor()
        storage = SQLiteStorage(self.path, reactor)
        reactor.run(storage.open())
        page = reactor.run(storage.read_page("/r/"))
        reactor.run(storage.close())
        last = self.history.begin(Action.LIST, "/r/")
        last.listed(
            page.revision,
            {item.key: (item.revision, item.value.partition(b" ")[0].decode()) for item in page.items},
        )
        last.invoked = last.answered = float(1 << 60)
        result = violations(self.history)
        if result:
            Path(f"{self.path}.jsonl").write_bytes(self.history.dumped())
        self.assertEqual(result[:10], [], f"seed {self.seed}: {self.path}.jsonl")
        self.assertGreater(len(self.history.operations), KILLS * 50)
