"""Base class and objects of tests of updates."""

from __future__ import annotations

from typing import Any

from tests.registry.storetools import StoreTestCase


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    """Return a Deployment."""
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.org/main:1"}]},
            },
            **spec,
        },
    }


class ViewTestCase(StoreTestCase):
    """Base class of tests with a Deployment."""

    def setUp(self) -> None:
        """Create a Deployment."""
        super().setUp()
        self.deployments = self.store("deployments", "apps")
        self.first = self.made(self.deployments, deployment("d", replicas=2))
