"""
Warnings about selectors that use deprecated labels of nodes.

@see: kubernetes, C{pkg/api/node/util.go} and C{pkg/api/storage/util.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....api.names import validate_label_value
from ....api.resource import JSONObject

#: The text of the warning, by label.
DEPRECATED_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def term_warnings(term: JSONObject, path: str, *, values: bool = False) -> Iterator[str]:
    """
    Return the warnings about a C{NodeSelectorTerm}.

    @param term: The term.
    @param path: The field path for warnings.
    @param values: Whether the values are checked as well.
    """
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        item_path, key = f"{path}.matchExpressions[{index}]", expression.get("key") or ""
        if key in DEPRECATED_LABELS:
            yield f"{item_path}.key: {key} is {DEPRECATED_LABELS[key]}"
        for position, value in enumerate(expression.get("values") or () if values else ()):
            for problem in validate_label_value(value):
                yield f"{item_path}.values[{position}]: {value} is invalid, {problem}"


def selector_warnings(selector: JSONObject | None, path: str) -> Iterator[str]:
    """Return the warnings about a C{LabelSelector} of nodes."""
    if selector is None:
        return
    yield from term_warnings({"matchExpressions": selector.get("matchExpressions")}, path)
    for label in selector.get("matchLabels") or ():
        if label in DEPRECATED_LABELS:
            yield f"{path}.matchLabels.{label}: {DEPRECATED_LABELS[label]}"


def topology_warnings(topologies: list[JSONObject] | None, path: str) -> Iterator[str]:
    """Return the warnings about the C{TopologySelectorTerm}s of a StorageClass."""
    for index, term in enumerate(topologies or ()):
        for position, expression in enumerate(term.get("matchLabelExpressions") or ()):
            text = DEPRECATED_LABELS.get(expression.get("key") or "")
            if text is not None:
                yield f"{path}[{index}].matchLabelExpressions[{position}].key: {text}"


def label_warnings(labels: JSONObject | None, path: str) -> Iterator[str]:
    """
    Return the warnings about the labels that a RuntimeClass requires; the reference's text does not name the label.
    """
    for label in labels or ():
        if label in DEPRECATED_LABELS:
            yield f"{path}: {DEPRECATED_LABELS[label]}"
