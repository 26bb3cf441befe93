"""The group coordination.k8s.io: Leases."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("coordination.k8s.io", "leases", "Lease", namespaced=True),
    define_kind(
        "coordination.k8s.io",
        "leasecandidates",
        "LeaseCandidate",
        namespaced=True,
        versions="v1beta1:33 v1alpha2:32 v1alpha1:31",
    ),
)
