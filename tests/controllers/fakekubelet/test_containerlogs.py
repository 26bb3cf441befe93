"""Tests for L{kubetwist.controllers.fakekubelet.containerlogs}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.fakeimages import LogScript
from kubetwist.controllers.fakekubelet.containerlogs import (
    MAX_LINES,
    ContainerLog,
    LogRequest,
    NoLog,
    Run,
    find_run,
)

SCRIPT = LogScript(("one", "two"), 2.0, "tick {n}")


def pod(**status: Any) -> dict[str, Any]:
    """Return a pod with the status of its container."""
    return {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"name": "c", **status}]}}


class ContainerLogTests(SynchronousTestCase):
    """L{ContainerLog}."""

    def lines(self, log: ContainerLog, now: float, timestamps: bool = False, **options: Any) -> list[str]:
        """Return the selected lines at a time."""
        first = log.first(LogRequest(**options), now)
        text = b"".join(log.encoded(first, log.count(now), timestamps=timestamps))
        return text.decode().splitlines()

    def test_time(self) -> None:
        """Lines are written as time passes, until the end of the run."""
        log = ContainerLog(SCRIPT, Run(0, 100.0, None))
        self.assertEqual(self.lines(log, 99), [])
        self.assertEqual(self.lines(log, 101.9), ["one", "two"])
        self.assertEqual(self.lines(log, 104), ["one", "two", "tick 1", "tick 2"])
        self.assertEqual(log.next_wait(4, 104), 2.0)
        self.assertEqual(self.lines(ContainerLog(SCRIPT, Run(0, 100.0, 102.0)), 110), ["one", "two", "tick 1"])
        self.assertIsNone(ContainerLog(SCRIPT, Run(0, 100.0, 102.0)).next_wait(3, 110))
        self.assertIsNone(ContainerLog(LogScript(("a",)), Run(0, 100.0, None)).next_wait(1, 110))

    def test_options(self) -> None:
        """Lines are selected by number and time, and sent with timestamps."""
        log = ContainerLog(SCRIPT, Run(0, 100.0, None))
        self.assertEqual(self.lines(log, 104, tail=1), ["tick 2"])
        self.assertEqual(self.lines(log, 104, tail=0), [])
        self.assertEqual(self.lines(log, 104, since=102.0), ["tick 1", "tick 2"])
        self.assertEqual(self.lines(log, 104, since=102.5), ["tick 2"])
        self.assertEqual(self.lines(log, 104, since=50.0), ["one", "two", "tick 1", "tick 2"])
        self.assertEqual(self.lines(ContainerLog(LogScript(("a",)), Run(0, 100.0, None)), 104, since=101.0), [])
        half = ContainerLog(LogScript((), 0.5, "x"), Run(0, 100.0, None))
        self.assertEqual(self.lines(half, 100.5, True), ["1970-01-01T00:01:40.500000000Z x"])

    def test_rotation(self) -> None:
        """Old lines of a long log are removed."""
        log = ContainerLog(LogScript((), 0.001, "x"), Run(0, 0.0, None))
        self.assertEqual(log.count(1000.0) - log.first(LogRequest(), 1000.0), MAX_LINES)

    @given(st.integers(0, 5), st.sampled_from([0.0, 0.1, 1.0, 7.0]), st.floats(0, 1000), st.floats(-100, 1000))
    def test_times(self, count: int, every: float, now: float, since: float) -> None:
        """All selected lines were written at or after the requested time, and none is missing."""
        log = ContainerLog(LogScript(("x",) * count, every, "y"), Run(0, 0.0, None))
        written, first = log.count(now), log.first(LogRequest(since=since), now)
        self.assertTrue(all(log.time(one) >= since - 1e-6 for one in range(first, written)))
        self.assertTrue(all(log.time(one) < since + 1e-6 for one in range(min(first, written))))

    def test_parse(self) -> None:
        """Options are read from the query of the kubelet."""
        query = {"follow": ["true"], "sinceSeconds": ["10"], "tailLines": ["2"], "limitBytes": ["3"]}
        self.assertEqual(LogRequest.parse(query, 100.0), LogRequest(True, since=90.0, tail=2, limit=3))
        query = {"sinceTime": ["1970-01-01T00:00:05Z"], "previous": ["true"], "timestamps": ["true"]}
        self.assertEqual(LogRequest.parse(query, 100.0), LogRequest(False, True, True, 5.0))
        self.assertRaises(ValueError, LogRequest.parse, {"tailLines": ["x"]}, 0.0)


class FindRunTests(SynchronousTestCase):
    """L{find_run}."""

    start, end = "1970-01-01T00:00:05Z", "1970-01-01T00:00:09Z"
    terminated: dict[str, Any] = {"terminated": {"startedAt": start, "finishedAt": end, "exitCode": 1}}  # noqa: RUF012

    def test_running(self) -> None:
        """A running container has its current log, and the one before its restart."""
        status = pod(state={"running": {"startedAt": self.end}}, lastState=self.terminated, restartCount=2)
        self.assertEqual(find_run(status, "c", previous=False), Run(2, 9.0, None))
        self.assertEqual(find_run(status, "c", previous=True), Run(1, 5.0, 9.0))

    def test_waiting(self) -> None:
        """A container that waits for its restart has the log of its last run."""
        status = pod(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=self.terminated, restartCount=2)
        for previous in (False, True):
            self.assertEqual(find_run(status, "c", previous=previous), Run(2, 5.0, 9.0))
        self.assertEqual(find_run(pod(state=self.terminated), "c", previous=False), Run(0, 5.0, 9.0))

    def test_none(self) -> None:
        """A container that has not run has no log."""
        for status, previous, message in (
            (pod(), False, 'container "c" in pod "p" is waiting to start: ContainerCreating'),
            (
                pod(state={"waiting": {"reason": "ImagePullBackOff"}}),
                False,
                'container "c" in pod "p" is waiting to start: trying and failing to pull image',
            ),
            (pod(), True, 'previous terminated container "c" in pod "p" not found'),
        ):
            with self.assertRaises(NoLog) as caught:
                find_run(status, "c", previous=previous)
            self.assertEqual(str(caught.exception), message)
