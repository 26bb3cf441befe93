"""Tests of L{kubetwist.registry.core.pod.qos}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.qos import qos_class


class QualityTests(SynchronousTestCase):
    """Tests of L{qos_class}."""

    def test_classes(self) -> None:
        """A pod with limits for all resources is Guaranteed, one without requests BestEffort."""
        full = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1Gi"}}
        for resources, expected in (
            ([full], "Guaranteed"),
            ([full, full], "Guaranteed"),
            ([full, {}], "Burstable"),
            ([{"requests": {"cpu": "1"}}], "Burstable"),
            ([{"limits": {"cpu": "0"}}], "BestEffort"),
            ([{"requests": {"example.com/gpu": "1"}}], "BestEffort"),
            ([{}], "BestEffort"),
            ([{**full, "requests": {"cpu": "500m", "memory": "1Gi"}}], "Burstable"),
        ):
            spec = {"containers": [{"name": "c", "resources": one} for one in resources]}
            self.assertEqual(qos_class(spec), expected, resources)

    def test_whole_pod(self) -> None:
        """Pod-level resources determine the class."""
        limits = {"cpu": "1", "memory": "1Gi"}
        spec = {"resources": {"limits": limits, "requests": limits}, "containers": [{"name": "c"}]}
        self.assertEqual(qos_class(spec), "Guaranteed")

    def test_zero_pod_resources(self) -> None:
        """Pod-level resources of zero make a pod BestEffort."""
        spec = {"resources": {}, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
        self.assertEqual(qos_class(spec), "BestEffort")
