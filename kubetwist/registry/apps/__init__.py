"""The group apps: Deployments, ReplicaSets, DaemonSets, StatefulSets, ControllerRevisions."""

from __future__ import annotations

from typing import Final

from ..generic.internaltypes import register_internal_types
from ..generic.resourceinfo import SCALE, Kind, define_kind
from .conversion import INTERNAL_TYPES

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("apps", "controllerrevisions", "ControllerRevision", namespaced=True),
    define_kind("apps", "daemonsets", "DaemonSet", namespaced=True, short="ds", categories="all", status=True),
    define_kind(
        "apps",
        "deployments",
        "Deployment",
        namespaced=True,
        short="deploy",
        categories="all",
        status=True,
        subresources=(SCALE,),
    ),
    define_kind(
        "apps",
        "replicasets",
        "ReplicaSet",
        namespaced=True,
        short="rs",
        categories="all",
        status=True,
        subresources=(SCALE,),
    ),
    define_kind(
        "apps",
        "statefulsets",
        "StatefulSet",
        namespaced=True,
        short="sts",
        categories="all",
        status=True,
        subresources=(SCALE,),
    ),
)

register_internal_types(INTERNAL_TYPES)
