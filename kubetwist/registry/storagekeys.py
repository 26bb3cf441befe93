"""Mapping of storage keys to resources."""

from __future__ import annotations

from collections.abc import Callable

from ..api.resource import GroupResource
from .kindtable import KINDS


def resource_of_key(prefix: str) -> Callable[[str], GroupResource | None]:
    """
    Return a function that maps a storage key to the resource of the object.

    The function recognizes the built-in resources of all releases, and custom resources by the format of their keys. It
    returns L{None} for other keys. If two resources share a prefix, it returns the resource in the group in which
    objects are stored.

    @param prefix: The prefix of all keys in the storage, with its last slash: C{"/registry/"}.
    """
    built_in = {
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
        if slash and f"{first}/{second}" in built_in:
            return built_in[f"{first}/{second}"]
        if first in built_in:
            return built_in[first]
        # The groups of custom resources are domain names, which no built-in prefix is.
        return GroupResource(first, second) if "." in first and slash else None

    return resource_at
