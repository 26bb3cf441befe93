"""Where pods want to run: affinities, node selectors, spreading over topologies."""

from __future__ import annotations

from collections import Counter
from typing import Final

from .....api.errors import duplicate, forbidden, invalid, required
from .....api.names import label_value_problems, qualified_name_problems
from .....api.resource import JSONObject
from ....generic.validation.fields import (
    Causes,
    check,
    dns_label,
    dns_subdomain,
    invalid_name,
    label_selector,
    unsupported,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_affinity(affinity: JSONObject, path: str, causes: Causes) -> None:
    """To nodes, to pods, away from pods."""
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        here = f"{path}.nodeAffinity"
        if nodes.get(_REQUIRED) is not None:
            validate_node_selector(nodes[_REQUIRED], f"{here}.{_REQUIRED}", causes)
        for index, term in enumerate(nodes.get(_PREFERRED) or ()):
            where = f"{here}.{_PREFERRED}[{index}]"
            _weight(term, where, causes)
            _node_term(term.get("preference") or {}, f"{where}.preference", causes, values=False)
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(name)
        if pods is None:
            continue
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            _pod_term(term, f"{path}.{name}.{_REQUIRED}[{index}]", causes)
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            where = f"{path}.{name}.{_PREFERRED}[{index}]"
            _weight(weighted, where, causes)
            _pod_term(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm", causes)


def _weight(term: JSONObject, path: str, causes: Causes) -> None:
    weight = term.get("weight") or 0
    if not 0 < weight <= 100:
        causes.append(invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def validate_node_selector(selector: JSONObject, path: str, causes: Causes) -> None:
    """Terms, one of which has to match."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        causes.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
        return
    for index, term in enumerate(terms):
        _node_term(term, f"{path}.nodeSelectorTerms[{index}]", causes, values=True)


def _node_term(term: JSONObject, path: str, causes: Causes, *, values: bool) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        _node_expression(expression, f"{path}.matchExpressions[{index}]", causes, values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        _node_field(expression, f"{path}.matchFields[{index}]", causes)


def _node_expression(expression: JSONObject, path: str, causes: Causes, values: bool) -> None:
    operator, wanted = expression.get("operator") or "", expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not wanted:
            causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if wanted:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden(f"{path}.values", text))
    elif operator in ("Gt", "Lt"):
        if len(wanted) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.append(required(f"{path}.values", text))
    else:
        causes.append(invalid_name(f"{path}.operator", operator, "not a valid selector operator"))
    check(expression.get("key") or "", f"{path}.key", qualified_name_problems, causes)
    if values:
        for index, value in enumerate(wanted):
            check(value, f"{path}.values[{index}]", label_value_problems, causes)


def _node_field(expression: JSONObject, path: str, causes: Causes) -> None:
    operator, wanted = expression.get("operator") or "", expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if len(wanted) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            causes.append(required(f"{path}.values", text))
    else:
        causes.append(invalid_name(f"{path}.operator", operator, "not a valid selector operator"))
    key = expression.get("key") or ""
    if key != "metadata.name":
        causes.append(invalid(f"{path}.key", key, "not a valid field selector key"))
    else:
        for index, value in enumerate(wanted):
            check(value, f"{path}.values[{index}]", dns_subdomain, causes)


def _pod_term(term: JSONObject, path: str, causes: Causes) -> None:
    label_selector(term.get("labelSelector"), f"{path}.labelSelector", causes)
    label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", causes)
    for name in term.get("namespaces") or ():
        check(name, f"{path}.namespace", dns_label, causes)
    _label_keys(term, path, causes)
    topology = term.get("topologyKey") or ""
    if not topology:
        causes.append(required(f"{path}.topologyKey", "can not be empty"))
    check(topology, f"{path}.topologyKey", qualified_name_problems, causes)


def _label_keys(holder: JSONObject, path: str, causes: Causes) -> None:
    """The labels that are compared with those of the pod itself, or have to differ from them."""
    same, other = holder.get("matchLabelKeys") or [], holder.get("mismatchLabelKeys") or []
    if not same and not other:
        return
    selector = holder.get("labelSelector")
    for field, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            text = "must not be specified when labelSelector is not set"
            causes.append(forbidden(f"{path}.{field}", text))
            continue
        for index, key in enumerate(keys):
            check(key, f"{path}.{field}[{index}]", qualified_name_problems, causes)
    if same and selector is not None:
        _selected_twice(selector, same, path, causes)
    different = frozenset(other)
    for index, key in enumerate(same):
        if key in different:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            causes.append(invalid(f"{path}.matchLabelKeys[{index}]", key, text))


def _selected_twice(selector: JSONObject, keys: list[str], path: str, causes: Causes) -> None:
    """By now, the selector has an expression for each of the keys: there may be nothing else for them."""
    places = {key: index for index, key in enumerate(keys)}
    seen = set(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key") or ""
        if key in places and key in seen:
            # The reference leaves the name of the list out of the path.
            text = "exists in both matchLabelKeys and labelSelector"
            causes.append(invalid(f"{path}[{places[key]}]", key, text))
        seen.add(key)


def _spread_key(constraint: JSONObject) -> tuple[str, str]:
    """What no two constraints may have in common."""
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def validate_topology_spread(constraints: list[JSONObject], path: str, causes: Causes) -> None:
    """How evenly pods are to be spread."""
    left = Counter(map(_spread_key, constraints))
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        skew, domains = constraint.get("maxSkew") or 0, constraint.get("minDomains")
        topology, otherwise = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            causes.append(invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        if not topology:
            causes.append(required(f"{here}.topologyKey", "can not be empty"))
        if otherwise not in ("DoNotSchedule", "ScheduleAnyway"):
            choice = ("DoNotSchedule", "ScheduleAnyway")
            causes.append(unsupported(f"{here}.whenUnsatisfiable", otherwise, choice))
        # All but the last of those that are alike are told of.
        left[topology, otherwise] -= 1
        if left[topology, otherwise]:
            where = f"{here}.{{topologyKey, whenUnsatisfiable}}"
            causes.append(duplicate(where, f"{{{topology}, {otherwise}}}"))
        if domains is not None:
            if domains <= 0:
                causes.append(invalid(f"{here}.minDomains", domains, "must be greater than zero"))
            if otherwise != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {otherwise}"
                causes.append(invalid(f"{here}.minDomains", domains, text))
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None and constraint[name] not in ("Honor", "Ignore"):
                causes.append(unsupported(f"{here}.{name}", constraint[name], ("Honor", "Ignore")))
        _label_keys(constraint, here, causes)
        label_selector(constraint.get("labelSelector"), f"{here}.labelSelector", causes)
