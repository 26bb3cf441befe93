"""A union of authorizers, and the authorizer of the privileged group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.internet.defer import Deferred
from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..api.users import MASTERS
from ..interfaces import (
    IAuthorizer,
    IAuthorizerUnion,
    IRuleResolver,
)

_ALLOWED = Verdict(Decision.ALLOW)
_NO_OPINION = Decision.NO_OPINION
_ALLOW = Decision.ALLOW


@implementer(IAuthorizer)
class PrivilegedGroup:
    """Allows everything to members of C{system:masters}; has no opinion about other users."""

    name = "PrivilegedGroup"
    _nothing = Verdict(Decision.NO_OPINION)

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """@see: L{IAuthorizer.authorize}."""
        return _ALLOWED if MASTERS in attributes.user.groups else self._nothing


@implementer(IAuthorizerUnion, IRuleResolver)
class AuthorizerUnion:
    """Calls authorizers in order; the first verdict other than NoOpinion decides."""

    name = "union"

    def __init__(self, authorizers: Sequence[IAuthorizer], names: Sequence[tuple[str, str]] = ()) -> None:
        """
        @param authorizers: The authorizers, in the order of their calls.
        @param names: Type and name of the authorizers whose decisions are counted: the last ones of C{authorizers}.
        """
        self._methods = [authorizer.authorize for authorizer in authorizers]
        self.authorizers = authorizers
        self.names = names
        self._allowed = [0] * len(authorizers)
        self._denied = [0] * len(authorizers)

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """@see: L{IAuthorizer.authorize}."""
        no_opinions: list[Verdict] = []
        for number, authorize in enumerate(self._methods):
            verdict = authorize(attributes)
            if type(verdict) is not Verdict and isinstance(verdict, Deferred):
                return Deferred.fromCoroutine(self._authorize_async(verdict, number, no_opinions, attributes))
            decision = verdict.decision
            if decision is not _NO_OPINION:
                (self._allowed if decision is _ALLOW else self._denied)[number] += 1
                return verdict
            if verdict.reason or verdict.error:
                no_opinions.append(verdict)
        return _no_opinion(no_opinions)

    def decisions(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        """See L{IAuthorizerUnion.decisions}."""
        first = len(self.authorizers) - len(self.names)
        for index, (kind, name) in enumerate(self.names, first):
            for decision, counts in (("allowed", self._allowed), ("denied", self._denied)):
                if counts[index]:
                    yield (kind, name, decision), counts[index]

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """@see: L{IRuleResolver.rules_for}; incomplete if an authorizer cannot list its rules."""
        union: JSONObject = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
        errors: list[str] = []
        for authorizer in self.authorizers:
            if isinstance(authorizer, PrivilegedGroup):
                continue  # The reference does not list it either.
            if not IRuleResolver.providedBy(authorizer):
                union["incomplete"] = True
                errors.append(f"{authorizer.name} does not support user rule resolution")
                continue
            status = authorizer.rules_for(user, namespace)
            for name in ("resourceRules", "nonResourceRules"):
                union[name] += status[name]
            union["incomplete"] |= status["incomplete"]
            if status.get("evaluationError"):
                errors.append(status["evaluationError"])
        if errors:
            union["evaluationError"] = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        return union

    async def _authorize_async(
        self,
        first: Verdict | Deferred[Verdict],
        number: int,
        no_opinions: list[Verdict],
        attributes: AuthorizerAttributes,
    ) -> Verdict:
        """Continue from the authorizer that returned a Deferred."""
        for index, authorize in enumerate(self._methods[number:], number):
            verdict = first if index == number else authorize(attributes)
            if isinstance(verdict, Deferred):
                verdict = await verdict
            if verdict.decision is not _NO_OPINION:
                (self._allowed if verdict.decision is _ALLOW else self._denied)[index] += 1
                return verdict
            if verdict.reason or verdict.error:
                no_opinions.append(verdict)
        return _no_opinion(no_opinions)


def _no_opinion(no_opinions: list[Verdict]) -> Verdict:
    """Return NoOpinion with the reasons and errors of all verdicts."""
    errors = list(dict.fromkeys(verdict.error for verdict in no_opinions if verdict.error))
    return Verdict(
        _NO_OPINION,
        "\n".join(verdict.reason for verdict in no_opinions if verdict.reason),
        errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else "",
    )
