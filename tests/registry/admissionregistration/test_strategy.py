"""Tests for L{kubetwist.registry.admissionregistration.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import made

ADMISSION = "admissionregistration.k8s.io"


class DefaultTests(SynchronousTestCase):
    """Tests for defaults."""

    def test_policies(self) -> None:
        """The default failure policy is Fail; the reinvocation policy has no default."""
        policy = made(ADMISSION, "MutatingAdmissionPolicy", spec={})
        self.assertEqual(policy["spec"], {"failurePolicy": "Fail"})
