"""The group storagemigration.k8s.io: StorageVersionMigrations."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind(
        "storagemigration.k8s.io",
        "storageversionmigrations",
        "StorageVersionMigration",
        versions="v1:37 v1beta1:35 v1alpha1:30",
        status=True,
        gate="StorageVersionMigrator",
    ),
)
