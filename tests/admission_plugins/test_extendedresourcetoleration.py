"""Tests for L{ExtendedResourceToleration}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.extendedresourcetoleration import ExtendedResourceToleration
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission
from tests.admission_plugins.fakes import PluginTestCase, every_container, write


class ExtendedResourceTests(PluginTestCase):
    """Tests for L{ExtendedResourceToleration}."""

    plugin = ExtendedResourceToleration()

    def admitted(self, *names: str, **spec: Any) -> list[JSONObject]:
        """Return the tolerations of a pod with resource requests of an init container and a regular one."""
        obj = every_container()
        obj["spec"].update(spec)
        for kind, name in zip(("containers", "initContainers"), names, strict=False):
            obj["spec"][kind][0]["resources"] = {"requests": {name: "1", "cpu": "1"}}
        result: list[JSONObject] = self.admit_twice(self.plugin, write(obj))["spec"].get("tolerations", [])
        return result

    def test_added(self) -> None:
        """A pod tolerates the taints named after its extended resources, sorted; native resources add none."""
        verifyObject(IMutatingAdmission, self.plugin)
        expected = [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in ("example.com/a", "example.com/b")
        ]
        self.assertEqual(self.admitted("example.com/b", "example.com/a"), expected)
        self.assertEqual(self.admitted("memory", "hugepages-2Mi"), [])
        self.assertEqual(self.admitted("requests.example.com/a", "x.kubernetes.io/a"), [])

    def test_existing(self) -> None:
        """The same toleration with seconds is replaced, and other tolerations are kept."""
        there = {"key": "example.com/a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}
        other = {"key": "example.com/a", "operator": "Exists", "effect": "NoExecute"}
        plain = {"key": "example.com/a", "operator": "Exists", "effect": "NoSchedule"}
        self.assertEqual(self.admitted("example.com/a", tolerations=[there, other]), [plain, other])
        self.assertEqual(self.admitted("example.com/a", tolerations=[plain]), [plain])
