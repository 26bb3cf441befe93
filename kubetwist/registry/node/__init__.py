"""The group node.k8s.io: RuntimeClasses."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (define_kind("node.k8s.io", "runtimeclasses", "RuntimeClass"),)
