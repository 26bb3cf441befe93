"""The group events.k8s.io, whose events are stored in the format of the core group."""

from __future__ import annotations

from typing import Final

from ..generic.resourceinfo import Kind, define_kind

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("events.k8s.io", "events", "Event", namespaced=True, short="ev", storage_group=""),
)
