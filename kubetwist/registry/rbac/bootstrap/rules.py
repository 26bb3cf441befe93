"""The short hand in which the built-in roles are written down."""

from __future__ import annotations

from typing import Final

from ....api.rbacrules import Rule

#: Words that stand for several verbs.
_SEVERAL: Final = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Rule:
    """
    A rule about resources; all are lists of words.

    @param verbs: C{read} and C{write} stand for several.
    @param groups: C{core} is the group that has no name.
    @param resources: With their subresources.
    @param names: Of objects; none for all.
    """
    made: dict[str, list[str]] = {
        "verbs": sorted({verb for word in verbs.split() for verb in _SEVERAL.get(word, (word,))}),
        "apiGroups": sorted("" if group == "core" else group for group in groups.split()),
        "resources": sorted(resources.split()),
    }
    if names:
        made["resourceNames"] = sorted(names.split())
    return made


def paths(urls: str, verbs: str = "get") -> Rule:
    """A rule about paths that are no resources; both are lists of words."""
    return {"verbs": sorted(verbs.split()), "nonResourceURLs": sorted(urls.split())}


#: Rule to create and update events.
EVENTS: Final = rule("create update patch", "core events.k8s.io", "events")
