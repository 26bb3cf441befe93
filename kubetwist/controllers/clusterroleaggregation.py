"""
Aggregates the rules of cluster roles into other cluster roles (C{aggregationRule}).

@see: kubernetes, C{pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from ..api.rbacrules import Rule
from ..api.record import Record
from ..api.resource import JSONObject
from ..api.selectors import label_selector_from_object
from ..registry.rbac.ruleresolver import GROUP
from ..registry.stores import decoded_object
from .machinery.controller import Controller

_MARK: Final = b'"aggregationRule":{'


def has_aggregation_rule(record: Record) -> Iterable[bool]:
    """Return whether a role has an aggregation rule. An index function."""
    return (True,) if _MARK in record.item and decoded_object(record).get("aggregationRule") else ()


def aggregated_rules(role: JSONObject, roles: Iterable[Record]) -> list[Rule]:
    """
    Return the rules that an aggregated role must have, without duplicates, in the order of its selectors and of names.

    @param role: The role with the C{aggregationRule}.
    @param roles: All cluster roles, sorted by name.
    @raise SelectorError: A selector is invalid.
    """
    rules: list[Rule] = []
    name = role["metadata"]["name"]
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        matches = label_selector_from_object(selector).matches
        for other in roles:
            if other.name != name and matches(other.labels):
                rules += [rule for rule in decoded_object(other).get("rules") or () if rule not in rules]
    return rules


class ClusterRoleAggregation(Controller[str]):
    """Updates the rules of aggregated cluster roles. Keys are the names of aggregated roles."""

    name: ClassVar[str] = "clusterrole-aggregation-controller"
    field_manager: ClassVar[str] = "clusterrole-aggregation-controller"

    def register_handlers(self) -> None:
        """Register a handler for all cluster roles, since each may be aggregated."""
        roles = self._roles = self.context.informer(GROUP, "clusterroles")
        self._aggregated = roles.index("gathering", has_aggregation_rule)
        self.watch(GROUP, "clusterroles", self._changed)

    def _changed(self, event_type: str, record: Record, old: Record | None) -> None:
        for role in self._aggregated.get(True):
            self.queue.add(role.name)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        role = self._roles.get_decoded("", key)
        if role is None or not role.get("aggregationRule"):
            return
        rules = aggregated_rules(role, self._roles.list())
        if rules != (role.get("rules") or []):
            await self.client.apply(GROUP, "clusterroles", {"metadata": {"name": key}, "rules": rules})
