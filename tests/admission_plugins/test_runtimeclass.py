"""Tests for L{RuntimeClass}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.runtimeclass import RuntimeClass
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.classes import ClassTestCase, named


class RuntimeClassTests(ClassTestCase):
    """Tests for L{RuntimeClass}."""

    boxed = named(
        "boxed",
        overhead={"podFixed": {"cpu": "250m"}},
        scheduling={"nodeSelector": {"box": "yes"}, "tolerations": [{"key": "box", "operator": "Exists"}]},
    )

    def admitted(self, **spec: Any) -> JSONObject:
        """Return the spec of a pod of that class after admission."""
        obj = {"metadata": {}, "spec": {"runtimeClassName": "boxed", **spec}}
        plugin = RuntimeClass()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        self.assert_admitted(plugin.admit, "pods", obj, runtimeclasses=[self.boxed])
        self.assert_admitted(plugin.validate, "pods", obj, runtimeclasses=[self.boxed])
        result: JSONObject = obj["spec"]  # type: ignore[assignment]
        return result

    def test_defaults(self) -> None:
        """A pod gets the overhead, the node selector and the tolerations of its class."""
        spec = self.admitted(nodeSelector={"disk": "ssd"}, overhead={"cpu": "0.25"})
        self.assertEqual(spec["overhead"], {"cpu": "250m"})
        self.assertEqual(spec["nodeSelector"], {"disk": "ssd", "box": "yes"})
        self.assertEqual(spec["tolerations"], [{"key": "box", "operator": "Exists"}])

    def test_rejected(self) -> None:
        """A pod that conflicts with its class, or whose class does not exist, is rejected."""
        plugin = RuntimeClass()

        def error_text(**spec: Any) -> str:
            obj = {"metadata": {}, "spec": {"runtimeClassName": "boxed", **spec}}
            return self.error_text(plugin.admit, "pods", obj, runtimeclasses=[self.boxed])

        self.assertEqual(
            error_text(nodeSelector={"box": "no"}),
            "conflict: runtimeClass.scheduling.nodeSelector[box] = yes; pod.spec.nodeSelector[box] = no",
        )
        self.assertIn("Overhead doesn't match", error_text(overhead={"cpu": "1"}))
        self.assertEqual(error_text(runtimeClassName="gone"), 'pod rejected: RuntimeClass "gone" not found')

    def test_no_name(self) -> None:
        """An empty class name is an error."""
        calls = self.call(RuntimeClass().admit, "pods", {"metadata": {}, "spec": {"runtimeClassName": ""}})
        error = self.failureResultOf(calls, APIStatusError).value
        self.assertEqual((error.code, error.message), (500, "resource name may not be empty"))

    def test_overhead_without_class(self) -> None:
        """Overhead without a class is rejected."""
        obj = {"metadata": {}, "spec": {"overhead": {"cpu": "1"}}}
        self.assertIn("without corresponding RuntimeClass", self.error_text(RuntimeClass().validate, "pods", obj))
