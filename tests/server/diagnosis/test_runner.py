"""Tests for L{kubetwist.server.diagnosis.runner}."""

from __future__ import annotations

from threading import Event

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.findings import Finding, Severity, ok
from kubetwist.server.diagnosis.runner import Check, run_checks


class RunnerTests(SynchronousTestCase):
    """L{run_checks}."""

    def test_order(self) -> None:
        """Findings have the order of the checks, not of their ends."""
        last = Event()

        def slow() -> list[Finding]:
            last.wait(30)
            return [ok("a", "slow")]

        def quick() -> list[Finding]:
            last.set()
            return [ok("b", "quick"), ok("b", "again")]

        found = run_checks([Check("a", slow), Check("b", quick)], 60)
        self.assertEqual([one.message for one in found], ["slow", "quick", "again"])

    def test_timeout(self) -> None:
        """A check that does not end is a warning, and does not delay other checks."""
        never = Event()
        self.addCleanup(never.set)

        def hang() -> list[Finding]:
            never.wait()
            return []

        found = run_checks([Check("etcd", hang), Check("b", lambda: [ok("b", "done")])], 0.2)
        self.assertEqual([one.id for one in found], ["etcd/timeout", "b"])
        self.assertIs(found[0].severity, Severity.WARNING)

    def test_failure(self) -> None:
        """A check that fails is an error."""

        def fail() -> list[Finding]:
            raise ZeroDivisionError("by zero")

        (found,) = run_checks([Check("clock", fail)], 60)
        self.assertEqual((found.id, found.severity), ("clock/failed", Severity.ERROR))
        self.assertEqual(found.message, "the check failed: ZeroDivisionError: by zero")
