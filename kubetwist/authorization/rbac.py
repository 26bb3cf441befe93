"""
Role-based access control. RBAC allows or has no opinion; it never denies.

L{kubetwist.registry.rbac.ruleresolver} finds the rules of a user. Decisions are cached until a role or binding
changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import define, field

from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.flagvalues import FlagValues
from ..api.rbacrules import Rule
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..interfaces import (
    IAuthorizer,
    IGrantExplainer,
    IRuleResolver,
)
from ..registry.rbac.ruleresolver import RoleNotFound, RuleResolver

if TYPE_CHECKING:
    from ._context import AuthorizationContext

#: Maximum number of cached decisions. The cache is cleared when it is full.
CACHE_SIZE = 65536
#: Decisions about attributes that are longer, in characters, are not cached, as any client can send them.
MAX_CACHED_LENGTH: Final = 1024

_RESOURCE_RULE = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_RULE = ("verbs", "nonResourceURLs")


@implementer(IAuthorizer, IRuleResolver, IGrantExplainer)
@define(eq=False)
class RBAC:
    """Allows requests that a role of the user allows; has no opinion about other requests."""

    name: ClassVar[str] = "RBAC"
    grants: RuleResolver
    _decisions: dict[Any, Verdict] = field(factory=dict, init=False)
    _generation: int = field(default=-1, init=False)

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{IAuthorizer.authorize}."""
        generation = self.grants.sync()
        if generation != self._generation:
            self._decisions.clear()
            self._generation = generation
        user = attributes.user
        key = (
            user.name,
            user.groups,
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
            None if attributes.is_resource_request else attributes.path,
        )
        verdict = self._decisions.get(key)
        if verdict is None:
            verdict = self._decide(attributes)
            if _length(attributes) <= MAX_CACHED_LENGTH:
                if len(self._decisions) >= CACHE_SIZE:
                    self._decisions.clear()
                self._decisions[key] = verdict
        return verdict

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}."""
        rules, errors = self.grants.rules_for(user, namespace)
        status: JSONObject = {
            "resourceRules": [_select_fields(rule, _RESOURCE_RULE) for rule in rules if rule.get("resources")],
            "nonResourceRules": [_select_fields(rule, _PATH_RULE) for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }
        if errors:
            status["evaluationError"] = aggregated(errors)
        return status

    def explain(self, attributes: AuthorizerAttributes) -> JSONObject | None:
        """See L{IGrantExplainer.explain}."""
        from ._rbacexplain import explain

        return explain(self.grants, attributes)

    def near_misses(self, attributes: AuthorizerAttributes) -> Iterator[tuple[int, JSONObject] | None]:
        """See L{IGrantExplainer.near_misses}."""
        from ._rbacexplain import near_misses

        return near_misses(self.grants, attributes)

    def grants_of(self, attributes: AuthorizerAttributes) -> list[JSONObject]:
        """See L{IGrantExplainer.grants_of}."""
        from ._rbacexplain import grants_of

        return grants_of(self.grants, attributes)

    def remedy(self, attributes: AuthorizerAttributes) -> str:
        """See L{IGrantExplainer.remedy}."""
        from ._rbacremedies import create_role

        return create_role(attributes)

    def _decide(self, attributes: AuthorizerAttributes) -> Verdict:
        grants = self.grants
        errors: list[RoleNotFound] = []
        for binding in grants.roles_of(attributes.user, attributes.namespace):
            try:
                role = grants.role(binding.role, binding.namespace)
            except RoleNotFound as error:
                errors.append(error)
                continue
            if role.allow(attributes):
                return Verdict(Decision.ALLOW, f"RBAC: allowed by {binding.describe_for(attributes.user)}")
        return Verdict(Decision.NO_OPINION, f"RBAC: {aggregated(errors)}" if errors else "")


def _length(attributes: AuthorizerAttributes) -> int:
    """Return the total length of the attributes, in characters."""
    user = attributes.user
    texts = (
        attributes.verb,
        attributes.group,
        attributes.resource,
        attributes.subresource,
        attributes.namespace,
        attributes.name,
        attributes.path,
    )
    return len(user.name) + sum(map(len, texts)) + sum(map(len, user.groups))


def _select_fields(rule: Rule, names: tuple[str, ...]) -> JSONObject:
    return {name: rule[name] for name in names if rule.get(name)}


def aggregated(errors: list[RoleNotFound]) -> str:
    """Return the text of several errors, without duplicates."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def make(options: FlagValues, server: AuthorizationContext) -> RBAC:
    """Return the authorizer of the roles and bindings of a server."""
    return RBAC(server.grants)
