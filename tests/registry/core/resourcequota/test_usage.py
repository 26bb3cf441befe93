"""Tests of L{kubetwist.registry.core.resourcequota.usage}."""

from __future__ import annotations

from kubetwist.admission_plugins.resourcequota import ResourceQuota
from kubetwist.registry.core.resourcequota.usage import matches_quota, usage
from tests.admission_plugins.fakes import Context, write
from tests.admission_plugins.fakes import PluginTestCase as SinglePluginTestCase


class UsageTests(SinglePluginTestCase):
    """Tests of the usage of objects and matching quotas."""

    def test_negative(self) -> None:
        """Negative requests are rejected."""
        context = Context()
        quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {}}
        quota["status"] = {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}}
        context.add("", "resourcequotas", quota)
        obj = {"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"requests": {"cpu": "-1"}}}]}}
        self.assertEqual(
            self.error_text(ResourceQuota(), write(obj, context=context)),
            "quota usage is negative for resource(s): cpu,requests.cpu",
        )

    def test_devices(self) -> None:
        """A resource claim uses devices by class; the maximum of alternatives counts, and the limit for all devices."""
        requests = [
            {"exactly": {"deviceClassName": "gpu", "count": 2}},
            {"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {"firstAvailable": [{"deviceClassName": "fpga", "count": 3}, {"deviceClassName": "fpga"}]},
        ]
        used = usage("resource.k8s.io", "resourceclaims", {"spec": {"devices": {"requests": requests}}})
        self.assertEqual(
            {name: str(amount) for name, amount in used.items()},
            {
                "count/resourceclaims.resource.k8s.io": "1",
                "gpu.deviceclass.resource.k8s.io/devices": "34",
                "fpga.deviceclass.resource.k8s.io/devices": "3",
            },
        )

    def test_volume_attributes_classes(self) -> None:
        """A quota can be restricted to claims with a requested or current attributes class."""
        expression = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}
        quota = {"spec": {"scopeSelector": {"matchExpressions": [expression]}}}
        asked = {"spec": {"volumeAttributesClassName": "gold"}}
        has = {"spec": {"volumeAttributesClassName": "tin"}, "status": {"currentVolumeAttributesClassName": "gold"}}
        for claim, counted in ((asked, True), (has, True), ({"spec": {}}, False)):
            self.assertEqual(matches_quota(quota, "", "persistentvolumeclaims", claim), counted)
        self.assertFalse(matches_quota(quota, "", "configmaps", asked))
