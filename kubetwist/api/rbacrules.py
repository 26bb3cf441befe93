"""
RBAC rules: matching of requests, coverage of rules by rules, and formatting.

A rule is a C{PolicyRule} of C{rbac.authorization.k8s.io/v1} as a plain dict; nothing here changes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from .authorization import AuthorizerAttributes
from .go.quote import quoted
from .jsontypes import JSONObject, JSONValue

Rule = Mapping[str, JSONValue]

#: All permissions: required for a role that aggregates the rules of other roles.
FULL_AUTHORITY: Final[Sequence[Rule]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)

#: The format in which the reference prints a rule: its Go field names, in this order.
_PRINTED: Final = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def allows(rule: Rule, attributes: AuthorizerAttributes) -> bool:
    """Return whether a rule grants the requested action."""
    verbs = rule.get("verbs") or ()
    if attributes.verb not in verbs and "*" not in verbs:
        return False
    if not attributes.is_resource_request:
        return any(path_matches(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if attributes.group not in groups and "*" not in groups:
        return False
    resources = rule.get("resources") or ()
    subresource = attributes.subresource
    resource = f"{attributes.resource}/{subresource}" if subresource else attributes.resource
    if resource not in resources and "*" not in resources and (not subresource or f"*/{subresource}" not in resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or attributes.name in names


def unmatched_attributes(rule: Rule, attributes: AuthorizerAttributes) -> list[str]:
    """
    Return the attributes that a rule does not match: none, or some of C{verb}, C{apiGroup}, C{resource},
    C{subresource}, C{resourceName} and C{path}.
    """
    unmatched = []
    verbs = rule.get("verbs") or ()
    if attributes.verb not in verbs and "*" not in verbs:
        unmatched.append("verb")
    if not attributes.is_resource_request:
        if not any(path_matches(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ()):
            unmatched.append("path")
        return unmatched
    groups = rule.get("apiGroups") or ()
    if attributes.group not in groups and "*" not in groups:
        unmatched.append("apiGroup")
    resources = rule.get("resources") or ()
    subresource = attributes.subresource
    resource = f"{attributes.resource}/{subresource}" if subresource else attributes.resource
    if resource not in resources and "*" not in resources and (not subresource or f"*/{subresource}" not in resources):
        related = any(one.partition("/")[0] == attributes.resource for one in resources)
        unmatched.append("subresource" if related else "resource")
    names = rule.get("resourceNames") or ()
    if names and attributes.name not in names:
        unmatched.append("resourceName")
    return unmatched


def path_matches(pattern: str, path: str) -> bool:
    """Return whether C{nonResourceURLs} match a path: the same path, or a prefix that ends in a star."""
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))


class RoleRules:
    """
    The rules of one role, indexed for fast lookup: most roles have no rule for the requested resource.

    @ivar rules: The rules of the object.
    """

    __slots__ = ("_by_resource", "_paths", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self._paths = [rule for rule in rules if rule.get("nonResourceURLs")]
        self._by_resource: dict[str, list[Rule]] = {}
        for rule in rules:
            for resource in set(rule.get("resources") or ()):
                self._by_resource.setdefault(resource, []).append(rule)

    def allow(self, attributes: AuthorizerAttributes) -> bool:
        """Return whether one of the rules L{allows} the requested action."""
        if not attributes.is_resource_request:
            return any(allows(rule, attributes) for rule in self._paths)
        known = self._by_resource
        subresource = attributes.subresource
        if subresource:
            names: tuple[str, ...] = (f"{attributes.resource}/{subresource}", "*", f"*/{subresource}")
        else:
            names = (attributes.resource, "*")
        for name in names:
            for rule in known.get(name, ()):
                if allows(rule, attributes):
                    return True
        return False


def uncovered_rules(held: Sequence[Rule], required: Iterable[Rule]) -> list[Rule]:
    """
    Return the rules in C{required} that C{held} does not cover, broken down into their smallest parts.

    A part is covered only if a single rule covers it: a verb on a resource, or on a path (Go: C{validation.Covers}).
    """
    return [part for rule in required for part in _breakdown_rule(rule) if not any(_covers(one, part) for one in held)]


def _breakdown_rule(rule: Rule) -> Iterator[Rule]:
    """Yield a rule as rules with one verb for one resource or path each (Go: C{BreakdownRule})."""
    verbs = rule.get("verbs") or ()
    names = [[name] for name in rule.get("resourceNames") or ()]
    for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
        part = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
        if names:
            yield from ({**part, "resourceNames": name} for name in names)
        else:
            yield part
    for path, verb in product(rule.get("nonResourceURLs") or (), verbs):
        yield {"verbs": [verb], "nonResourceURLs": [path]}


def _covers(rule: Rule, part: Rule) -> bool:
    """Return whether a rule covers a rule that L{_breakdown_rule} returned."""
    verbs = rule.get("verbs") or ()
    if part["verbs"][0] not in verbs and "*" not in verbs:
        return False
    path = part.get("nonResourceURLs")
    if path:
        return any(
            owned == path[0] or (owned.endswith("*") and path[0].startswith(owned.rstrip("*")))
            for owned in rule.get("nonResourceURLs") or ()
        )
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if part["apiGroups"][0] not in groups and "*" not in groups:
        return False
    resource = part["resources"][0]
    if resource not in resources and "*" not in resources:
        _, slash, subresource = resource.partition("/")
        if not slash or f"*/{subresource}" not in resources:
            return False
    names = rule.get("resourceNames")
    return not names or (bool(part.get("resourceNames")) and part["resourceNames"][0] in names)


def compact_rules(rules: Iterable[Rule]) -> list[Rule]:
    """Merge rules for one resource that differ only in their verbs (Go: C{CompactRules})."""
    compacted: list[Rule] = []
    simple: dict[tuple[str, str, tuple[str, ...]], JSONObject] = {}
    for rule in rules:
        groups, resources = list(rule.get("apiGroups") or ()), list(rule.get("resources") or ())
        names = tuple(rule.get("resourceNames") or ())
        if rule.get("nonResourceURLs") or len(groups) != 1 or len(resources) != 1 or len(names) > 1:
            compacted.append(rule)
            continue
        same = simple.setdefault((groups[0], resources[0], names), {**rule, "verbs": []})
        same["verbs"] += rule.get("verbs") or ()
    return [*compacted, *simple.values()]


def compact_string(rule: Rule) -> str:
    """Format a rule (Go: C{CompactString}): C{{APIGroups:[""], Resources:["pods"], Verbs:["get"]}}."""
    parts = [f"{shown}:{quoted_list(rule[name])}" for shown, name in _PRINTED if rule.get(name)]
    return "{" + ", ".join(parts) + "}"


def quoted_list(texts: Iterable[str]) -> str:
    """Format texts as Go's C{%q} prints a slice of them."""
    return "[" + " ".join(quoted(text) for text in texts) + "]"


def escalation_message(user: str, groups: Iterable[str], missing: Iterable[Rule]) -> str:
    """
    Return the message for granting rules the user does not have.

    @param user: The name of the user.
    @param groups: The groups of the user.
    @param missing: The result of L{uncovered_rules}.
    """
    lines = sorted({compact_string(rule) for rule in compact_rules(missing)})
    return (
        f"user {quoted(user)} (groups={quoted_list(groups)}) is attempting to grant RBAC permissions"
        " not currently held:\n" + "\n".join(lines)
    )
