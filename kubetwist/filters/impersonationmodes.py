"""
The modes of impersonation and the permissions that each requires.

The four constrained modes also require permission for the action itself, with a verb such as
C{impersonate-on:user-info:list}. The fifth, legacy mode allows every action. Modes are tried in order; the one that
succeeded last for a user is tried first.

@see: kubernetes, C{apiserver/pkg/endpoints/filters/impersonation}: C{mode.go} and C{constrained_impersonation.go}.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final, TypeAlias

from attrs import evolve, frozen

from twisted.internet.defer import Deferred

from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.errors import FieldError, aggregate, invalid, required
from ..api.go.quote import quoted
from ..api.names import validate_domain_prefixed_path
from ..api.resource import UserInfo
from ..api.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODES,
    UNAUTHENTICATED,
    service_account_groups,
    split_node,
    split_service_account,
)
from ..interfaces import IAuthorizer
from ..metrics.impersonation import ImpersonationMetrics

_AUTHENTICATION: Final = "authentication.k8s.io"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"
_NODE_KEYS: Final = "authentication.kubernetes.io/associated-node-keys"
_ASSOCIATED_NODE: Final = "associated-node"
_ARBITRARY_NODE: Final = "arbitrary-node"
_SERVICE_ACCOUNT: Final = "serviceaccount"
_USER_INFO: Final = "user-info"
_LEGACY: Final = ""
#: Minimum number of groups or values for a wildcard check before the single checks.
_MIN_WILDCARD_COUNT: Final = 4
#: Number of users whose last successful mode is cached.
_MAX_CACHED: Final = 10_000


class ImpersonationDenied(Exception):
    """
    The client may not impersonate the user.

    @ivar attributes: The attributes that were authorized.
    @ivar verdict: The decision, or the reason for which these attributes are never allowed.
    """

    def __init__(self, attributes: AuthorizerAttributes, verdict: Verdict) -> None:
        super().__init__(attributes, verdict)
        self.attributes = attributes
        self.verdict = verdict


@frozen
class Impersonated:
    """
    The impersonated user of a request.

    @ivar mode: The mode that allows it, C{"user-info"}; C{""} in legacy mode.
    """

    user: UserInfo
    mode: str = ""

    @property
    def constraint(self) -> str:
        """Return the verb that allows it, C{"impersonate:user-info"}; C{""} in legacy mode."""
        return f"impersonate:{self.mode}" if self.mode else ""


class ImpersonationModesTracker:
    """Cache of the last successful impersonation mode of each user, which is tried first."""

    def __init__(self, authorizer: IAuthorizer, constrained: bool, metrics: ImpersonationMetrics | None = None) -> None:
        """
        @param constrained: Whether the constrained modes are enabled.
        @param metrics: Counts the checks; L{None} without metrics.
        """
        self._authorizer = authorizer
        self._metrics = metrics
        self._constrained = constrained
        self._last: OrderedDict[str, str] = OrderedDict()

    async def get_impersonated_user(self, attributes: AuthorizerAttributes, target: UserInfo) -> Impersonated:
        """
        Return the impersonated user in the first mode that allows it.

        @param attributes: The attributes of the request, with the authenticated user.
        @param target: The user to impersonate.
        @raise ImpersonationDenied: No mode allows it; it has the failed check of the first mode.
        """
        first: ImpersonationDenied | None = None
        requester = attributes.user.name
        for mode in self._in_order(requester, attributes.user, target):
            try:
                if mode:
                    await self._check(impersonate_on_attributes(attributes, mode), mode)
                for question in impersonation_checks(attributes.user, target, mode):
                    await self._check(question, mode)
            except ImpersonationDenied as denied:
                first = first or denied
                continue
            self._remember(requester, mode)
            return Impersonated(with_implied_groups(target, mode), mode)
        assert first is not None, "the legacy mode applies to all users"
        raise first

    def _in_order(self, requester: str, user: UserInfo, target: UserInfo) -> Iterator[str]:
        if not self._constrained:
            yield _LEGACY
            return
        applicable = [*constrained_modes(user, target), _LEGACY]
        last = self._last.get(requester)
        if last is not None and last in applicable:
            applicable.remove(last)
            yield last
        yield from applicable

    def _remember(self, requester: str, mode: str) -> None:
        if not self._constrained:
            return
        self._last[requester] = mode
        self._last.move_to_end(requester)
        if len(self._last) > _MAX_CACHED:
            self._last.popitem(last=False)

    async def _check(self, question: Question, mode: str) -> None:
        if isinstance(question, _WildcardCheck):
            try:
                await self._check(question.all, mode)
            except ImpersonationDenied:
                for each in question.each:
                    await self._check(each, mode)
            return
        if isinstance(question, ImpersonationDenied):
            raise question
        began = perf_counter()
        answer = self._authorizer.authorize(question)
        verdict = await answer if isinstance(answer, Deferred) else answer
        if self._metrics is not None:
            self._metrics.authorized(mode, verdict.decision is Decision.ALLOW, perf_counter() - began)
        if verdict.decision is not Decision.ALLOW:
            raise ImpersonationDenied(question, verdict)


@frozen
class _WildcardCheck:
    """A check of a wildcard, and the single checks that it replaces."""

    all: AuthorizerAttributes
    each: Sequence[AuthorizerAttributes]


#: One required permission; an L{ImpersonationDenied} can never be granted.
Question: TypeAlias = AuthorizerAttributes | _WildcardCheck | ImpersonationDenied


def constrained_modes(requester: UserInfo, target: UserInfo) -> Iterator[str]:
    """Return the constrained modes that apply to C{requester} and C{target}."""
    node, account = split_node(target.name), split_service_account(target.name)
    if node is None and account is None:
        yield _USER_INFO
    elif not (target.uid or target.groups or target.extra):
        # UID, groups and extra of nodes and service accounts cannot be chosen.
        if node is None:
            yield _SERVICE_ACCOUNT
            return
        if split_service_account(requester.name) is not None and requester.extra.get(_NODE_NAME) == (node,):
            yield _ASSOCIATED_NODE
        yield _ARBITRARY_NODE


def impersonate_on_attributes(attributes: AuthorizerAttributes, mode: str) -> AuthorizerAttributes:
    """Return the attributes that authorize the action itself in a constrained mode."""
    changed = evolve(attributes, verb=f"impersonate-on:{mode}:{attributes.verb}")
    return evolve(changed, user=_without_node_extra(attributes.user)) if mode == _ASSOCIATED_NODE else changed


def impersonation_checks(requester: UserInfo, target: UserInfo, mode: str = _LEGACY) -> Iterator[Question]:
    """
    Return the permissions that C{requester} needs to impersonate C{target} in a mode.

    @return: L{AuthorizerAttributes}, wildcard checks, and L{ImpersonationDenied} for impersonations that are never
        allowed.
    """
    verb = f"impersonate:{mode}" if mode else "impersonate"
    if mode == _ASSOCIATED_NODE:
        requester = _without_node_extra(requester)
    group = _AUTHENTICATION if mode else ""

    def attributes_for(
        resource: str, name: str, group: str = _AUTHENTICATION, namespace: str = "", subresource: str = ""
    ) -> AuthorizerAttributes:
        return AuthorizerAttributes(requester, verb, group, "v1", resource, subresource, namespace, name)

    node, account = split_node(target.name) if mode else None, split_service_account(target.name)
    if account is not None:
        yield attributes_for("serviceaccounts", account[1], group, namespace=account[0])
    elif node is not None:
        # The mode applies only to the node of the service account, so that the name need not be checked.
        yield attributes_for("nodes", "*" if mode == _ASSOCIATED_NODE else node, group)
    else:
        yield attributes_for("users", target.name, group)
    if target.uid:
        yield attributes_for("uids", target.uid)
    if mode and "" in target.groups:
        yield _always_denied(attributes_for("groups", "", group), "impersonating the empty string group is not allowed")
    if mode and MASTERS in target.groups:
        yield _always_denied(
            attributes_for("groups", MASTERS, group), "impersonating the system:masters group is not allowed"
        )
    groups = [attributes_for("groups", name, group) for name in target.groups]
    if mode and len(groups) >= _MIN_WILDCARD_COUNT:
        yield _WildcardCheck(attributes_for("groups", "*", group), groups)
    else:
        yield from groups
    problem = _extra_problem(target.extra) if mode else ""
    if problem:
        yield _always_denied(attributes_for("userextras", ""), problem)
    extras = [
        attributes_for("userextras", value, subresource=key) for key, values in target.extra.items() for value in values
    ]
    if mode and (len(extras) >= _MIN_WILDCARD_COUNT or len(target.extra) >= _MIN_WILDCARD_COUNT):
        yield _WildcardCheck(attributes_for("userextras", "*", subresource="*"), extras)
    else:
        yield from extras


def with_implied_groups(target: UserInfo, mode: str = _LEGACY) -> UserInfo:
    """Return the user with its implied groups."""
    groups = target.groups
    account = split_service_account(target.name)
    if account is not None and not groups:
        groups = service_account_groups(account[0])
    elif mode in (_ASSOCIATED_NODE, _ARBITRARY_NODE):
        groups = (NODES,)
    if target.name == ANONYMOUS:
        if UNAUTHENTICATED not in groups:
            groups = (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return UserInfo(target.name, target.uid, groups, target.extra)


def _without_node_extra(requester: UserInfo) -> UserInfo:
    """Return a service account without the extra values that differ between nodes."""
    return evolve(requester, extra={_NODE_KEYS: tuple(sorted(requester.extra))})


def _always_denied(question: AuthorizerAttributes, reason: str) -> ImpersonationDenied:
    return ImpersonationDenied(question, Verdict(Decision.NO_OPINION, reason))


def _extra_problem(extra: Mapping[str, tuple[str, ...]]) -> str:
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        errors: list[FieldError] = [
            invalid("extra.key", part, text) if text else required("extra.key")
            for part, text in validate_domain_prefixed_path(key)
        ]
        if errors:
            return f"impersonating an invalid key in extra is not allowed{aggregate(errors)}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quoted(key)}"
        if not values:
            return "impersonating empty values in extra is not allowed"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""
