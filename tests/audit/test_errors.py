"""Tests for L{kubetwist.audit.errors}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.audit.errors import (
    Counts,
    PluginErrors,
)


class FailuresTests(SynchronousTestCase):
    """Tests for L{PluginErrors}."""

    def test_rate_limit(self) -> None:
        """Dropped events are logged immediately, and then every few seconds with their number."""
        reported: list[Any] = []
        globalLogPublisher.addObserver(reported.append)
        self.addCleanup(globalLogPublisher.removeObserver, reported.append)
        clock, counts = Clock(), Counts()
        failures = PluginErrors("log", counts, clock)
        for _ in range(5):
            failures.record(2, "disk full")
        clock.advance(10)
        failures.record(1, "disk full")
        lines = [formatEvent(entry) for entry in reported if entry.get("plugin") == "log"]
        text = "Error in audit plugin 'log' affecting {} audit events: disk full"
        self.assertEqual(lines, [text.format(number) for number in (2, 9)])
        self.assertEqual(counts.errors, {"log": 11})
