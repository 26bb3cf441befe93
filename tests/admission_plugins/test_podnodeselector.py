"""Tests for L{PodNodeSelector}."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.pluginconfig import InvalidConfiguration
from kubetwist.admission_plugins.podnodeselector import PodNodeSelector, parse_labels
from kubetwist.api.errors import APIStatusError
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write
from tests.admission_plugins.podtools import in_namespace


class NodeSelectorTests(PluginTestCase):
    """Tests for L{PodNodeSelector}."""

    CONFIGURATION: ClassVar[Any] = {
        "podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "env=any", "ns": "env=any,a=b"}
    }

    def plugin(self, configuration: Any = None) -> PodNodeSelector:
        """Return the plugin."""
        plugin = PodNodeSelector.configured(Context(), configuration)
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        return plugin

    def test_annotation(self) -> None:
        """The node selector of the namespace's annotation is added to the selector of the pod."""
        request = write(pod(nodeSelector={"x": "y"}), context=in_namespace(node_selector="env=prod, disk=ssd"))
        spec = self.admit_twice(self.plugin(), request)["spec"]
        self.assertEqual(spec["nodeSelector"], {"env": "prod", "disk": "ssd", "x": "y"})

    def test_default(self) -> None:
        """Without an annotation the cluster's default is used; an empty annotation selects nothing."""
        request = write(pod(), context=in_namespace())
        self.assertEqual(
            self.admit_twice(self.plugin(self.CONFIGURATION), request)["spec"]["nodeSelector"], {"env": "any"}
        )
        request = write(pod(), context=in_namespace(node_selector=""))
        self.assertNotIn("nodeSelector", self.admit_twice(self.plugin(self.CONFIGURATION), request)["spec"])

    def test_conflicts(self) -> None:
        """A pod whose selector conflicts with the namespace or its allowed labels is rejected."""
        request = write(pod(nodeSelector={"env": "test"}), context=in_namespace(node_selector="env=prod"))
        for admitting in (True, False):
            expected = self.error_text(self.plugin(), request, admitting=admitting)
            self.assertEqual(expected, "pod node label selector conflicts with its namespace node label selector")
        request = write(pod(nodeSelector={"c": "d"}), context=in_namespace())
        expected = self.error_text(self.plugin(self.CONFIGURATION), request, admitting=True)
        self.assertEqual(expected, "pod node label selector labels conflict with its namespace whitelist")

    def test_bad_annotation(self) -> None:
        """An invalid annotation is a 500 with the error text."""
        for written, text in (
            ("a", "invalid selector: [a]"),
            ("a=b=c", "invalid selector: [a b c]"),
            ("=b", '<nil>: Invalid value: "": name part must be non-empty'),
            ("a=b c", '[a]: Invalid value: "b c": a valid label must be'),
        ):
            error = self.rejection(
                self.plugin(), write(pod(), context=in_namespace(node_selector=written)), admitting=True
            )
            self.assertEqual((error.code, error.reason), (500, ""))
            self.assertIn(text, error.message)

    @given(st.text(alphabet="ab=, ./!", max_size=12))
    def test_any_selector(self, text: str) -> None:
        """Any text is parsed as labels or is an APIStatusError."""
        try:
            result = parse_labels(text)
        except APIStatusError as error:
            self.assertEqual(error.code, 500)
        else:
            self.assertEqual(len(result), len({part.split("=")[0].strip() for part in text.split(",") if text}))

    def test_configuration(self) -> None:
        """An invalid configuration stops the server."""
        for configuration in ({"podNodeSelectorPluginConfig": {"ns": 1}}, {"x": 1}, {"podNodeSelectorPluginConfig": 1}):
            with self.assertRaises(InvalidConfiguration):
                self.plugin(configuration)
