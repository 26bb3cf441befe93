"""Which resource is stored where: the other way round than everywhere else."""

from __future__ import annotations

from collections.abc import Callable

from ..api.resource import GroupResource
from .kindtable import KINDS


def resource_of_key(prefix: str) -> Callable[[str], GroupResource | None]:
    """
    Return a function that maps a storage key to the resource of the object.

    It knows the built-in resources of every release, and custom ones by the form of their keys. L{None} is its answer
    for what is no object of a resource. Of two resources with one place, it is the one in whose group objects are
    stored.

    @param prefix: Of all keys in the store, with its last slash: C{"/registry/"}.
    """
    known = {
        kind.key_prefix: GroupResource(kind.storage_group, kind.resource)
        for kind in KINDS
        if kind.stored and kind.storage_group == kind.group
    }
    skip = len(prefix)

    def resource_at(key: str) -> GroupResource | None:
        if not key.startswith(prefix):
            return None
        first, _, rest = key[skip:].partition("/")
        second, slash, _ = rest.partition("/")
        if slash and f"{first}/{second}" in known:
            return known[f"{first}/{second}"]
        if first in known:
            return known[first]
        # The groups of custom resources are domains, and no built-in place is.
        return GroupResource(first, second) if "." in first and slash else None

    return resource_at
