"""
Which nodes a pod can run on regardless of other pods: node selectors, required affinity, taints.

@see: kubernetes, C{component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go}, C{helpers.go}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from ...api.resource import JSONObject

#: Effects of taints that prevent scheduling. NoExecute evicts running pods, too.
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
#: The only field in C{matchFields} of node affinity.
NAME_FIELD: Final = "metadata.name"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def node_is_selected(spec: JSONObject, name: str, labels: Mapping[str, str]) -> bool:
    """
    Return whether a node matches the C{nodeSelector} and the required node affinity of a pod.

    @param spec: The spec of the pod.
    @param name: The name of the node.
    @param labels: The labels of the node.
    """
    selector = spec.get("nodeSelector")
    if selector and not selector.items() <= labels.items():
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return required is None or any(term_matches(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def named_nodes(spec: JSONObject) -> frozenset[str] | None:
    """Return the names to which the required node affinity of a pod is restricted; L{None} if it names no nodes."""
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if required is None:
        return None
    names: set[str] = set()
    for term in required.get("nodeSelectorTerms") or ():
        fields = [one for one in term.get("matchFields") or () if one["key"] == NAME_FIELD and one["operator"] == "In"]
        if not fields:
            return None
        names.update(fields[0].get("values") or ())
    return frozenset(names)


def term_matches(term: JSONObject, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a node matches all requirements of a C{NodeSelectorTerm}. An empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_requirement_matches(one, labels) for one in expressions) and all(
        _requirement_matches(one, {NAME_FIELD: name}) for one in fields
    )


def _requirement_matches(requirement: JSONObject, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement["key"])
    operator = requirement["operator"]
    values: Sequence[str] = requirement.get("values") or ()
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator not in ("Gt", "Lt") or value is None or len(values) != 1:
        return False
    return _compare_integers(value, values[0], operator)


def _compare_integers(left: str, right: str, operator: str) -> bool:
    first, second = _integer(left), _integer(right)
    if first is None or second is None:
        return False
    return first > second if operator == "Gt" else first < second


def _integer(text: str) -> int | None:
    """Return a decimal 64 bit integer, or L{None}."""
    if len(text) > 20 or not text.isascii() or "_" in text:
        return None
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -(2**63) <= value < 2**63 else None


def tolerates(toleration: JSONObject, taint: JSONObject) -> bool:
    """Return whether a toleration tolerates a taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    toleration_value, taint_value = toleration.get("value") or "", taint.get("value") or ""
    if operator in ("Gt", "Lt"):
        return _compare_integers(taint_value, toleration_value, operator)
    return operator == "Equal" and toleration_value == taint_value


def tolerated(tolerations: Iterable[JSONObject], taint: JSONObject) -> bool:
    """Return whether one of several tolerations tolerates a taint."""
    return any(tolerates(one, taint) for one in tolerations)


def untolerated_taint(
    taints: Iterable[JSONObject], tolerations: Sequence[JSONObject], effects: Collection[str]
) -> JSONObject | None:
    """
    Return the first taint that is not tolerated, or L{None}.

    @param effects: The effects of taints to check.
    """
    for taint in taints:
        if taint.get("effect") in effects and not tolerated(tolerations, taint):
            return taint
    return None
