"""Pods for the checks of the Pod Security Standards, and their violations."""

from __future__ import annotations

from typing import Any

from kubetwist.admission_plugins.podsecurity.levels import RESTRICTED, LevelVersion
from kubetwist.admission_plugins.podsecurity.standards import CheckRegistry, forbidden_details
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import every_container

NEWEST = 37


STANDARDS = CheckRegistry(NEWEST)


#: The security context of a container that C{restricted} allows.
HARDENED: JSONObject = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


#: The security context of its pod.
HARDENED_POD: JSONObject = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def hardened(context: JSONObject | None = None, pod_context: JSONObject | None = None, **spec: Any) -> JSONObject:
    """Return a pod that C{restricted} allows, with additional fields."""
    pod = every_container(securityContext={**HARDENED, **(context or {})})
    pod["spec"]["securityContext"] = {**HARDENED_POD, **(pod_context or {})}
    pod["spec"].update(spec)
    return pod


def violations(pod: JSONObject, level: str = RESTRICTED, minor: int | None = None) -> str:
    """Return the violations of a level by a pod, in detail."""
    annotations = pod["metadata"].get("annotations") or {}
    return forbidden_details(STANDARDS.evaluate_pod(LevelVersion(level, minor), annotations, pod["spec"]))
