"""Constructors of RBAC rules for the tables of built-in roles."""

from __future__ import annotations

from typing import Final

from ....api.rbacrules import Rule

#: Abbreviations of several verbs.
_VERB_SETS: Final = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Rule:
    """
    Return a rule for resources; the parameters are lists, separated by spaces.

    @param verbs: The verbs; C{read} and C{write} are abbreviations of several.
    @param groups: The groups; C{core} for the core group.
    @param resources: The resources and subresources.
    @param names: The names of objects; C{""} for all.
    """
    policy_rule: dict[str, list[str]] = {
        "verbs": sorted({verb for word in verbs.split() for verb in _VERB_SETS.get(word, (word,))}),
        "apiGroups": sorted("" if group == "core" else group for group in groups.split()),
        "resources": sorted(resources.split()),
    }
    if names:
        policy_rule["resourceNames"] = sorted(names.split())
    return policy_rule


def paths(urls: str, verbs: str = "get") -> Rule:
    """Return a rule for non-resource URLs; the parameters are lists, separated by spaces."""
    return {"verbs": sorted(verbs.split()), "nonResourceURLs": sorted(urls.split())}


#: Rule to create and update events.
EVENTS: Final = rule("create update patch", "core events.k8s.io", "events")
