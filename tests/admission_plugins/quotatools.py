"""Pods and claims with resource requests, and a test case of plugins in front of stores."""

from __future__ import annotations

from typing import Any

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod


def sized(name: str, **resources: Any) -> dict[str, Any]:
    """Return a pod with resource requests."""
    obj = pod(name)
    obj["spec"]["containers"][0]["resources"] = resources
    return obj


def claim(name: str, storage: str) -> dict[str, Any]:
    """Return a PersistentVolumeClaim."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": name}, "spec": spec}


class PluginTestCase(StoreTestCase):
    """A test case of plugins in front of stores."""

    resources = ("pods", "persistentvolumeclaims", "limitranges", "resourcequotas", "configmaps", "services")

    def use(self, *plugins: Any) -> None:
        """Enable plugins for all writes."""
        self.server.admit(*plugins)

    def error_text(self, resource: str, obj: dict[str, Any], **options: Any) -> str:
        """Return the message of the rejection."""
        store = self.store(resource)
        store.strategy.default(obj)
        error: APIStatusError = self.refused(store.create(self.scope, obj, CreateOptions(**options)))
        self.assertEqual((error.code, error.reason), (403, "Forbidden"))
        return error.message.partition("is forbidden: ")[2]
