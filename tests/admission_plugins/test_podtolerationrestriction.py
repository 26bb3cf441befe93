"""Tests for L{PodTolerationRestriction}."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.pluginconfig import InvalidConfiguration
from kubetwist.admission_plugins.podtolerationrestriction import PodTolerationRestriction
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write
from tests.admission_plugins.podtools import in_namespace


class TolerationRestrictionTests(PluginTestCase):
    """Tests for L{PodTolerationRestriction}."""

    EXISTS: ClassVar[JSONObject] = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}

    PRESSURE: ClassVar[JSONObject] = {
        "key": "node.kubernetes.io/memory-pressure",
        "operator": "Exists",
        "effect": "NoSchedule",
    }

    def plugin(self, **fields: Any) -> PodTolerationRestriction:
        """Return the plugin."""
        kind = {"kind": "Configuration", "apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1"}
        plugin = PodTolerationRestriction.configured(Context(), {**kind, **fields} if fields else None)
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        return plugin

    def test_defaults(self) -> None:
        """
        A pod gets the default tolerations of its namespace, or else of the cluster; an empty annotation adds none.
        """
        other = {"key": "b", "operator": "Exists"}
        plugin = self.plugin(default=[self.EXISTS])
        for fields, expected in (
            ({"defaultTolerations": orjson.dumps([other]).decode()}, [other]),
            ({}, [self.EXISTS]),
            ({"defaultTolerations": ""}, None),
        ):
            spec = self.admit_twice(plugin, write(pod(), context=in_namespace(**fields)))["spec"]
            self.assertEqual(spec.get("tolerations"), expected)

    def test_memory_pressure(self) -> None:
        """Pods with memory requests tolerate memory pressure; updates add no defaults."""
        obj = pod()
        obj["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Mi"}}
        plugin = self.plugin(default=[self.EXISTS])
        request = write(obj, operation="UPDATE", old=obj, context=in_namespace())
        self.assertEqual(self.admit_twice(plugin, request)["spec"]["tolerations"], [self.PRESSURE])

    def test_allowed(self) -> None:
        """The tolerations of a pod must be allowed by the namespace, or else by the cluster."""
        text = "pod tolerations (possibly merged with namespace default tolerations) conflict with its {} whitelist"
        obj = pod(tolerations=[{"key": "x", "operator": "Exists"}])
        narrow = orjson.dumps([self.EXISTS]).decode()
        error = self.rejection(self.plugin(), write(obj, context=in_namespace(tolerationsWhitelist=narrow)))
        self.assertEqual((error.code, error.message), (500, text.format("namespace")))
        error = self.rejection(self.plugin(whitelist=[self.EXISTS]), write(obj, context=in_namespace()), admitting=True)
        self.assertEqual(error.message, text.format("cluster"))
        everything = write(obj, context=in_namespace(tolerationsWhitelist=""))
        self.validate(self.plugin(whitelist=[self.EXISTS]), everything)
        self.validate(self.plugin(whitelist=[{"operator": "Exists"}]), write(obj, context=in_namespace()))

    def test_bad_annotation(self) -> None:
        """An invalid annotation is an error with its text."""
        for written in (
            "{",
            "{}",
            '["a"]',
            '[{"key": 1}]',
            '[{"tolerationSeconds": "1"}]',
            '[{"tolerationSeconds": true}]',
        ):
            error = self.rejection(
                self.plugin(), write(pod(), context=in_namespace(defaultTolerations=written)), admitting=True
            )
            self.assertEqual((error.code, error.reason), (500, ""))
        self.assertEqual(
            error.message,
            "json: cannot unmarshal bool into Go struct field Toleration.tolerationSeconds of type int64",
        )
        junk = write(pod(), context=in_namespace(defaultTolerations="junk"))
        error = self.rejection(self.plugin(), junk, admitting=True)
        self.assertEqual(error.message, "invalid character 'j' looking for beginning of value")

    def test_no_namespace(self) -> None:
        """A pod in a missing namespace is rejected with 404."""
        self.assertEqual(self.rejection(self.plugin(), write(pod()), admitting=True).code, 404)

    def test_configuration(self) -> None:
        """An invalid configuration stops the server."""
        for fields in ({"default": [{"key": 1}]}, {"default": {}}, {"other": []}):
            with self.assertRaises(InvalidConfiguration):
                self.plugin(**fields)
