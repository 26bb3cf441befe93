"""
Matches requests against C{matchConstraints} of policies and C{matchResources} of bindings.

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

    @ivar names: The names of matching objects; empty for all.
    """

    rule: RuleWithOperations
    names: frozenset[str]

    @classmethod
    def make(cls, rule: JSONObject) -> NamedRuleWithOperations:
        """Compile a rule."""
        return cls(RuleWithOperations.make(rule), frozenset(rule.get("resourceNames") or ()))

    def matches(self, attributes: AdmissionAttributes, equivalent: EquivalentResource) -> bool:
        """Return whether a request matches under one of its equivalent resources."""
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
        Return the resource and kind in which a request matches; L{None} if it does not match.

        @param equivalents: All resources under which the object can be requested, the requested resource first.
        @raise APIStatusError: The namespace does not exist (404), or a selector is invalid (500).
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
