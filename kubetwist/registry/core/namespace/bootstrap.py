"""Creation of the system namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...generic.bootstrap import ensure

if TYPE_CHECKING:
    from ...stores import Stores


SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")


async def system_namespaces(stores: Stores) -> None:
    """Create the namespaces C{default}, C{kube-system} and others, unless they exist."""
    store = stores.get("", "namespaces")
    for name in SYSTEM_NAMESPACES:
        await ensure(store, {"metadata": {"name": name}})
