"""Tests for L{PodTopologyLabels}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.podtopologylabels import PodTopologyLabels
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission
from tests.admission_plugins.classes import ClassTestCase, named


class TopologyTests(ClassTestCase):
    """Tests for L{PodTopologyLabels}."""

    def test_topology(self) -> None:
        """A binding, and a pod with a node, get the zone and region labels of the node and no other labels."""
        labels = {"topology.kubernetes.io/zone": "z", "other": "x"}
        node = named("n", metadata={"labels": labels})
        plugin = PodTopologyLabels()
        verifyObject(IMutatingAdmission, plugin)
        binding: JSONObject = {"metadata": {"name": "p"}, "target": {"name": "n"}}
        self.assert_admitted(plugin.admit, "pods", binding, subresource="binding", nodes=[node])
        self.assertEqual(binding["metadata"]["labels"], {"topology.kubernetes.io/zone": "z"})
        placed: JSONObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}}
        self.assert_admitted(plugin.admit, "pods", placed, nodes=[node])
        self.assertEqual(placed["metadata"]["labels"], {"a": "b", "topology.kubernetes.io/zone": "z"})
