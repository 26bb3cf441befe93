"""The group lifecycle.k8s.io: EvictionRequests and Evictions."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "lifecycle.k8s.io",
        "evictionrequests",
        "EvictionRequest",
        namespaced=True,
        versions="v1alpha1:37",
        status=True,
        gate="EvictionRequestAPI",
    ),
    define_kind(
        "lifecycle.k8s.io",
        "evictions",
        "Eviction",
        namespaced=True,
        versions="v1alpha1:37",
        status=True,
        gate="EvictionRequestAPI",
    ),
)
