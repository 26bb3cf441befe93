"""Validation of roles and bindings; see kubernetes, C{pkg/apis/rbac/validation/validation.go}."""

from __future__ import annotations

from ...api.errors import FieldError, invalid, required
from ...api.names import validate_path_segment_name
from ...api.objectmeta import UpdateErrors
from ...api.resource import JSONObject
from ..generic.validation.fields import (
    ErrorList,
    dns_subdomain,
    go_json,
    invalid_shown,
    label_selector,
    unsupported_string,
)

GROUP = "rbac.authorization.k8s.io"


def validate_role(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a Role."""
    errors: ErrorList = []
    _rules(obj, True, errors)
    return errors


def validate_cluster_role(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a ClusterRole."""
    errors: ErrorList = []
    _rules(obj, False, errors)
    aggregation = obj.get("aggregationRule")
    if aggregation is not None:
        selectors = aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(required("aggregationRule.clusterRoleSelectors", text))
        for index, selector in enumerate(selectors):
            path = f"aggregationRule.clusterRoleSelectors[{index}]"
            before = len(errors)
            label_selector(selector, path, errors)
            if len(errors) > before:
                errors.append(invalid(path, None, "invalid label selector."))
    return errors


def _rules(obj: JSONObject, namespaced: bool, errors: ErrorList) -> None:
    for index, rule in enumerate(obj.get("rules") or ()):
        validate_rule(rule, namespaced, f"rules[{index}]", errors)


def validate_rule(rule: JSONObject, namespaced: bool, path: str, errors: ErrorList) -> None:
    """
    Validate a rule of a role.

    @param rule: The rule.
    @param namespaced: Whether the role has a namespace.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    """
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs") or []
    if urls:
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, text))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, text))
        return
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))


def validate_binding(obj: JSONObject, namespaced: bool) -> list[FieldError]:
    """Return the validation errors of a RoleBinding, if C{namespaced} is set, or ClusterRoleBinding."""
    errors: ErrorList = []
    reference = obj.get("roleRef") or {}
    group, kind, name = (reference.get(part) or "" for part in ("apiGroup", "kind", "name"))
    if group != GROUP:
        errors.append(unsupported_string("roleRef.apiGroup", group, (GROUP,)))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if kind not in kinds:
        errors.append(unsupported_string("roleRef.kind", kind, kinds))
    if not name:
        errors.append(required("roleRef.name"))
    else:
        for text in validate_path_segment_name(name):
            errors.append(invalid("roleRef.name", name, text))
    for index, subject in enumerate(obj.get("subjects") or ()):
        _subject(subject, namespaced, f"subjects[{index}]", errors)
    return errors


def _subject(subject: JSONObject, namespaced: bool, path: str, errors: ErrorList) -> None:
    kind, name, group = subject.get("kind") or "", subject.get("name") or "", subject.get("apiGroup") or ""
    if not name:
        errors.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            for text in dns_subdomain(name):
                errors.append(invalid(f"{path}.name", name, text))
        if group:
            errors.append(unsupported_string(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(unsupported_string(f"{path}.apiGroup", group, (GROUP,)))
    else:
        errors.append(unsupported_string(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))


def validate_binding_update(obj: JSONObject, old: JSONObject, namespaced: bool) -> list[FieldError]:
    """Return the validation errors of an update of a binding, whose role is immutable."""
    errors: ErrorList = []
    reference = obj.get("roleRef") or {}
    if reference != old.get("roleRef"):
        formatted = go_json(
            {
                "APIGroup": reference.get("apiGroup", ""),
                "Kind": reference.get("kind", ""),
                "Name": reference.get("name", ""),
            }
        )
        errors.append(invalid_shown("roleRef", formatted, "cannot change roleRef", reference, "rbac.RoleRef"))
    return UpdateErrors(validate_binding(obj, namespaced), errors)
