"""Tests for L{kubetwist.audit.errors}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.audit.errors import (
    Counts,
    PluginErrors,
)


class FailuresTests(SynchronousTestCase):
    """Tests for L{PluginErrors}."""

    def test_not_flooded(self) -> None:
        """The log tells of lost events at once, and then every few seconds how many there were."""
        told: list[Any] = []
        globalLogPublisher.addObserver(told.append)
        self.addCleanup(globalLogPublisher.removeObserver, told.append)
        clock, counts = Clock(), Counts()
        failures = PluginErrors("log", counts, clock)
        for _ in range(5):
            failures.record(2, "disk full")
        clock.advance(10)
        failures.record(1, "disk full")
        self.assertEqual([entry["number"] for entry in told if entry.get("plugin") == "log"], [2, 9])
        self.assertEqual(counts.errors, {"log": 11})
