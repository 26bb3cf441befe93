"""
Which requests a policy, or the binding of one, is for: C{matchConstraints}, C{matchResources}.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/matching/matching.go}.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ...api.admission import AdmissionAttributes
from ...api.resource import JSONObject
from .equivalents import Form
from .matcher import Selection
from .rules import Rule


@frozen
class NamedRule:
    """
    A C{NamedRuleWithOperations}.

    @ivar names: Of the objects that are meant; empty for all.
    """

    rule: Rule
    names: frozenset[str]

    @classmethod
    def make(cls, rule: JSONObject) -> NamedRule:
        """The rule that an object's field is."""
        return cls(Rule.make(rule), frozenset(rule.get("resourceNames") or ()))

    def means(self, attributes: AdmissionAttributes, form: Form) -> bool:
        """Whether a request is meant, asked for by one of its names."""
        if self.names and attributes.name not in self.names:
            return False
        return self.rule.matches(
            attributes.operation, form.resource, attributes.subresource, bool(attributes.namespace)
        )


class Matching:
    """The compiled form of C{MatchResources}."""

    def __init__(self, constraints: JSONObject) -> None:
        self._rules = tuple(map(NamedRule.make, constraints.get("resourceRules") or ()))
        self._excluded = tuple(map(NamedRule.make, constraints.get("excludeResourceRules") or ()))
        self._equivalent = constraints.get("matchPolicy") != "Exact"
        self._selection = Selection.make(constraints)

    def form(self, attributes: AdmissionAttributes, forms: Sequence[Form]) -> Form | None:
        """
        The form in which a request is to be seen; L{None} when it is not meant.

        @param forms: All that it could have, the one that it has first.
        @raise APIStatusError: The namespace is not there (404), or a selector makes no sense (500).
        """
        if self._found(self._excluded, attributes, forms) is not None:
            return None
        form = self._found(self._rules, attributes, forms) if self._rules else forms[0]
        return form if form is not None and self._selection.selects(attributes) else None

    def _found(self, rules: Sequence[NamedRule], attributes: AdmissionAttributes, forms: Sequence[Form]) -> Form | None:
        if not rules:
            return None
        if any(rule.means(attributes, forms[0]) for rule in rules):
            return forms[0]
        if self._equivalent:
            for rule in rules:
                for form in forms[1:]:
                    if rule.means(attributes, form):
                        return form
        return None
