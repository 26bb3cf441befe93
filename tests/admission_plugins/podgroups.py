"""A server with a PodGroup."""

from __future__ import annotations

from typing import Any

from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import Context

GROUP = "scheduling.k8s.io"


def server(resource: str, name: str, *, going: bool = False, uid: str = "", **spec: Any) -> Context:
    """Return a server with one object."""
    meta: JSONObject = {"name": name, "namespace": "ns"}
    if going:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if uid:
        meta["ownerReferences"] = [{"uid": "other"}, {"uid": uid, "controller": True}]
    context = Context()
    context.add(GROUP, resource, {"metadata": meta, "spec": spec})
    return context
