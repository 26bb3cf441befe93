"""Explains RBAC decisions: the rule and binding that allow a request, or near misses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..api.authorization import AuthorizerAttributes
from ..api.go.quote import quoted
from ..api.rbacrules import (
    Rule,
    allows,
    unmatched_attributes,
)
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..api.users import split_service_account
from ..registry.rbac.ruleresolver import (
    CLUSTER,
    Binding,
    RoleNotFound,
    RuleResolver,
)
from ._rbacremedies import bind

#: Maximum number of listed items of a rule's field.
_MAX_LISTED: Final = 20

# Distances, by which near misses are sorted.
#: A rule of the user matches except for one field, by field.
_FIELD_DISTANCES: Final = {"verb": 1, "resourceName": 1, "subresource": 1, "apiGroup": 2, "path": 2}
#: The role of a binding of the user does not exist.
_ROLE_MISSING_DISTANCE: Final = 0
#: The user has the rule in another namespace.
_OTHER_NAMESPACE_DISTANCE: Final = 2
#: The binding has a subject with a similar name.
_SIMILAR_SUBJECT_DISTANCE: Final = 1
#: The binding has other subjects.
_OTHER_SUBJECT_DISTANCE: Final = 3
#: No binding refers to the role.
_UNBOUND_ROLE_DISTANCE: Final = 4
#: Added to the distance of roles for system components and their controllers.
_SYSTEM_PENALTY: Final = 3
_CONTROLLER_PENALTY: Final = 4
#: Maximum number of listed grants of a user.
_MAX_GRANTS: Final = 20

_FIELD_TEXTS: Final = {
    "verb": "but not {verb}",
    "resourceName": "but not for the name {name}",
    "subresource": "but not {resource}",
    "apiGroup": "but not in the API group {group}",
    "path": "but not the path {path}",
}


def explain(grants: RuleResolver, attributes: AuthorizerAttributes) -> JSONObject | None:
    """Return the first rule that allows the request, with its binding and subject; L{None} if there is none."""
    user = attributes.user
    for binding in grants.bindings_of(user, attributes.namespace):
        try:
            role = grants.role(binding.role, binding.namespace)
        except RoleNotFound:
            continue
        for index, rule in enumerate(role.rules):
            if allows(rule, attributes):
                return {**_source(binding, index, rule), "subject": binding.matching_subject(user)}
    return None


def grants_of(grants: RuleResolver, attributes: AuthorizerAttributes) -> list[JSONObject]:
    """See L{kubetwist.interfaces.IGrantExplainer.grants_of}."""
    user = attributes.user
    direct: list[JSONObject] = []
    of_groups: list[JSONObject] = []
    for binding in grants.bindings_of(user, attributes.namespace):
        subject = binding.matching_subject(user)
        if subject is None:
            continue
        is_group = subject.get("kind") == "Group"
        as_member = f", as a member of {quoted(_subject_name(subject))}" if is_group else ""
        text = f"{_describe_role(binding.role)} by {_describe_binding(binding)}{as_member}"
        (of_groups if is_group else direct).append({"text": text, **_source(binding), "subject": dict(subject)})
    return [*direct, *of_groups][:_MAX_GRANTS]


def near_misses(grants: RuleResolver, attributes: AuthorizerAttributes) -> Iterator[tuple[int, JSONObject] | None]:
    """See L{kubetwist.interfaces.IRuleExplainer.near_misses}."""
    bound: set[tuple[str, str]] = set()
    for binding in grants.bindings():
        bound.add(binding.role_key)
        yield from _binding_near_misses(grants, binding, attributes)
    for role, namespace in grants.role_names(attributes.namespace):
        if (role[0], f"{namespace}/{role[1]}" if namespace else role[1]) not in bound:
            yield from _unbound_role_near_misses(grants, role, namespace, attributes)


def _binding_near_misses(
    grants: RuleResolver, binding: Binding, attributes: AuthorizerAttributes
) -> Iterator[tuple[int, JSONObject] | None]:
    subject_matches = binding.matching_subject(attributes.user) is not None
    in_namespace = binding.namespace in ("", attributes.namespace)
    try:
        rules = grants.role(binding.role, binding.namespace).rules
    except RoleNotFound as error:
        if subject_matches and in_namespace:
            why = f"{_describe_binding(binding)} is for the user, but its role does not exist: {error}"
            yield _ROLE_MISSING_DISTANCE, {"why": why, "missing": "role", **_source(binding)}
        return
    for index, rule in enumerate(rules):
        if subject_matches or allows(rule, attributes):
            yield _rule_near_miss(binding, rules, index, attributes, subject_matches, in_namespace)
        else:
            yield None


def _rule_near_miss(
    binding: Binding,
    rules: Sequence[Rule],
    index: int,
    attributes: AuthorizerAttributes,
    subject_matches: bool,
    in_namespace: bool,
) -> tuple[int, JSONObject] | None:
    rule = rules[index]
    missing = unmatched_attributes(rule, attributes)
    rule_text = f"rule {index} of {_describe_role(binding.role)}"
    if subject_matches and in_namespace:
        if len(missing) != 1 or missing[0] not in _FIELD_DISTANCES:
            return None
        resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
        field_text = _FIELD_TEXTS[missing[0]].format(
            verb=quoted(attributes.verb),
            name=quoted(attributes.name),
            resource=quoted(resource),
            group=quoted(attributes.group),
            path=quoted(attributes.path),
        )
        values = _describe_values(rule, missing[0])
        why = f"{rule_text}, which the user has by {_describe_binding(binding)}, allows {values}, {field_text}"
        return _FIELD_DISTANCES[missing[0]], {"why": why, "missing": missing[0], **_source(binding, index, rule)}
    if missing:
        return None
    if subject_matches:
        scope = f"in the namespace {quoted(attributes.namespace)}" if attributes.namespace else "cluster-wide"
        why = f"{rule_text} allows it, but the user has it by {_describe_binding(binding)}, not {scope}"
        remedy = _remedy(attributes, binding.role, rules) if binding.role[0] == "ClusterRole" else {}
        return _OTHER_NAMESPACE_DISTANCE, {
            "why": why,
            "missing": "namespace",
            **_source(binding, index, rule),
            **remedy,
        }
    if not in_namespace:
        return None
    similar = next((one for one in binding.subjects if _resembles(one, attributes.user)), None)
    why = f"{rule_text} allows it, but {_describe_binding(binding)} has other subjects"
    if similar is not None:
        why += f": {similar.get('kind', '')} {quoted(_subject_name(similar))} resembles the user, but is different"
    return (
        _OTHER_SUBJECT_DISTANCE + _system_role_penalty(binding.role[1])
        if similar is None
        else _SIMILAR_SUBJECT_DISTANCE,
        {
            "why": why,
            "missing": "subject",
            **_source(binding, index, rule),
            "subjects": [dict(one) for one in binding.subjects[:_MAX_LISTED]],
            **_remedy(attributes, binding.role, rules),
        },
    )


def _unbound_role_near_misses(
    grants: RuleResolver, role: tuple[str, str], namespace: str, attributes: AuthorizerAttributes
) -> Iterator[tuple[int, JSONObject] | None]:
    try:
        rules = grants.role(role, namespace).rules
    except RoleNotFound:
        # The role was deleted after the roles were listed.
        return
    for index, rule in enumerate(rules):
        if allows(rule, attributes):
            reference: JSONObject = {"kind": role[0], "name": role[1]}
            if namespace:
                reference["namespace"] = namespace
            why = f"rule {index} of {_describe_role(role)} allows it, but no binding refers to this role"
            yield (
                _UNBOUND_ROLE_DISTANCE + _system_role_penalty(role[1]),
                {
                    "why": why,
                    "missing": "binding",
                    "role": reference,
                    "ruleIndex": index,
                    "rule": _clipped(rule),
                    **_remedy(attributes, role, rules),
                },
            )
            return
        yield None


def _system_role_penalty(role: str) -> int:
    """Return what is added to the distance of a role, as users should not be bound to roles of the system."""
    if role.startswith("system:controller:"):
        return _CONTROLLER_PENALTY
    return _SYSTEM_PENALTY if role.startswith("system:") or role == "cluster-admin" else 0


def _remedy(attributes: AuthorizerAttributes, role: tuple[str, str], rules: Sequence[Rule]) -> JSONObject:
    """Return the command that grants a role which allows the request; roles of the system are not proposed."""
    return {} if _system_role_penalty(role[1]) else {"remedy": {"command": bind(attributes, role), "rules": len(rules)}}


def _source(binding: Binding, index: int = -1, rule: Rule | None = None) -> JSONObject:
    """Return a binding, its role and optionally one of its rules as JSON."""
    namespaced = {"namespace": binding.namespace} if binding.namespace else {}
    source: JSONObject = {
        "binding": {"kind": "RoleBinding" if namespaced else CLUSTER, **namespaced, "name": binding.name},
        "role": {
            "kind": binding.role[0],
            **(namespaced if binding.role[0] == "Role" else {}),
            "name": binding.role[1],
        },
    }
    if rule is not None:
        source["ruleIndex"] = index
        source["rule"] = _clipped(rule)
    return source


def _clipped(rule: Rule) -> JSONObject:
    """Return a rule with at most L{_MAX_LISTED} items in each field."""
    clipped: dict[str, Any] = {}
    for name, values in rule.items():
        if values:
            more = len(values) - _MAX_LISTED
            clipped[name] = [*values[:_MAX_LISTED], f"... and {more} more"] if more > 0 else list(values)
    return clipped


def _describe_values(rule: Rule, missing: str) -> str:
    """Describe the values of the rule's field that does not match; C{missing} is a key of L{_FIELD_TEXTS}."""
    field = {
        "verb": "verbs",
        "resourceName": "resourceNames",
        "subresource": "resources",
        "apiGroup": "apiGroups",
        "path": "nonResourceURLs",
    }[missing]
    values = _clipped({field: rule.get(field) or ()}).get(field, [])
    named = {"resourceNames": "the names ", "apiGroups": "API groups ", "nonResourceURLs": "the paths "}.get(field, "")
    return named + (", ".join(map(quoted, values)) or "nothing")


def _describe_binding(binding: Binding) -> str:
    scope = f" in the namespace {quoted(binding.namespace)}" if binding.namespace else ""
    return f"{'RoleBinding' if binding.namespace else CLUSTER} {quoted(binding.name)}{scope}"


def _describe_role(role: tuple[str, str]) -> str:
    return f"{role[0]} {quoted(role[1])}"


def _resembles(subject: JSONObject, user: UserInfo) -> bool:
    """Return whether a subject resembles the user: another kind, case or namespace."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    account = split_service_account(user.name)
    if account is not None:
        if kind == "ServiceAccount" and name == account[1]:
            return True
        if kind in ("User", "Group") and name in (account[1], f"{account[0]}:{account[1]}"):
            return True
    if kind == "ServiceAccount":
        return bool(name == user.name)
    names = {user.name, *user.groups}
    return name in names or name.casefold() in {one.casefold() for one in names}


def _subject_name(subject: JSONObject) -> str:
    name = subject.get("name", "")
    return f"{subject['namespace']}/{name}" if subject.get("namespace") else name
