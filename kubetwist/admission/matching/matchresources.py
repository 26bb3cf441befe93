"""
Which requests a policy, or the binding of one, is for: C{matchConstraints}, C{matchResources}.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/matching/matching.go}.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ...api.admission import AdmissionAttributes
from ...api.resource import JSONObject
from .equivalents import EquivalentResource
from .matcher import Matcher
from .rules import RuleWithOperations


@frozen
class NamedRuleWithOperations:
    """
    A C{NamedRuleWithOperations}.

    @ivar names: Of the objects that are meant; empty for all.
    """

    rule: RuleWithOperations
    names: frozenset[str]

    @classmethod
    def make(cls, rule: JSONObject) -> NamedRuleWithOperations:
        """The rule that an object's field is."""
        return cls(RuleWithOperations.make(rule), frozenset(rule.get("resourceNames") or ()))

    def matches(self, attributes: AdmissionAttributes, equivalent: EquivalentResource) -> bool:
        """Whether a request is meant, asked for by one of its names."""
        if self.names and attributes.name not in self.names:
            return False
        return self.rule.matches(
            attributes.operation, equivalent.resource, attributes.subresource, bool(attributes.namespace)
        )


class MatchResources:
    """The compiled form of C{MatchResources}."""

    def __init__(self, constraints: JSONObject) -> None:
        self._rules = tuple(map(NamedRuleWithOperations.make, constraints.get("resourceRules") or ()))
        self._excluded = tuple(map(NamedRuleWithOperations.make, constraints.get("excludeResourceRules") or ()))
        self._equivalent = constraints.get("matchPolicy") != "Exact"
        self._matcher = Matcher.make(constraints)

    def match(
        self, attributes: AdmissionAttributes, equivalents: Sequence[EquivalentResource]
    ) -> EquivalentResource | None:
        """
        The form in which a request is to be seen; L{None} when it is not meant.

        @param equivalents: All that it could have, the one that it has first.
        @raise APIStatusError: The namespace is not there (404), or a selector makes no sense (500).
        """
        if self._match_rules(self._excluded, attributes, equivalents) is not None:
            return None
        equivalent = self._match_rules(self._rules, attributes, equivalents) if self._rules else equivalents[0]
        return equivalent if equivalent is not None and self._matcher.match_selectors(attributes) else None

    def _match_rules(
        self,
        rules: Sequence[NamedRuleWithOperations],
        attributes: AdmissionAttributes,
        equivalents: Sequence[EquivalentResource],
    ) -> EquivalentResource | None:
        if not rules:
            return None
        if any(rule.matches(attributes, equivalents[0]) for rule in rules):
            return equivalents[0]
        if self._equivalent:
            for rule in rules:
                for equivalent in equivalents[1:]:
                    if rule.matches(attributes, equivalent):
                        return equivalent
        return None
