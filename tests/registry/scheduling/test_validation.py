"""Tests for L{kubetwist.registry.scheduling.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class PriorityClassTests(SynchronousTestCase):
    """Tests for the validation of PriorityClasses."""

    def test_priority_class(self) -> None:
        """The highest priorities are reserved for the system."""
        self.assertEqual(
            problems("scheduling.k8s.io", "PriorityClass", value=1000000001),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        )


class PreemptionTests(SynchronousTestCase):
    """Tests for preemption policies of priority classes."""

    def test_preemption(self) -> None:
        """A preemption policy that is set is not empty."""
        self.assertEqual(
            problems("scheduling.k8s.io", "PriorityClass", preemptionPolicy=""), ["preemptionPolicy: Required value"]
        )
