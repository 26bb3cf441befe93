"""The group flowcontrol.apiserver.k8s.io: FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from typing import Final

from ..generic.conversion import register_converters
from ..generic.resourceinfo import Kind, define_kind
from .conversion import CONVERTERS

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        "FlowSchema",
        versions="v1:29 v1beta3:26 v1beta2 v1beta1",
        status=True,
    ),
    define_kind(
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        "PriorityLevelConfiguration",
        versions="v1:29 v1beta3:26 v1beta2 v1beta1",
        status=True,
    ),
)

register_converters(CONVERTERS)
