"""The group internal.apiserver.k8s.io: StorageVersions."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("internal.apiserver.k8s.io", "storageversions", "StorageVersion", versions="v1alpha1", status=True),
)
