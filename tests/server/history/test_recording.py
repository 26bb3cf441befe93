"""Tests of L{kubetwist.server.history.recording}."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.history.recorder import Bounds, HistoryRecorder
from kubetwist.metrics.history.samples import Sample
from kubetwist.server.history import recording as module
from kubetwist.server.history.recording import FILE, FIRST, SAMPLE, Recording


class Source:
    """The samples of a process, as set by the test."""

    def __init__(self) -> None:
        self.ready = 1.0
        self.failure: Exception | None = None

    async def take(self) -> Sample:
        """Return a sample."""
        if self.failure is not None:
            raise self.failure
        return Sample(sums={"memory": 5.0, "cpu": 1.0}, lowest={"ready": self.ready})


class RecordingTests(SynchronousTestCase):
    """L{Recording}."""

    def setUp(self) -> None:
        """Create a recording that is not started."""
        self.clock = Clock()
        self.clock.advance(1_000_000.0)
        self.patch(module, "posix_now", self.clock.seconds)
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.config: Any = Mock(reactor=self.clock, peers=None, options={"in-memory": False})
        self.config.data.path = self.folder
        self.config.files.reloads = {}
        self.leases: list[Any] = []
        self.stores: Any = Mock(list_decoded=lambda *place: self.leases)
        self.restarts = 0
        self.make()

    def make(self) -> None:
        """Create the recording of another process."""
        self.source = Source()
        self.recorder = HistoryRecorder(Bounds((1.0,), (1.0,), (1.0,)))
        self.recording = Recording(self.config, self.source, self.recorder, self.stores, lambda: self.restarts)  # type: ignore[arg-type] # only take() is used

    def document(self) -> Any:
        """Return what was recorded."""
        return json.loads(self.recorder.snapshot()())

    def marks(self) -> list[tuple[str, str]]:
        """Return the marks after the start."""
        return [(one.kind, one.text) for one in self.recorder.marks][1:]

    def test_samples(self) -> None:
        """A sample is taken soon after the start, and then periodically, until the stop."""
        self.recording.start()
        self.clock.advance(FIRST)
        self.clock.pump([10.0] * 3)
        self.assertEqual(len(self.document()["times"]), 4)
        self.recording.stop()
        self.recording.stop()
        self.clock.pump([10.0] * 3)
        self.assertEqual(len(self.document()["times"]), 4)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failure(self) -> None:
        """After a failure the next sample is taken in time."""
        self.recording.start()
        self.source.failure = ValueError("broken")
        self.clock.advance(FIRST)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.source.failure = None
        self.clock.advance(10.0)
        self.assertEqual(len(self.document()["times"]), 1)

    def test_peers(self) -> None:
        """The samples of all processes are added."""
        called = []

        async def call(name: str) -> list[Any]:
            called.append(name)
            return [Sample(sums={"memory": 7.0}, lowest={"ready": 0.0}).encode()]

        self.config.peers = Mock(call=call)
        self.make()
        self.recording.start()
        self.clock.advance(FIRST)
        self.assertEqual(called, [SAMPLE])
        memory = [one["values"] for one in self.document()["series"] if one["name"] in ("memory", "ready")]
        self.assertEqual(memory, [[12.0], [0.0]])

    def test_restart(self) -> None:
        """The next process continues the history."""
        self.recording.start()
        self.clock.advance(FIRST)
        self.recording.stop()
        self.assertEqual((self.folder / FILE).stat().st_mode & 0o777, 0o600)
        self.clock.advance(60.0)
        self.make()
        self.recording.start()
        self.clock.advance(FIRST)
        self.assertEqual(self.document()["times"], [1_000_001.0, 1_000_062.0])
        self.assertEqual([one["time"] for one in self.document()["marks"]], [1_000_000.0, 1_000_061.0])
        self.recording.stop()

    def test_old(self) -> None:
        """A history that ended more than an hour ago is not continued."""
        self.recording.start()
        self.clock.advance(FIRST)
        self.recording.stop()
        self.clock.advance(3700.0)
        self.make()
        self.recording.start()
        self.assertEqual((self.document()["times"], len(self.document()["marks"])), ([], 1))

    def test_damaged(self) -> None:
        """A file that cannot be used is ignored."""
        whole = gzip.compress(b'{"times": [], "series": [], "marks": []}')
        for content in (b"", b"x", whole[:20], gzip.compress(b"{}"), gzip.compress(b" " * 20_000_000)):
            (self.folder / FILE).write_bytes(content)
            self.make()
            self.recording.start()
            self.assertEqual(self.document()["times"], [])
            self.clock.advance(FIRST)
            self.assertEqual(len(self.document()["times"]), 1)
            self.recording.stop()

    def test_in_memory(self) -> None:
        """A server whose data is in memory writes nothing."""
        self.config.options["in-memory"] = True
        self.recording.start()
        self.recording.stop()
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_stopped(self) -> None:
        """A sample that is complete after the stop is dropped."""
        answer: Deferred[list[Any]] = Deferred()
        self.config.peers = Mock(call=lambda name: answer)
        self.make()
        self.recording.start()
        self.clock.advance(FIRST)
        self.recording.stop()
        answer.callback([])
        self.assertEqual(self.document()["times"], [])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_unwritable(self) -> None:
        """A stop succeeds if the file cannot be written."""
        self.recording.start()
        (self.folder / FILE).mkdir()
        self.recording.stop()

    def test_marks(self) -> None:
        """Changes of readiness, leaders, files and workers are marked once, with what they are about."""
        self.leases = [
            {"metadata": {"name": "scheduler"}, "spec": {"holderIdentity": "a"}},
            {"metadata": {"name": "x"}},
        ]
        self.recording.start()
        self.clock.advance(FIRST)
        self.assertEqual(self.marks(), [])
        self.source.ready = 0.0
        self.leases = [{"metadata": {"name": "scheduler"}, "spec": {"holderIdentity": "b<script>"}}]
        self.restarts = 1
        self.config.files.reloads = {("serving certificate", "success"): (1, 7.0), ("ca", "failure"): (2, 8.0)}
        for _ in range(2):
            self.clock.advance(10.0)
            self.assertEqual(
                self.marks(),
                [
                    ("unready", ""),
                    ("worker", ""),
                    ("reload", "serving certificate"),
                    ("reload", "ca: failure"),
                    ("leader", "scheduler: b<script>"),
                ],
            )
        self.source.ready = 1.0
        self.leases.append({"metadata": {"name": "new"}, "spec": {"holderIdentity": "c"}})
        self.clock.advance(10.0)
        self.assertEqual(self.marks()[5:], [("ready", ""), ("leader", "new: c")])
