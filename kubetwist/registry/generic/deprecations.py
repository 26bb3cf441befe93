"""Deprecated kinds; see C{APILifecycleDeprecated} in kubernetes/api."""

from __future__ import annotations

from typing import Final

from ...api.resource import GroupVersionKind

#: The minor version of Kubernetes that deprecated a kind, and the replacement of the kind.
DEPRECATED: Final[dict[GroupVersionKind, tuple[int, str]]] = {
    GroupVersionKind("", "v1", "ComponentStatus"): (19, ""),
    GroupVersionKind("", "v1", "Endpoints"): (33, "discovery.k8s.io/v1 EndpointSlice"),
}


def deprecation_warning(gvk: GroupVersionKind, minor: int) -> str:
    """
    Return the deprecation warning of a kind; C{""} if it is not deprecated.

    @param minor: The minor version of Kubernetes that is served.
    """
    since, instead = DEPRECATED.get(gvk, (minor + 1, ""))
    if since > minor:
        return ""
    text = f"{gvk.api_version} {gvk.kind} is deprecated in v1.{since}+"
    return f"{text}; use {instead}" if instead else text
