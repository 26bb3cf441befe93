"""The group batch: Jobs and CronJobs."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("batch", "cronjobs", "CronJob", namespaced=True, short="cj", categories="all", status=True),
    define_kind("batch", "jobs", "Job", namespaced=True, categories="all", status=True),
)
