"""The priority classes that a server creates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..generic.bootstrap import ensure

if TYPE_CHECKING:
    from ..stores import Stores


async def ensure_priority_classes(stores: Stores) -> None:
    """Create the two system priority classes, which users cannot define."""
    store = stores.get("scheduling.k8s.io", "priorityclasses")
    for name, value, text in (
        (
            "system-node-critical",
            2000001000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2000000000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if "
            "necessary.",
        ),
    ):
        await ensure(store, {"metadata": {"name": name}, "value": value, "description": text})
