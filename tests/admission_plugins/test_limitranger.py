"""Tests for L{LimitRanger}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.limitranger import ANNOTATION, LimitRanger
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.quotatools import PluginTestCase, claim, sized
from tests.resources.server import pod


class LimitRangerTests(PluginTestCase):
    """Tests for L{LimitRanger}."""

    def limit(self, **limit: Any) -> None:
        """Create a LimitRange with one limit, and enable the plugin."""
        self.made(self.store("limitranges"), {"metadata": {"name": "lr"}, "spec": {"limits": [limit]}})
        plugin = LimitRanger()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        self.use(plugin)

    def test_defaults(self) -> None:
        """Containers without requests or limits get the defaults, with an annotation."""
        self.limit(type="Container", default={"cpu": "500m"}, defaultRequest={"cpu": "100m", "memory": "1Gi"})
        made = self.made(self.store("pods"), sized("p", requests={"cpu": "200m"}))
        resources = made["spec"]["containers"][0]["resources"]
        self.assertEqual(resources, {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "500m"}})
        name = made["spec"]["containers"][0]["name"]
        self.assertEqual(
            made["metadata"]["annotations"][ANNOTATION],
            f"LimitRanger plugin set: memory request for container {name}; cpu limit for container {name}",
        )

    def test_no_annotation(self) -> None:
        """Containers with all requests and limits get no annotation."""
        self.limit(type="Container", max={"cpu": "2"})
        made = self.made(self.store("pods"), sized("p", requests={"cpu": "1"}, limits={"cpu": "1"}))
        self.assertNotIn("annotations", made["metadata"])

    def test_bounds(self) -> None:
        """
        The amounts of a container must be between minimum and maximum, and within the ratio; all violations are
        reported.
        """
        self.limit(type="Container", min={"cpu": "50m"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "10"})
        over = sized("p", requests={"cpu": "1"}, limits={"cpu": "3"})
        self.assertEqual(self.error_text("pods", over), "maximum cpu usage per Container is 2, but limit is 3")
        under = sized("p", requests={"cpu": "10m"}, limits={"cpu": "1"})
        self.assertEqual(
            self.error_text("pods", under),
            "[minimum cpu usage per Container is 50m, but request is 10m, "
            "cpu max limit to request ratio per Container is 10, but provided ratio is 100.000000]",
        )

    def test_pods(self) -> None:
        """Limits of type Pod apply to the sum of the containers."""
        self.limit(type="Pod", max={"memory": "1Gi"})
        obj = sized("p", limits={"memory": "600Mi"})
        obj["spec"]["containers"].append({**obj["spec"]["containers"][0], "name": "other"})
        self.assertEqual(self.error_text("pods", obj), "maximum memory usage per Pod is 1Gi, but limit is 1200Mi")
        self.assertIn("No limit is specified", self.error_text("pods", sized("p")))

    def test_pod_level_resources(self) -> None:
        """Pod-level CPU and memory override the sums; the overhead does not count."""
        self.limit(type="Pod", max={"cpu": "1"}, min={"memory": "1Gi"})
        obj = sized("p", requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"})
        obj["spec"]["overhead"] = {"cpu": "1"}
        self.made(self.store("pods"), obj)
        pod_level = pod("q")
        pod_level["spec"]["resources"] = {"requests": {"memory": "1Gi"}, "limits": {"cpu": "2"}}
        self.assertEqual(self.error_text("pods", pod_level), "maximum cpu usage per Pod is 1, but limit is 2")

    def test_claims(self) -> None:
        """Limits of type PersistentVolumeClaim apply to claims."""
        self.limit(type="PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "5Gi"})
        constraint = "storage usage per PersistentVolumeClaim is"
        self.assertEqual(
            self.error_text("persistentvolumeclaims", claim("c", "1Mi")),
            f"minimum {constraint} 1Gi, but request is 1Mi",
        )
        self.assertEqual(
            self.error_text("persistentvolumeclaims", claim("c", "6Gi")),
            f"maximum {constraint} 5Gi, but request is 6Gi",
        )
        self.made(self.store("persistentvolumeclaims"), claim("c", "2Gi"))
