"""Tests of L{kubetwist.registry.core.pod.gates}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.core.pod.gates import drop_disabled_fields, drop_disabled_status, drop_of_template
from tests.registry.strategytools import copy

SOURCES = [{"clusterTrustBundle": {}, "secret": {}}, {"podCertificate": {}}]
SPEC: dict[str, Any] = {
    "containers": [
        {"name": "a", "lifecycle": {"stopSignal": "SIGUSR1"}},
        {"name": "b", "lifecycle": {"stopSignal": "SIGUSR1", "preStop": {}}},
    ],
    "volumes": [{"name": "v", "projected": {"sources": SOURCES}}],
    "schedulingGroup": {"podGroupName": "g"},
}


class SpecTests(SynchronousTestCase):
    """Tests of L{drop_disabled_fields}."""

    def test_dropped(self) -> None:
        """Fields of disabled gates are dropped, and lifecycles that become empty."""
        spec = copy(SPEC)
        drop_disabled_fields(spec, None, FeatureGates())
        self.assertNotIn("schedulingGroup", spec)
        self.assertEqual(spec["containers"], [{"name": "a"}, {"name": "b", "lifecycle": {"preStop": {}}}])
        self.assertEqual(spec["volumes"][0]["projected"]["sources"], [{"secret": {}}, {}])

    def test_open(self) -> None:
        """Fields of enabled gates are kept."""
        spec = copy(SPEC)
        drop_disabled_fields(spec, None, FeatureGates(settings={"GenericWorkload": True, "ContainerStopSignals": True}))
        self.assertEqual(spec["containers"], SPEC["containers"])
        self.assertIn("schedulingGroup", spec)

    def test_fields_in_use(self) -> None:
        """Each field that the old pod has is kept."""
        spec = copy(SPEC)
        drop_disabled_fields(spec, {"schedulingGroup": {"podGroupName": "other"}}, FeatureGates())
        self.assertIn("schedulingGroup", spec)
        self.assertNotIn("lifecycle", spec["containers"][0])

    def test_templates(self) -> None:
        """Templates are handled as pods; one without a spec is unchanged."""
        template = {"spec": copy(SPEC)}
        drop_of_template(template, None, FeatureGates())
        self.assertNotIn("schedulingGroup", template["spec"])
        drop_of_template(None, None, FeatureGates())
        drop_of_template({}, None, FeatureGates())


class StatusTests(SynchronousTestCase):
    """Tests of L{drop_disabled_status}."""

    def status(self) -> dict[str, Any]:
        """Return a status with all fields of feature gates."""
        mounts = [{"name": "v", "volumeStatus": {"image": {}}}]
        return {"nodeAllocatableResourceClaimStatuses": [{}], "containerStatuses": [{"volumeMounts": mounts}]}

    def test_dropped(self) -> None:
        """Fields of disabled gates are dropped, unless the old status has them."""
        status = self.status()
        drop_disabled_status(status, {}, FeatureGates())
        self.assertEqual(status, {"containerStatuses": [{"volumeMounts": [{"name": "v"}]}]})
        status = self.status()
        drop_disabled_status(status, self.status(), FeatureGates())
        self.assertEqual(status, self.status())
