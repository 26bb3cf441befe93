"""Tests for L{kubetwist.registry.core.service.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests for the defaults of services."""

    def test_service(self) -> None:
        """A service is internal to the cluster; ports lead to the same number."""
        spec = defaulted("", "Service", spec={"ports": [{"port": 80}]})["spec"]
        self.assertEqual(spec["ports"], [{"port": 80, "protocol": "TCP", "targetPort": 80}])
        self.assertEqual(
            (spec["type"], spec["sessionAffinity"], spec["internalTrafficPolicy"]), ("ClusterIP", "None", "Cluster")
        )
        self.assertNotIn("externalTrafficPolicy", spec)

    def test_load_balancer(self) -> None:
        """A balancer's service has node ports and takes traffic from outside."""
        spec = defaulted("", "Service", spec={"type": "LoadBalancer"})["spec"]
        self.assertTrue(spec["allocateLoadBalancerNodePorts"])
        self.assertEqual(spec["externalTrafficPolicy"], "Cluster")
