"""The group policy: PodDisruptionBudgets."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True, short="pdb", status=True),
)
