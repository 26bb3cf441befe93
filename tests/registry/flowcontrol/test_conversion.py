"""Tests for L{kubetwist.registry.flowcontrol.conversion}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.flowcontrol import KINDS
from kubetwist.registry.generic.conversion import convert


class FlowControlTests(SynchronousTestCase):
    """Tests for concurrency shares."""

    def level(self, version: str) -> GroupVersionKind:
        """Return the kind in a version."""
        return GroupVersionKind(KINDS[1].group, version, KINDS[1].kind)

    def test_old_name(self) -> None:
        """Assured shares become nominal shares."""
        obj = {"metadata": {"name": "l"}, "spec": {"limited": {"assuredConcurrencyShares": 7}}}
        new = convert(obj, self.level("v1beta2"), self.level("v1"))
        self.assertEqual(new["spec"], {"limited": {"nominalConcurrencyShares": 7}})
        self.assertEqual(convert(new, self.level("v1"), self.level("v1beta2"))["spec"], obj["spec"])

    def test_zero_shares(self) -> None:
        """Zero shares, which only v1 has, are marked in v1beta3; v1 never has the mark."""
        v1, v1beta3 = self.level("v1"), self.level("v1beta3")
        obj = {"metadata": {"name": "l"}, "spec": {"limited": {"nominalConcurrencyShares": 0}}}
        old = convert(obj, v1, v1beta3)
        self.assertEqual(
            old["metadata"]["annotations"], {"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""}
        )
        self.assertEqual(convert(old, v1beta3, v1)["metadata"], {"name": "l"})
