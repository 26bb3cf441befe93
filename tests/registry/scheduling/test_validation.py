"""Tests for L{kubetwist.registry.scheduling.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class PriorityClassTests(SynchronousTestCase):
    """PriorityClasses."""

    def test_priority_class(self) -> None:
        """The highest priorities are the system's."""
        self.assertEqual(
            problems("scheduling.k8s.io", "PriorityClass", value=1000000001),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        )


class PreemptionTests(SynchronousTestCase):
    """Preemption policies of priority classes."""

    def test_preemption(self) -> None:
        """A policy that is there is a text."""
        self.assertEqual(
            problems("scheduling.k8s.io", "PriorityClass", preemptionPolicy=""), ["preemptionPolicy: Required value"]
        )
