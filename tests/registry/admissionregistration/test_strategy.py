"""Tests for L{kubetwist.registry.admissionregistration.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import made

ADMISSION = "admissionregistration.k8s.io"


class DefaultTests(SynchronousTestCase):
    """What is filled in."""

    def test_policies(self) -> None:
        """Policies fail, unless they say otherwise; whether they are asked again is theirs to say."""
        policy = made(ADMISSION, "MutatingAdmissionPolicy", spec={})
        self.assertEqual(policy["spec"], {"failurePolicy": "Fail"})
