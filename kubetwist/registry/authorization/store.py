"""Stores of access reviews, which are evaluated at creation and not stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from zope.interface import implementer

from ...admission.decisions import decide
from ...api.authorization import AuthorizerAttributes, Decision
from ...api.errors import APIStatusError, FieldError
from ...api.options import CreateOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupKind, JSONObject, UserInfo
from ...api.selectors import (
    Requirement,
    SelectorError,
    label_selector_from_object,
    parse_field_selector,
    parse_label_selector,
)
from ...interfaces import ICreator, IRuleResolver
from ..generic.admitting import admit_virtual, check_namespace
from ..generic.capabilities import NamedResource
from ..generic.resourceinfo import ResourceInfo
from .validation import validate_access_review, validate_local_access_review, validate_self_access_review

if TYPE_CHECKING:
    from ..core.servercontext import ServerContext


@implementer(ICreator)
class AccessReview(NamedResource):
    """C{SubjectAccessReview}, C{SelfSubjectAccessReview} and C{LocalSubjectAccessReview}."""

    def __init__(self, info: ResourceInfo, context: ServerContext) -> None:
        self.info = info
        self._context = context
        self._has_selectors = context.environment.context.features.enabled("AuthorizeWithSelectors")

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """See L{ICreator.create}."""
        check_namespace(scope, obj)
        await admit_virtual(
            self.info, self._context.environment, scope, obj, options, lambda obj: self._check(scope, obj)
        )
        spec = obj["spec"]
        resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        user = scope.user if self.info.kind == "SelfSubjectAccessReview" else user_of(spec)
        problems: list[str] = []
        attributes = authorizer_attributes(user, resource, other, problems)
        verdict = await decide(self._context.authorizer, attributes)
        status: JSONObject = {"allowed": verdict.decision is Decision.ALLOW}
        if verdict.decision is Decision.DENY:
            status["denied"] = True
        if verdict.reason:
            status["reason"] = verdict.reason
        if verdict.error:
            problems.append(verdict.error)
        if problems:
            status["evaluationError"] = "; ".join(problems)
        obj["status"] = status
        return obj

    def _check(self, scope: RequestScope, obj: JSONObject) -> None:
        """
        Validate a review after mutation.

        @raise APIStatusError: It is invalid (422), or names another namespace than the request (400).
        """
        attributes = obj["spec"].get("resourceAttributes")
        if attributes is not None and not self._has_selectors:
            attributes.pop("fieldSelector", None)
            attributes.pop("labelSelector", None)
        errors = _VALIDATE[self.info.kind](obj)
        if errors:
            # The reference's message names no kind.
            raise APIStatusError.invalid(GroupKind(self.info.group, ""), "", errors)
        if not self.info.namespaced:
            return
        if not scope.namespace:
            raise APIStatusError.bad_request("namespace is required on this type: ")
        if obj["metadata"].get("namespace") != scope.namespace:
            text = f"spec.resourceAttributes.namespace must match namespace: {scope.namespace}"
            raise APIStatusError.bad_request(text)


_VALIDATE: Final[Mapping[str, Callable[[JSONObject], list[FieldError]]]] = {
    "SubjectAccessReview": validate_access_review,
    "SelfSubjectAccessReview": validate_self_access_review,
    "LocalSubjectAccessReview": validate_local_access_review,
}


def user_of(spec: JSONObject) -> UserInfo:
    """Return the user that a review is about."""
    extra = {name: tuple(values or ()) for name, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def authorizer_attributes(
    user: UserInfo, resource: JSONObject | None, other: JSONObject | None, problems: list[str]
) -> AuthorizerAttributes:
    """
    Return the attributes of a review, as authorizers take them.

    @param user: The user of the review.
    @param resource: C{resourceAttributes}.
    @param other: C{nonResourceAttributes}.
    @param problems: Receives an error for each requirement of a selector that cannot be parsed. It is left out, so the
        check covers more objects.
    """
    if resource is None:
        other = other or {}
        return AuthorizerAttributes(user, other.get("verb", ""), path=other.get("path", ""), is_resource_request=False)
    fields = _parse_requirements("fieldSelector", resource, parse_field_selector, _field_term, problems)
    labels = _parse_requirements("labelSelector", resource, _raw_labels, _label_term, problems)
    return AuthorizerAttributes(
        user,
        resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version") or "*",
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
        field_terms=tuple(fields),
        label_terms=tuple(labels),
    )


def _parse_requirements(
    what: str,
    resource: JSONObject,
    raw: Callable[[str], Iterable[Any]],
    term: Callable[[JSONObject], Any],
    problems: list[str],
) -> list[Any]:
    selector = resource.get(what)
    if not selector:
        return []
    terms: list[Any] = []
    failed = False
    if selector.get("rawSelector"):
        try:
            terms += raw(selector["rawSelector"])
        except SelectorError:
            failed = True
    for requirement in selector.get("requirements") or ():
        try:
            terms.append(term(requirement))
        except SelectorError:
            failed = True
    if failed:
        how = "partially ignored" if terms else "ignored"
        problems.append(f"spec.resourceAttributes.{what} {how} due to parse error")
    return terms


def _field_term(requirement: JSONObject) -> tuple[str, str, bool]:
    """Return a requirement as a term of a field selector, which has one value and two operators only."""
    operator = requirement.get("operator")
    values: Sequence[str] = requirement.get("values") or ()
    if operator not in ("In", "NotIn") or len(values) != 1:
        raise SelectorError(f"a field selector has no {operator} of {len(values)} values")
    return requirement.get("key", ""), values[0], operator == "In"


def _raw_labels(text: str) -> Iterable[Requirement]:
    return parse_label_selector(text).requirements


def _label_term(requirement: JSONObject) -> Requirement:
    return label_selector_from_object({"matchExpressions": [requirement]}).requirements[0]


def _check_rules_namespace(obj: JSONObject) -> None:
    if not (obj.get("spec") or {}).get("namespace"):
        raise APIStatusError.bad_request("no namespace on request")


@implementer(ICreator)
class RulesReview(NamedResource):
    """C{SelfSubjectRulesReview}: lists the rules of the user; only rule-based authorizers support it."""

    def __init__(self, info: ResourceInfo, context: ServerContext) -> None:
        self.info = info
        self._context = context

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """See L{ICreator.create}."""
        await admit_virtual(self.info, self._context.environment, scope, obj, options, _check_rules_namespace)
        namespace = obj["spec"]["namespace"]
        authorizer = self._context.authorizer
        status: JSONObject = {"resourceRules": [], "nonResourceRules": [], "incomplete": True}
        if IRuleResolver.providedBy(authorizer):
            status = authorizer.rules_for(scope.user, namespace)
        # The reference returns a new object.
        return {"metadata": {}, "spec": {}, "status": status}
