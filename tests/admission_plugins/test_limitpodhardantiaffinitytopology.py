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
        """Others can be kept from a pod's node, and from nothing larger; preferring so is everyone's own affair."""
        plugin = LimitPodHardAntiAffinityTopology()
        verifyObject(IValidatingAdmission, plugin)

        def spread(key: str, rule: str = "required") -> JSONObject:
            terms = [{"topologyKey": "kubernetes.io/hostname"}, {"topologyKey": key}]
            return pod(affinity={"podAntiAffinity": {f"{rule}DuringSchedulingIgnoredDuringExecution": terms}})

        self.validate(plugin, write(pod()))
        self.validate(plugin, write(spread("kubernetes.io/hostname")))
        self.validate(plugin, write(spread("zone", "preferred")))
        self.assertEqual(
            self.why(plugin, write(spread("zone"))),
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone "
            "but only key kubernetes.io/hostname is allowed",
        )
