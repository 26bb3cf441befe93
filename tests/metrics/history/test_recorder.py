"""Tests of L{kubetwist.metrics.history.recorder}."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.history.increments import Observations
from kubetwist.metrics.history.recorder import MAX_MARKS, Bounds, HistoryRecorder
from kubetwist.metrics.history.samples import Errors, Sample

BOUNDS = Bounds((0.1, 1.0), (0.01, 0.1), (0.1, 1.0))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(("times", "series", "marks", "name", "labels", "values")), inner)
    ),
)


def sample(verb: str = "GET", resource: str = "pods", count: int = 10) -> Sample:
    """Return a sample with requests of one kind."""
    key = (verb, resource)
    return Sample(
        requests={key: Observations(0.5 * count, [0, count, 0])},
        errors={key: Errors(1.0, 2.0, 3.0)},
        levels={"system": (2.0, 1.0)},
        delays=Observations(0.04, [4, 0, 0]),
        storage=Observations(0.5, [0, 1, 0]),
        sums={"cpu": 5.0, "memory": 123456789.0, "long_running": 3.0},
        highest={"revision": 100.0},
        lowest={"ready": 1.0},
    )


class HistoryRecorderTests(SynchronousTestCase):
    """L{HistoryRecorder}."""

    def setUp(self) -> None:
        """Create a recorder."""
        self.recorder = HistoryRecorder(BOUNDS, capacity=5)

    def read(self, since: float = 0.0) -> dict[str, Any]:
        """Return the decoded document."""
        document: dict[str, Any] = json.loads(self.recorder.snapshot(since)())
        return document

    def values(self, name: str, **labels: str) -> list[float | None] | None:
        """Return the values of a series; L{None} without such a series."""
        found = [one["values"] for one in self.read()["series"] if (one["name"], one["labels"]) == (name, labels)]
        return found[0] if found else None

    def test_values(self) -> None:
        """Counts become rates, histograms quantiles, and everything has four digits."""
        self.recorder.record(1000.0, 10.0, sample())
        second = sample()
        second.highest["revision"] = 150.0
        self.recorder.record(1010.0, 10.0, second)
        self.assertEqual(self.read()["times"], [1000.0, 1010.0])
        self.assertEqual(self.values("verbs", verb="GET"), [1.0, 1.0])
        self.assertEqual(self.values("verbs", verb="LIST"), [0.0, 0.0])
        self.assertEqual(self.values("requests", verb="GET", resource="pods"), [1.0, 1.0])
        self.assertEqual(self.values("request_errors", verb="GET", resource="pods"), [0.6, 0.6])
        self.assertEqual(self.values("request_p50", verb="GET", resource="pods"), [0.55, 0.55])
        self.assertEqual(self.values("latency", quantile="0.99"), [0.991, 0.991])
        self.assertEqual(self.values("errors", code="429"), [0.2, 0.2])
        self.assertEqual(self.values("loop", quantile="0.5"), [0.005, 0.005])
        self.assertEqual(self.values("cpu"), [0.5, 0.5])
        self.assertEqual(self.values("memory"), [123500000.0, 123500000.0])
        self.assertEqual(self.values("writes"), [None, 5.0])
        self.assertEqual(self.values("executing", level="system"), [2.0, 2.0])
        self.assertEqual(self.values("waiting", level="system"), [1.0, 1.0])
        self.assertIsNone(self.values("etcd_members"))

    def test_watches(self) -> None:
        """The duration of a watch is not a latency."""
        self.recorder.record(1.0, 10.0, sample("WATCH"))
        self.assertEqual(self.values("requests", verb="WATCH", resource="pods"), [1.0])
        self.assertIsNone(self.values("request_p50", verb="WATCH", resource="pods"))
        self.assertIsNone(self.values("latency", quantile="0.5"))

    def test_since(self) -> None:
        """Only newer samples and marks are returned."""
        for time in (1.0, 2.0, 3.0):
            self.recorder.record(time, 1.0, sample())
            self.recorder.mark(time, "ready", str(time))
        self.assertEqual(self.read(2.0)["times"], [3.0])
        self.assertEqual(self.read(2.0)["marks"], [{"time": 3.0, "kind": "ready", "text": "3.0"}])
        self.assertEqual(self.read(3.0)["series"], [])

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), max_size=40))
    def test_fixed_memory(self, requests: list[tuple[str, int]]) -> None:
        """Memory does not depend on the samples; the rates of all series are the rates of the verbs."""
        recorder = HistoryRecorder(BOUNDS, capacity=5)
        size = recorder.ring.size
        for time, (resource, number) in enumerate(requests):
            recorder.record(float(time), 1.0, sample("GET", f"{resource}{number}"))
            recorder.mark(float(time), "leader", "x" * 1000)
        self.assertEqual(recorder.ring.size, size)
        document = json.loads(recorder.snapshot(-1.0)())
        self.assertEqual(len(document["times"]), min(5, len(requests)))
        self.assertLessEqual(len(document["marks"]), MAX_MARKS)
        rates = [one["values"] for one in document["series"] if one["name"] == "requests"]
        for row in range(len(document["times"])):
            self.assertEqual(sum(values[row] or 0 for values in rates), 10.0)

    def test_size(self) -> None:
        """The ring of an hour has 200 kB."""
        self.assertLess(HistoryRecorder(BOUNDS).ring.size, 210_000)

    def test_restore(self) -> None:
        """Another recorder continues the history, without what is too old."""
        for time in (1.0, 2.0, 3.0):
            self.recorder.record(time, 1.0, sample(resource="a\x00'\u202e"))
            self.recorder.mark(time, "start")
        document = self.recorder.snapshot()()
        restored = HistoryRecorder(BOUNDS, capacity=5)
        restored.restore(document, 0.0)
        self.assertEqual(json.loads(restored.snapshot()()), json.loads(document))
        late = HistoryRecorder(BOUNDS, capacity=5)
        late.restore(document, 2.0)
        self.assertEqual(json.loads(late.snapshot()()), json.loads(self.recorder.snapshot(1.0)()))

    @given(JSON)
    def test_bad_documents(self, document: object) -> None:
        """Other JSON is refused, or has no samples."""
        with contextlib.suppress(ValueError):
            self.recorder.restore(json.dumps(document).encode(), 0.0)
        self.assertEqual(self.recorder.ring.count, 0)

    def test_broken_documents(self) -> None:
        """Values for other times, and what is no JSON, are refused."""
        bad = {"times": [1], "series": [{"name": "cpu", "labels": {}, "values": []}], "marks": []}
        for document in (json.dumps(bad).encode(), b"", b"{", b"[" * 5_000_000):
            self.assertRaises(ValueError, self.recorder.restore, document, 0.0)
