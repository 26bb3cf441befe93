"""Nodes, namespaces and pods for tests of plugins."""

from __future__ import annotations

from typing import Any

from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import Context, PluginTestCase, pod


def in_namespace(**annotations: str) -> Context:
    """Return a server whose namespace has annotations below C{scheduler.alpha.kubernetes.io/}."""
    written = {f"scheduler.alpha.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    context = Context()
    context.add("", "namespaces", {"metadata": {"name": "ns", "annotations": written}})
    return context


class ResizeTestCase(PluginTestCase):
    """A test case with resized pods."""

    def node(self, system: str = "linux", **status: Any) -> Context:
        """Return a server with one node."""
        context = Context()
        labels = {"kubernetes.io/os": system} if system else {}
        context.add("", "nodes", {"metadata": {"name": "n", "labels": labels}, "status": status})
        return context

    def sized(self, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> JSONObject:
        """Return a pod on the node."""
        obj = pod(nodeName="n", **spec)
        obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
        return obj
