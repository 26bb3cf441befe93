"""The group autoscaling: HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import Final

from ..generic.conversion import register_converters
from ..generic.internaltypes import register_internal_types
from ..generic.resourceinfo import Kind, define_kind
from .conversion import CONVERTERS, INTERNAL_TYPES

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

register_converters(CONVERTERS)
register_internal_types(INTERNAL_TYPES)
