"""Test cases of the PodSecurity plugin in a namespace with labels."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.podsecurity.plugin import PodSecurity
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, Write, pod, write

KIND = {"kind": "PodSecurityConfiguration", "apiVersion": "pod-security.admission.config.k8s.io/v1"}


def labelled(**modes: str) -> JSONObject:
    """Return labels: C{enforce}, C{enforce_version} and so on."""
    return {f"pod-security.kubernetes.io/{mode.replace('_', '-')}": value for mode, value in modes.items()}


class PodSecurityTestCase(PluginTestCase):
    """A test case of the plugin in a namespace with labels."""

    def setUp(self) -> None:
        """Create a server without objects."""
        self.context = Context()

    def plugin(self, configuration: JSONObject | None = None) -> PodSecurity:
        """Return the plugin."""
        decoded = None if configuration is None else {**KIND, **configuration}
        plugin = PodSecurity.configured(self.context, decoded)
        verifyObject(IValidatingAdmission, plugin)
        return plugin

    def labels(self, **modes: str) -> None:
        """Set the labels of the namespace."""
        self.context.add("", "namespaces", {"metadata": {"name": "ns", "labels": labelled(**modes)}})

    def write(self, obj: JSONObject | None, resource: str = "pods", operation: str = "CREATE", **fields: Any) -> Write:
        """Return a write in the namespace."""
        return write(obj, resource, operation, context=self.context, **fields)


class NamespaceTestCase(PodSecurityTestCase):
    """A test case of writes of the namespace."""

    def namespace(self, old: JSONObject | None = None, **modes: str) -> Write:
        """Return a write of the namespace."""
        obj = {"metadata": {"name": "ns", "labels": labelled(**modes)}}
        before = None if old is None else {"metadata": {"name": "ns", "labels": old}}
        return self.write(obj, "namespaces", "CREATE" if old is None else "UPDATE", old=before)

    def add(self, name: str, controller: str = "", **spec: Any) -> None:
        """Add a pod."""
        obj = pod(name, **spec)
        obj["metadata"]["namespace"] = "ns"
        if controller:
            obj["metadata"]["ownerReferences"] = [{"uid": "x"}, {"uid": controller, "controller": True}]
        self.context.add("", "pods", obj)
