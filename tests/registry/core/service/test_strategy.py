"""Tests of L{kubetwist.registry.core.service.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests of the defaults of Services."""

    def test_service(self) -> None:
        """The default type is ClusterIP; the target port is the port."""
        spec = defaulted("", "Service", spec={"ports": [{"port": 80}]})["spec"]
        self.assertEqual(spec["ports"], [{"port": 80, "protocol": "TCP", "targetPort": 80}])
        self.assertEqual(
            (spec["type"], spec["sessionAffinity"], spec["internalTrafficPolicy"]), ("ClusterIP", "None", "Cluster")
        )
        self.assertNotIn("externalTrafficPolicy", spec)

    def test_load_balancer(self) -> None:
        """A load balancer service has node ports and the external traffic policy Cluster."""
        spec = defaulted("", "Service", spec={"type": "LoadBalancer"})["spec"]
        self.assertTrue(spec["allocateLoadBalancerNodePorts"])
        self.assertEqual(spec["externalTrafficPolicy"], "Cluster")
