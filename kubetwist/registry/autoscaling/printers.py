"""Table rows of Scales and HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, META, NAME, Column, Field, Row, described_before, integer
from ..generic.printers.texts import NONE, UNSET, name_of, spec_of, status_of


def scale(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a Scale."""
    yield name_of(obj)
    yield spec_of(obj).get("replicas", 0)
    yield status_of(obj).get("replicas", 0)
    yield age(obj)


def horizontal_pod_autoscaler(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an autoscaler: its target and metrics."""
    spec, status = spec_of(obj), status_of(obj)
    target = spec.get("scaleTargetRef") or {}
    yield name_of(obj)
    yield f"{target.get('kind', '')}/{target.get('name', '')}"
    yield _metrics(spec.get("metrics") or (), status.get("currentMetrics") or ())
    min_replicas = spec.get("minReplicas")
    yield UNSET if min_replicas is None else str(min_replicas)
    yield spec.get("maxReplicas", 0)
    yield status.get("currentReplicas", 0)
    yield age(obj)


def _metrics(metrics: JSONValue, current: JSONValue) -> str:
    if not metrics:
        return NONE
    texts = [_metric(metric, current[place] if place < len(current) else {}) for place, metric in enumerate(metrics)]
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


def _metric(metric: JSONObject, current: JSONObject) -> str:
    kind = metric.get("type", "")
    source_name = kind[:1].lower() + kind[1:]
    if kind not in ("External", "Pods", "Object", "Resource", "ContainerResource"):
        return "<unknown type>"
    source, now = metric.get(source_name) or {}, (current.get(source_name) or {}).get("current") or {}
    target = source.get("target") or {}
    average = target.get("averageValue")
    known = source_name in current
    if kind in ("Resource", "ContainerResource"):
        if average is not None:
            return f"{source.get('name', '')}: {_value(now, 'averageValue', known)}/{average}"
        target_value, used = target.get("averageUtilization"), now.get("averageUtilization")
        shown = "<unknown>" if used is None else f"{used}%"
        return f"{source.get('name', '')}: {shown}/{'<auto>' if target_value is None else f'{target_value}%'}"
    if kind == "Pods":
        return f"{_value(now, 'averageValue', known)}/{_quantity(average)}"
    if average is not None:
        return f"{_value(now, 'averageValue', False)}/{average} (avg)"
    return f"{_value(now, 'value', known)}/{_quantity(target.get('value'))}"


def _value(now: JSONObject, name: str, known: bool) -> str:
    """Return the current value; a missing one is Go's nil if the metric has a status."""
    value = now.get(name)
    if value is None:
        return _quantity(None) if known else "<unknown>"
    return str(value)


def _quantity(value: JSONValue) -> str:
    return "<nil>" if value is None else str(value)


def _scaler(kind: str, field: str) -> Field:
    return Field(f"api.autoscaling.v2.HorizontalPodAutoscaler{kind}", field)


#: The description before 1.36, of the type of autoscaling/v2beta1.
_METRICS: Final = (
    "metrics contains the specifications for which to use to calculate the desired replica count (the maximum replica "
    "count across all metrics will be used).  The desired replica count is calculated multiplying the ratio between "
    "the target value and the current value by the current number of pods.  Ergo, metrics used must decrease as the "
    "pod count is increased, and vice-versa.  See the individual metric source types for more information about how "
    "each type of metric must respond."
)

#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "HorizontalPodAutoscaler": (
        NAME,
        Column("Reference", _scaler("Spec", "scaleTargetRef")),
        *described_before("1.36", _METRICS, Column("Targets", _scaler("Spec", "metrics"))),
        Column("MinPods", _scaler("Spec", "minReplicas")),
        Column("MaxPods", _scaler("Spec", "maxReplicas")),
        Column("Replicas", _scaler("Status", "currentReplicas")),
        AGE,
    ),
    "Scale": (
        Column("Name", Field(META, "name")),
        integer("Desired", Field("api.autoscaling.v1.ScaleSpec", "replicas")),
        integer("Available", Field("api.autoscaling.v1.ScaleStatus", "replicas")),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "HorizontalPodAutoscaler": horizontal_pod_autoscaler,
    "Scale": scale,
}
