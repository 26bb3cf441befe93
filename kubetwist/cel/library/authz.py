"""
Authorization checks: C{authorizer.group("apps").resource("deployments").check("create").allowed()}.

See kubernetes/apiserver, C{pkg/cel/library/authz.go}.

Authorizers may need I/O, but an evaluation cannot wait. A pending decision ends the evaluation with
L{DecisionPending}, which no operator absorbs. L{evaluate} awaits the decision, stores it in the L{Authorizer}, and
evaluates again. Only the last evaluation counts for the cost limit. The cost of a check limits an expression to two
checks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from attrs import evolve, frozen

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.names import validate_dns1123_label, validate_dns1123_subdomain
from kubetwist.api.resource import UserInfo
from kubetwist.api.selectors import SelectorError, parse_field_selector, parse_label_selector
from kubetwist.api.users import service_account_groups, service_account_user
from kubetwist.cel.errors import CelError, no_such_overload
from kubetwist.cel.functions import Library, Overload, function, member
from kubetwist.cel.types import BOOL, STRING, ObjectType, Type
from kubetwist.cel.values import OpaqueValue, Value

_PACKAGE: Final = "kubernetes.authorization"

AUTHORIZER_TYPE: Final = ObjectType(f"{_PACKAGE}.Authorizer")
PATH_CHECK_TYPE: Final = ObjectType(f"{_PACKAGE}.PathCheck")
GROUP_CHECK_TYPE: Final = ObjectType(f"{_PACKAGE}.GroupCheck")
RESOURCE_CHECK_TYPE: Final = ObjectType(f"{_PACKAGE}.ResourceCheck")
DECISION_TYPE: Final = ObjectType(f"{_PACKAGE}.Decision")

#: Type of L{kubetwist.interfaces.IAuthorizer.authorize}.
Authorize = Callable[[AuthorizerAttributes], "Verdict | Awaitable[Verdict]"]


class _Incomparable(OpaqueValue):
    """Base of values that cannot be compared."""

    __slots__ = ()

    def equals(self, other: Value) -> bool:
        """Raise an error: these values cannot be compared."""
        raise no_such_overload()


class DecisionValue(_Incomparable):
    """
    The result of an authorization check.

    @ivar error: The error of the check, which may exist beside a decision; L{None} without error.
    """

    __slots__ = ("error", "verdict")
    cel_type = DECISION_TYPE

    def __init__(self, verdict: Verdict, error: str | None = None) -> None:
        self.verdict = verdict
        self.error = error or verdict.error or None


def _failed(error: Exception) -> DecisionValue:
    return DecisionValue(Verdict(Decision.NO_OPINION), str(error))


class DecisionPending(Exception):
    """An evaluation needs a pending decision; the caller awaits L{resolve} and evaluates again."""

    def __init__(self, authorizer: Authorizer, attributes: _CheckAttributes, pending: Awaitable[Verdict]) -> None:
        super().__init__("a decision of the authorizer is pending")
        self._authorizer = authorizer
        self._question = attributes
        self._pending = pending

    async def resolve(self) -> None:
        """Await the decision and store it in the L{Authorizer}."""
        try:
            decision = DecisionValue(await self._pending)
        except Exception as error:
            # Twisted's class is not imported here; a cancelled check has no result.
            if type(error).__name__ == "CancelledError":
                raise
            decision = _failed(error)
        self._authorizer.decisions[self._question] = decision


class Authorizer(_Incomparable):
    """
    The variable C{authorizer}.

    @ivar account: Namespace and name of the checked service account; L{None} for the user of the request.
    @ivar decisions: The decisions so far for all accounts; one dictionary per admission request.
    """

    __slots__ = ("_authorize", "account", "decisions", "user")
    cel_type = AUTHORIZER_TYPE

    def __init__(
        self,
        user: UserInfo,
        authorize: Authorize,
        account: tuple[str, str] | None = None,
        decisions: dict[_CheckAttributes, DecisionValue] | None = None,
    ) -> None:
        self.user = user
        self.account = account
        self.decisions: dict[_CheckAttributes, DecisionValue] = {} if decisions is None else decisions
        self._authorize = authorize

    def for_account(self, namespace: str, name: str) -> Authorizer:
        """Return the authorizer for a service account."""
        user = UserInfo(service_account_user(namespace, name), groups=service_account_groups(namespace))
        return Authorizer(user, self._authorize, (namespace, name), self.decisions)

    def request_resource(
        self, group: str, resource: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> ResourceCheck:
        """
        Return the variable C{authorizer.requestResource}.

        @param group: The API group of the request.
        @param resource: The resource of the request.
        @param subresource: The subresource; empty without one.
        @param namespace: The namespace; empty for cluster-scoped resources.
        @param name: The name; empty for requests without one.
        """
        attributes = _CheckAttributes(self.account, group=group, resource=resource, subresource=subresource)
        return ResourceCheck(self, evolve(attributes, namespace=namespace, name=name))

    def decide(self, attributes: _CheckAttributes) -> DecisionValue:
        """
        Return a decision, which is cached.

        @raise DecisionPending: The authorizer has not decided yet.
        """
        decision = self.decisions.get(attributes)
        if decision is None:
            try:
                verdict = self._authorize(attributes.authorizer_attributes(self.user))
            except Exception as error:
                decision = _failed(error)
            else:
                if not isinstance(verdict, Verdict):
                    raise DecisionPending(self, attributes, verdict)
                decision = DecisionValue(verdict)
            self.decisions[attributes] = decision
        return decision


@frozen
class _CheckAttributes:
    """The attributes of an authorization check."""

    account: tuple[str, str] | None
    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""

    def authorizer_attributes(self, user: UserInfo) -> AuthorizerAttributes:
        if self.path:
            return AuthorizerAttributes(user, self.verb, path=self.path, is_resource_request=False)
        # Invalid selectors are ignored.
        try:
            field_terms = parse_field_selector(self.field_selector)
        except SelectorError:
            field_terms = ()
        try:
            label_terms = parse_label_selector(self.label_selector).requirements
        except SelectorError:
            label_terms = ()
        return AuthorizerAttributes(
            user,
            self.verb,
            group=self.group,
            version="*",
            resource=self.resource,
            subresource=self.subresource,
            namespace=self.namespace,
            name=self.name,
            field_terms=field_terms,
            label_terms=label_terms,
        )


class _Check(_Incomparable):
    """A partially built check."""

    __slots__ = ("attributes", "authorizer")

    def __init__(self, authorizer: Authorizer, attributes: _CheckAttributes) -> None:
        self.authorizer = authorizer
        self.attributes = attributes


class PathCheck(_Check):
    """A check of a non-resource path."""

    __slots__ = ()
    cel_type = PATH_CHECK_TYPE


class GroupCheck(_Check):
    """A check in an API group."""

    __slots__ = ()
    cel_type = GROUP_CHECK_TYPE


class ResourceCheck(_Check):
    """A check of a resource."""

    __slots__ = ()
    cel_type = RESOURCE_CHECK_TYPE


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise CelError("path must not be empty")
    return PathCheck(authorizer, _CheckAttributes(authorizer.account, path=path))


def _group(authorizer: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(authorizer, _CheckAttributes(authorizer.account, group=group))


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if validate_dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if validate_dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return authorizer.for_account(namespace, name)


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise CelError("resource must not be empty")
    return ResourceCheck(check.authorizer, evolve(check.attributes, resource=resource))


def _setter(field: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def setter(check: ResourceCheck, text: str) -> ResourceCheck:
        changes: dict[str, Any] = {field: text}
        return ResourceCheck(check.authorizer, evolve(check.attributes, **changes))

    return setter


def _check(check: _Check, verb: str) -> DecisionValue:
    return check.authorizer.decide(evolve(check.attributes, verb=verb))


def _errored(decision: DecisionValue) -> bool:
    return decision.error is not None


def _error(decision: DecisionValue) -> str:
    return decision.error or ""


def _allowed(decision: DecisionValue) -> bool:
    return decision.verdict.decision is Decision.ALLOW


def _reason(decision: DecisionValue) -> str:
    return decision.verdict.reason


def _resource_setter(id: str, field: str) -> Overload:
    return member(id, (RESOURCE_CHECK_TYPE, STRING), RESOURCE_CHECK_TYPE, _setter(field))


def _of_decision(id: str, result: Type, call: Callable[[DecisionValue], Value]) -> Overload:
    return member(id, (DECISION_TYPE,), result, call)


AUTHZ: Final = Library(
    "kubernetes.authz",
    [
        function("path", member("authorizer_path", (AUTHORIZER_TYPE, STRING), PATH_CHECK_TYPE, _path)),
        function("group", member("authorizer_group", (AUTHORIZER_TYPE, STRING), GROUP_CHECK_TYPE, _group)),
        function(
            "serviceAccount",
            member("authorizer_serviceaccount", (AUTHORIZER_TYPE, STRING, STRING), AUTHORIZER_TYPE, _service_account),
        ),
        function("resource", member("groupcheck_resource", (GROUP_CHECK_TYPE, STRING), RESOURCE_CHECK_TYPE, _resource)),
        function("subresource", _resource_setter("resourcecheck_subresource", "subresource")),
        function("namespace", _resource_setter("resourcecheck_namespace", "namespace")),
        function("name", _resource_setter("resourcecheck_name", "name")),
        function(
            "check",
            member("pathcheck_check", (PATH_CHECK_TYPE, STRING), DECISION_TYPE, _check),
            member("resourcecheck_check", (RESOURCE_CHECK_TYPE, STRING), DECISION_TYPE, _check),
        ),
        function("errored", _of_decision("decision_errored", BOOL, _errored)),
        function("error", _of_decision("decision_error", STRING, _error)),
        function("allowed", _of_decision("decision_allowed", BOOL, _allowed)),
        function("reason", _of_decision("decision_reason", STRING, _reason)),
    ],
)

AUTHZ_SELECTORS: Final = Library(
    "kubernetes.authzSelectors",
    [
        function("fieldSelector", _resource_setter("authorizer_fieldselector", "field_selector")),
        function("labelSelector", _resource_setter("authorizer_labelselector", "label_selector")),
    ],
)


class _Program(Protocol):
    def evaluate(self, variables: Mapping[str, Value], **limits: Any) -> tuple[Value, int]: ...


async def evaluate(program: _Program, variables: Mapping[str, Value], **limits: Any) -> tuple[Value, int]:
    """
    Evaluate an expression that may contain authorization checks.

    @param limits: Limits as for the C{evaluate} of the program.
    @return: The value and the cost.
    """
    while True:
        try:
            return program.evaluate(variables, **limits)
        except DecisionPending as needed:
            await needed.resolve()
