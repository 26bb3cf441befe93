"""The authorizers C{AlwaysAllow} and C{AlwaysDeny}."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.flagvalues import FlagValues
from ..api.rbacrules import FULL_AUTHORITY
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..interfaces import (
    IAuthorizer,
    IRuleResolver,
)

if TYPE_CHECKING:
    from ._context import AuthorizationContext


@implementer(IAuthorizer, IRuleResolver)
class Always:
    """Returns the same verdict for every request."""

    def __init__(self, name: str, verdict: Verdict) -> None:
        self.name = name
        self._verdict = verdict

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """@see: L{IRuleResolver.rules_for}."""
        everything, every_path = FULL_AUTHORITY
        allowed = self._verdict.decision is Decision.ALLOW
        return {
            "resourceRules": [dict(everything)] if allowed else [],
            "nonResourceRules": [dict(every_path)] if allowed else [],
            "incomplete": False,
        }

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """@see: L{IAuthorizer.authorize}."""
        return self._verdict


def make_allow(options: FlagValues, server: AuthorizationContext) -> Always:
    """Return the authorizer C{AlwaysAllow}."""
    return Always("AlwaysAllow", Verdict(Decision.ALLOW))


def make_deny(options: FlagValues, server: AuthorizationContext) -> Always:
    """Return the authorizer C{AlwaysDeny}. It returns NoOpinion, as in the reference."""
    return Always("AlwaysDeny", Verdict(Decision.NO_OPINION, "Everything is forbidden."))
