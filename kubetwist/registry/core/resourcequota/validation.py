"""Validation of ResourceQuotas; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ....api.errors import MAX_FIELD_ERRORS, FieldError, invalid, required
from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject
from ...generic.validation.fields import (
    ErrorList,
    go_json,
    invalid_name,
    invalid_shown,
    quantity,
    quantity_not_negative,
)
from ..pod.validation.resources import is_integer, resource_name

_SCOPES: Final = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)


def _amounts(found: JSONObject | None, path: str, errors: ErrorList) -> None:
    for name in sorted(found or {}):
        item_path = f"{path}[{name}]"
        _quota_name(name, item_path, errors)
        value = (found or {})[name]
        quantity_not_negative(value, item_path, errors)
        if is_integer(name) and quantity(value).scaled_value(-3) % 1000:
            errors.append(invalid(item_path, str(value), "must be an integer", "resource.Quantity"))


def _quota_name(name: str, path: str, errors: ErrorList) -> None:
    resource_name(name, path, errors)
    if "/" not in name and not _is_standard(name):
        errors.append(invalid_name(path, name, "must be a standard resource for quota", "core.ResourceName"))


def _is_standard(name: str) -> bool:
    return name in _QUOTA or name.startswith(("hugepages-", "requests.hugepages-"))


_QUOTA: Final = frozenset(
    (
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    )
)


def validate_resource_quota(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a quota: resources and scopes."""
    errors: ErrorList = []
    spec = obj["spec"]
    _amounts(spec.get("hard"), "spec.hard", errors)
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    unsupported_resources = _UnsupportedResources(hard)
    unknown: FieldError | None = None
    for scope in scopes:
        if scope not in _SCOPES:
            # Reported once, since the error quotes the whole list.
            unknown = unknown or invalid("spec.scopes", scopes, "unsupported scope", _SCOPE_LIST)
            errors.append(unknown)
        unsupported_resources.report(scope, lambda: invalid("spec.scopes", scopes, _BEYOND, _SCOPE_LIST), errors)
    _conflicts(scopes, "spec.scopes", scopes, errors)
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    unsupported_resources = _UnsupportedResources(hard)
    for expression in expressions:
        _scope_expression(expression, expressions, unsupported_resources, errors)
    # As in the reference, the value in the error is C{scopes}.
    _conflicts([one.get("scopeName") for one in expressions], _EXPRESSIONS, spec.get("scopes"), errors)
    return errors


def _conflicts(scopes: Sequence[JSONValue], path: str, value: JSONValue, errors: ErrorList) -> None:
    """Report pairs of scopes that exclude each other."""
    for one, other in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
        if one in scopes and other in scopes:
            errors.append(invalid(path, value, "conflicting scopes", _SCOPE_LIST))


class _UnsupportedResources:
    """
    Reporter of resources that a scope does not support.

    Errors quote all scopes, so the quoted text and the number of resources are computed once, and the number of
    errors is limited.
    """

    def __init__(self, hard: JSONObject) -> None:
        self._standard = [name for name in sorted(hard) if _is_standard(name)]
        self._counts: dict[str, int] = {}
        self._error: FieldError | None = None

    def report(self, scope: str, make_error: Callable[[], FieldError], errors: ErrorList) -> None:
        """
        Add an error for each resource that C{scope} does not support.

        @param make_error: Returns the error; called once.
        """
        count = self._counts.get(scope)
        if count is None:
            known = _counted_within(scope)
            count = self._counts[scope] = 0 if known is None else sum(name not in known for name in self._standard)
        if count:
            if self._error is None:
                self._error = make_error()
            errors.extend([self._error] * min(count, max(MAX_FIELD_ERRORS - len(errors), 1)))


def _counted_within(scope: str) -> tuple[str, ...] | None:
    """Return the standard resources that a scope supports; L{None} if the scope does not exist."""
    if scope not in _SCOPES:
        return None
    if scope == "VolumeAttributesClass":
        return ("persistentvolumeclaims", "requests.storage")
    if scope == "BestEffort":
        return ("pods",)
    return ("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")


_ALWAYS_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


#: The Go type of the scopes.
_SCOPE_LIST: Final = "[]core.ResourceQuotaScope"
_BEYOND: Final = "unsupported scope applied to resource"
#: The field path of the reference has no index.
_EXPRESSIONS: Final = "spec.scopeSelector.matchExpressions"


def _scope_expression(
    expression: JSONObject,
    expressions: Sequence[JSONObject],
    unsupported_resources: _UnsupportedResources,
    errors: ErrorList,
) -> None:
    name, operator = expression.get("scopeName") or "", expression.get("operator") or ""
    values, path = expression.get("values") or (), _EXPRESSIONS
    if name not in _SCOPES:
        errors.append(invalid_name(f"{path}.scopeName", name, "unsupported scope"))
    unsupported_resources.report(name, lambda: _beyond(path, expressions), errors)
    if name in _SCOPES and name not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
        errors.append(invalid(f"{path}.operator", operator, _ALWAYS_EXISTS))
    if operator in ("In", "NotIn"):
        if not values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(f"{path}.values", text))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid(f"{path}.values", list(values), text))
    else:
        errors.append(invalid_name(f"{path}.operator", operator, "not a valid selector operator"))


def _beyond(path: str, expressions: Sequence[JSONObject]) -> FieldError:
    value = {"matchExpressions": list(expressions)}
    return invalid_shown(path, _format_selector(expressions), _BEYOND, value, "core.ScopeSelector")


def _format_selector(expressions: Sequence[JSONObject]) -> str:
    """Return a scope selector as Go prints it."""
    parts = [
        {
            "ScopeName": expression.get("scopeName"),
            "Operator": expression.get("operator"),
            "Values": expression.get("values"),
        }
        for expression in expressions
    ]
    return go_json({"MatchExpressions": parts})


def validate_resource_quota_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Return the validation errors of an update; the scopes are immutable."""
    errors = validate_resource_quota(obj)
    new, was = obj["spec"].get("scopes"), old["spec"].get("scopes")
    if set(new or ()) != set(was or ()):
        errors.append(invalid("spec.scopes", new, "field is immutable", _SCOPE_LIST))
    return errors


def validate_resource_quota_status(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of the amounts in a status."""
    errors: ErrorList = []
    status = obj.get("status") or {}
    _amounts(status.get("hard"), "status.hard", errors)
    _amounts(status.get("used"), "status.used", errors)
    return errors
