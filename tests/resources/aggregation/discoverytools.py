"""Discovery documents of aggregated servers, for tests."""

from __future__ import annotations

from typing import Any

from kubetwist.api.resource import JSONObject

LAMPS: JSONObject = {
    "resource": "lamps",
    "responseKind": {"group": "far.example.com", "version": "v1", "kind": "Lamp"},
    "scope": "Namespaced",
    "singularResource": "lamp",
    "verbs": ["get", "list"],
}


def everything(*versions: tuple[str, str], resources: Any = (LAMPS,)) -> JSONObject:
    """Return an aggregated discovery document."""
    groups: dict[str, list[JSONObject]] = {}
    for group, version in versions:
        groups.setdefault(group, []).append({"version": version, "resources": list(resources)})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": name}, "versions": found} for name, found in groups.items()],
    }
