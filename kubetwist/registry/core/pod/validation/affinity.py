"""Validation of affinities, node selectors and topology spread constraints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from .....api.errors import duplicate, forbidden, invalid, required
from .....api.names import validate_label_value, validate_qualified_name
from .....api.resource import JSONObject
from ....generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    invalid_name,
    label_selector,
    unsupported,
)
from .options import PodValidationOptions

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
#: The feature gates of C{matchLabelKeys} in topology spread constraints, and of their merge into label selectors.
_SPREAD_KEYS: Final = "MatchLabelKeysInPodTopologySpread"
_SPREAD_MERGE: Final = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_affinity(affinity: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate node affinity, pod affinity and pod anti-affinity."""
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        item_path = f"{path}.nodeAffinity"
        if nodes.get(_REQUIRED) is not None:
            validate_node_selector(nodes[_REQUIRED], f"{item_path}.{_REQUIRED}", errors)
        for index, term in enumerate(nodes.get(_PREFERRED) or ()):
            term_path = f"{item_path}.{_PREFERRED}[{index}]"
            _weight(term, term_path, errors)
            _node_term(term.get("preference") or {}, f"{term_path}.preference", errors, values=False)
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(name)
        if pods is None:
            continue
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            _pod_term(term, f"{path}.{name}.{_REQUIRED}[{index}]", errors)
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            term_path = f"{path}.{name}.{_PREFERRED}[{index}]"
            _weight(weighted, term_path, errors)
            _pod_term(weighted.get("podAffinityTerm") or {}, f"{term_path}.podAffinityTerm", errors)


def _weight(term: JSONObject, path: str, errors: ErrorList) -> None:
    weight = term.get("weight") or 0
    if not 0 < weight <= 100:
        errors.append(invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def validate_node_selector(selector: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate a node selector and its terms."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        errors.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
        return
    for index, term in enumerate(terms):
        _node_term(term, f"{path}.nodeSelectorTerms[{index}]", errors, values=True)


def _node_term(term: JSONObject, path: str, errors: ErrorList, *, values: bool) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        _node_expression(expression, f"{path}.matchExpressions[{index}]", errors, values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        _node_field(expression, f"{path}.matchFields[{index}]", errors)


def _node_expression(expression: JSONObject, path: str, errors: ErrorList, values: bool) -> None:
    operator, match_values = expression.get("operator") or "", expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not match_values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if match_values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", text))
    elif operator in ("Gt", "Lt"):
        if len(match_values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", text))
    else:
        errors.append(invalid_name(f"{path}.operator", operator, "not a valid selector operator"))
    check(expression.get("key") or "", f"{path}.key", validate_qualified_name, errors)
    if values:
        for index, value in enumerate(match_values):
            check(value, f"{path}.values[{index}]", validate_label_value, errors)


def _node_field(expression: JSONObject, path: str, errors: ErrorList) -> None:
    operator, match_values = expression.get("operator") or "", expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if len(match_values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(required(f"{path}.values", text))
    else:
        errors.append(invalid_name(f"{path}.operator", operator, "not a valid selector operator"))
    key = expression.get("key") or ""
    if key != "metadata.name":
        errors.append(invalid(f"{path}.key", key, "not a valid field selector key"))
    else:
        for index, value in enumerate(match_values):
            check(value, f"{path}.values[{index}]", dns_subdomain, errors)


def _pod_term(term: JSONObject, path: str, errors: ErrorList) -> None:
    label_selector(term.get("labelSelector"), f"{path}.labelSelector", errors)
    label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", errors)
    for name in term.get("namespaces") or ():
        check(name, f"{path}.namespace", dns_label, errors)
    _label_keys(term, path, errors)
    topology = term.get("topologyKey") or ""
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    check(topology, f"{path}.topologyKey", validate_qualified_name, errors)


def _label_keys(holder: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate C{matchLabelKeys} and C{mismatchLabelKeys}."""
    same, other = holder.get("matchLabelKeys") or [], holder.get("mismatchLabelKeys") or []
    if not same and not other:
        return
    selector = holder.get("labelSelector")
    for field, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            text = "must not be specified when labelSelector is not set"
            errors.append(forbidden(f"{path}.{field}", text))
            continue
        for index, key in enumerate(keys):
            check(key, f"{path}.{field}[{index}]", validate_qualified_name, errors)
    if same and selector is not None:
        _selected_twice(selector, same, path, errors)
    different = frozenset(other)
    for index, key in enumerate(same):
        if key in different:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, text))


def _selected_twice(selector: JSONObject, keys: list[str], path: str, errors: ErrorList) -> None:
    """Report keys that the label selector already uses, besides the expressions that were added for the keys."""
    indexes = {key: index for index, key in enumerate(keys)}
    seen = set(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key") or ""
        if key in indexes and key in seen:
            # The field path of the reference has no name of the list.
            text = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{path}[{indexes[key]}]", key, text))
        seen.add(key)


def _spread_key(constraint: JSONObject) -> tuple[str, str]:
    """Return the fields that must be unique among constraints."""
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def validate_topology_spread(
    constraints: list[JSONObject], path: str, errors: ErrorList, options: PodValidationOptions
) -> None:
    """
    Validate topology spread constraints.

    @param constraints: The constraints.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    remaining = Counter(map(_spread_key, constraints))
    for index, constraint in enumerate(constraints):
        item_path = f"{path}[{index}]"
        skew, domains = constraint.get("maxSkew") or 0, constraint.get("minDomains")
        topology, otherwise = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            errors.append(invalid(f"{item_path}.maxSkew", skew, "must be greater than zero"))
        if not topology:
            errors.append(required(f"{item_path}.topologyKey", "can not be empty"))
        if otherwise not in ("DoNotSchedule", "ScheduleAnyway"):
            choice = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(unsupported(f"{item_path}.whenUnsatisfiable", otherwise, choice))
        # All but the last of equal constraints are reported.
        remaining[topology, otherwise] -= 1
        if remaining[topology, otherwise]:
            term_path = f"{item_path}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(term_path, f"{{{topology}, {otherwise}}}"))
        if domains is not None:
            if domains <= 0:
                errors.append(invalid(f"{item_path}.minDomains", domains, "must be greater than zero"))
            if otherwise != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {otherwise}"
                errors.append(invalid(f"{item_path}.minDomains", domains, text))
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None and constraint[name] not in ("Honor", "Ignore"):
                errors.append(unsupported(f"{item_path}.{name}", constraint[name], ("Honor", "Ignore")))
        if constraint.get("matchLabelKeys"):
            _spread_label_keys(constraint, item_path, errors, options)
        label_selector(constraint.get("labelSelector"), f"{item_path}.labelSelector", errors)


def _spread_label_keys(constraint: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions) -> None:
    """
    Validate C{matchLabelKeys} of a constraint.

    Since 1.34, the label selectors of new pods contain the keys. The rule before that, for keys that are not merged,
    still applies if the gates are disabled. If the stored pod violates one of the rules, the other one applies.
    """
    validate, other = _label_keys, _separate_label_keys
    if not (options.features.enabled(_SPREAD_KEYS) and options.features.enabled(_SPREAD_MERGE)):
        validate, other = other, validate
    found: ErrorList = []
    validate(constraint, path, found)
    tolerates = validate is _label_keys or options.features.enabled(_SPREAD_KEYS)
    if found and tolerates and options.old is not None and _violates(validate, options.old):
        found = []
        other(constraint, path, found)
    errors.extend(found)


def _violates(validate: Callable[[JSONObject, str, ErrorList], None], spec: JSONObject) -> bool:
    """Return whether the topology spread constraints of a stored pod violate a rule for label keys."""
    found: ErrorList = []
    for constraint in spec.get("topologySpreadConstraints") or ():
        validate(constraint, "", found)
    return bool(found)


def _separate_label_keys(holder: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate label keys that are not added to the label selector, and must not be in it."""
    keys, selector = holder.get("matchLabelKeys") or [], holder.get("labelSelector")
    if not keys:
        return
    if selector is None:
        errors.append(forbidden(f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set"))
        selector = {}
    selected = set(selector.get("matchLabels") or ())
    selected.update(expression.get("key") or "" for expression in selector.get("matchExpressions") or ())
    for index, key in enumerate(keys):
        item_path = f"{path}.matchLabelKeys[{index}]"
        check(key, item_path, validate_qualified_name, errors)
        if key in selected:
            errors.append(invalid(item_path, key, "exists in both matchLabelKeys and labelSelector"))
