"""The group autoscaling: HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "autoscaling",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        namespaced=True,
        versions="v2 v1 v2beta2",
        short="hpa",
        categories="all",
        status=True,
    ),
)
