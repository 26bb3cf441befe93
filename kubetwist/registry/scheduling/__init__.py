"""The group scheduling.k8s.io: PriorityClasses."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("scheduling.k8s.io", "priorityclasses", "PriorityClass", short="pc"),
    define_kind(
        "scheduling.k8s.io",
        "compositepodgroups",
        "CompositePodGroup",
        namespaced=True,
        versions="v1alpha3:37",
        status=True,
        gate="CompositePodGroup",
    ),
    define_kind(
        "scheduling.k8s.io",
        "podgroups",
        "PodGroup",
        namespaced=True,
        versions="v1beta1:37 v1alpha3:37 v1alpha2:36",
        status=True,
        gate="GenericWorkload",
    ),
    define_kind(
        "scheduling.k8s.io",
        "workloads",
        "Workload",
        namespaced=True,
        versions="v1beta1:37 v1alpha3:37 v1alpha2:36 v1alpha1:35",
        gate="GenericWorkload",
    ),
)
