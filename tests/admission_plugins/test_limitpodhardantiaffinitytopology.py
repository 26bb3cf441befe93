"""Tests for L{LimitPodHardAntiAffinityTopology}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.limitpodhardantiaffinitytopology import LimitPodHardAntiAffinityTopology
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import PluginTestCase, pod, write


class AntiAffinityTests(PluginTestCase):
    """Tests for L{LimitPodHardAntiAffinityTopology}."""

    def test_topology(self) -> None:
        """Required anti-affinity can have the topology of a node only; preferred anti-affinity is not restricted."""
        plugin = LimitPodHardAntiAffinityTopology()
        verifyObject(IValidatingAdmission, plugin)

        def spread(key: str, rule: str = "required") -> JSONObject:
            terms = [{"topologyKey": "kubernetes.io/hostname"}, {"topologyKey": key}]
            return pod(affinity={"podAntiAffinity": {f"{rule}DuringSchedulingIgnoredDuringExecution": terms}})

        self.validate(plugin, write(pod()))
        self.validate(plugin, write(spread("kubernetes.io/hostname")))
        self.validate(plugin, write(spread("zone", "preferred")))
        self.assertEqual(
            self.error_text(plugin, write(spread("zone"))),
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone "
            "but only key kubernetes.io/hostname is allowed",
        )
