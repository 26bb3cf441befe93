"""
Constructors of RBAC rules for the tables of built-in roles.

The tables hold the rules of all releases. A rule, and each word of its lists, may have a condition; see
L{FeatureGates.meets}. The condition of a word follows it in brackets: C{endpoints[<1.34]}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from ....api.featuregates import FeatureGates
from ....api.rbacrules import Rule

#: Abbreviations of several verbs.
_VERB_SETS: Final = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}


def _words(text: str, features: FeatureGates) -> Iterator[str]:
    """Return the words of a list whose conditions hold."""
    for word in text.split():
        name, bracket, condition = word.partition("[")
        if not bracket or features.meets(condition.removesuffix("]")):
            yield name


@frozen
class RuleTemplate:
    """
    A rule of a built-in role, in all releases; the lists are separated by spaces.

    @ivar verbs: The verbs; C{read} and C{write} are abbreviations of several.
    @ivar groups: The groups; C{core} for the core group.
    @ivar resources: The resources and subresources.
    @ivar names: The names of objects; C{""} for all.
    @ivar urls: The non-resource URLs, for a rule without groups, resources and names.
    @ivar when: The condition of the rule.
    """

    verbs: str
    groups: str = ""
    resources: str = ""
    names: str = ""
    urls: str = ""
    when: str = ""

    def rule(self, features: FeatureGates) -> Rule:
        """Return the rule of a server with C{features}, in a new dict; its lists are sorted."""
        words = _words(self.verbs, features)
        policy_rule: dict[str, list[str]] = {
            "verbs": sorted({verb for word in words for verb in _VERB_SETS.get(word, (word,))})
        }
        if self.urls:
            policy_rule["nonResourceURLs"] = sorted(_words(self.urls, features))
            return policy_rule
        groups = _words(self.groups, features)
        policy_rule["apiGroups"] = sorted("" if group == "core" else group for group in groups)
        policy_rule["resources"] = sorted(_words(self.resources, features))
        if self.names:
            policy_rule["resourceNames"] = sorted(self.names.split())
        return policy_rule


def rule(verbs: str, groups: str, resources: str, names: str = "", when: str = "") -> RuleTemplate:
    """Return a rule for resources; see L{RuleTemplate}."""
    return RuleTemplate(verbs, groups, resources, names, when=when)


def paths(urls: str, verbs: str = "get", when: str = "") -> RuleTemplate:
    """Return a rule for non-resource URLs; see L{RuleTemplate}."""
    return RuleTemplate(verbs, urls=urls, when=when)


def events(when: str = "") -> RuleTemplate:
    """Return the rule to create and update events."""
    return rule("create update patch", "core events.k8s.io", "events", when=when)


def rules_of(templates: Sequence[RuleTemplate], features: FeatureGates) -> list[Rule]:
    """Return the rules that a server with C{features} has, in new dicts."""
    return [template.rule(features) for template in templates if features.meets(template.when)]


#: Rule to create and update events, in all releases.
EVENTS: Final = events()
