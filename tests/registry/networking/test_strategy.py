"""Tests for L{kubetwist.registry.networking.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests for the defaults of NetworkPolicies."""

    def test_network_policy_types(self) -> None:
        """The policy type Egress is a default only with egress rules."""
        self.assertEqual(defaulted("networking.k8s.io", "NetworkPolicy")["spec"]["policyTypes"], ["Ingress"])
        both = defaulted("networking.k8s.io", "NetworkPolicy", spec={"egress": [{}]})
        self.assertEqual(both["spec"]["policyTypes"], ["Ingress", "Egress"])


class UpdateTests(SynchronousTestCase):
    """Tests for the preparation of updates of ServiceCIDRs."""

    def test_status_of_ranges(self) -> None:
        """An update of the status of a ServiceCIDR does not change labels."""
        old = {"metadata": {"labels": {"a": "1"}}, "spec": {}}
        obj = {"metadata": {"labels": {"a": "2"}}, "spec": {}, "status": {}}
        strategy_for("networking.k8s.io", "ServiceCIDR").prepare_for_status_update(obj, old)
        self.assertEqual(obj["metadata"]["labels"], {"a": "1"})
