"""
Conversion of HorizontalPodAutoscalers between autoscaling/v1 and v2.

v1 has one CPU target. All other fields of v2 are in annotations in JSON formats of the reference: metrics as types of
autoscaling/v1, the behavior as kube-apiserver's internal type. Clients and servers of all versions can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from ...api.jsontypes import JSONValue
from ...api.quantity import Quantity
from ...api.resource import GroupVersionKind, JSONObject
from ..generic.internaltypes import InternalType

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
SCALE_DOWN_TOLERANCE = "autoscaling.alpha.kubernetes.io/scale-down-tolerance"
SCALE_UP_TOLERANCE = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
#: Annotations that only conversion writes; values of clients are dropped.
ANNOTATIONS = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, SCALE_DOWN_TOLERANCE, SCALE_UP_TOLERANCE)

#: Default target utilization, in per cent of the requested CPU.
DEFAULT_CPU_UTILIZATION = 80

Map = Callable[[JSONObject], JSONObject]


def drop_annotations(obj: JSONObject) -> JSONObject:
    """Return the object without the annotations of conversion, which v2 never has."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if not any(name in annotations for name in ANNOTATIONS):
        return obj
    return _with_annotations(obj, {name: text for name, text in annotations.items() if name not in ANNOTATIONS})


def drop_annotations_in_place(meta: JSONObject) -> None:
    """Remove the annotations that conversion uses from metadata."""
    annotations = meta.get("annotations")
    if annotations and any(name in annotations for name in ANNOTATIONS):
        meta["annotations"] = {name: text for name, text in annotations.items() if name not in ANNOTATIONS}
        if not meta["annotations"]:
            del meta["annotations"]


def _read(gvk: GroupVersionKind, obj: JSONObject) -> None:
    # autoscaling/v1 represents newer fields by these annotations; later versions never have them.
    if gvk.version != "v1":
        drop_annotations_in_place(obj["metadata"])


def to_v1(obj: JSONObject) -> JSONObject:
    """Convert autoscaling/v2 to v1."""
    obj = drop_annotations(obj)
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    notes: dict[str, str] = {}
    other_metrics = [_metric_to_v1(metric) for metric in metrics if not _is_cpu_target(metric)]
    if other_metrics:
        notes[METRICS] = _go_json(other_metrics)
    if current:
        notes[CURRENT_METRICS] = _go_json([_status_to_v1(metric) for metric in current])
    if status.get("conditions"):
        notes[CONDITIONS] = _go_json([_condition(condition) for condition in status["conditions"]])
    if spec.get("behavior") is not None:
        notes[BEHAVIOR] = _go_json(_behavior_to_internal(spec["behavior"]))
    if notes:
        obj = _with_annotations(obj, {**(obj["metadata"].get("annotations") or {}), **notes})
    new_spec = _some(spec, "scaleTargetRef", "minReplicas", "maxReplicas")
    for metric in metrics:
        if _is_cpu_target(metric):
            new_spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
            break
    new_status = _some(status, "observedGeneration", "lastScaleTime")
    new_status["currentReplicas"] = status.get("currentReplicas", 0)
    new_status["desiredReplicas"] = status.get("desiredReplicas", 0)
    for metric in current:
        if _is_cpu(metric):
            utilization = (metric["resource"].get("current") or {}).get("averageUtilization")
            _put(new_status, "currentCPUUtilizationPercentage", utilization)
    return {**obj, "spec": new_spec, "status": new_status}


def to_v2(obj: JSONObject) -> JSONObject:
    """Convert autoscaling/v1 to v2; annotations that cannot be decoded are dropped silently."""
    notes = (obj.get("metadata") or {}).get("annotations") or {}
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics = [_metric_to_v2(metric) for metric in _objects(notes.get(METRICS))]
    target = spec.get("targetCPUUtilizationPercentage")
    if target is None and not metrics:
        target = DEFAULT_CPU_UTILIZATION
    if target is not None:
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
        metrics.append({"type": "Resource", "resource": cpu})
    new_spec = _some(spec, "scaleTargetRef", "minReplicas", "maxReplicas")
    new_spec["metrics"] = metrics
    _put(new_spec, "behavior", _behavior_from_internal(notes.get(BEHAVIOR)))
    new_status = _some(status, "observedGeneration", "lastScaleTime")
    if status.get("currentReplicas"):
        new_status["currentReplicas"] = status["currentReplicas"]
    new_status["desiredReplicas"] = status.get("desiredReplicas", 0)
    current = [_status_to_v2(metric) for metric in _objects(notes.get(CURRENT_METRICS))]
    used = status.get("currentCPUUtilizationPercentage")
    if not current and used is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    new_status["currentMetrics"] = current or None
    conditions = [_condition(condition) for condition in _objects(notes.get(CONDITIONS))]
    if conditions:
        new_status["conditions"] = conditions
    return drop_annotations({**obj, "spec": new_spec, "status": new_status})


def _hpa(version: str) -> GroupVersionKind:
    return GroupVersionKind("autoscaling", version, "HorizontalPodAutoscaler")


CONVERTERS: dict[tuple[GroupVersionKind, GroupVersionKind], Map] = {
    (_hpa("v2"), _hpa("v1")): to_v1,
    (_hpa("v2beta2"), _hpa("v1")): to_v1,
    (_hpa("v1"), _hpa("v2")): to_v2,
    (_hpa("v1"), _hpa("v2beta2")): to_v2,
    (_hpa("v2beta2"), _hpa("v2")): drop_annotations,
}
#: By group and kind.
INTERNAL_TYPES: Final[Mapping[tuple[str, str], InternalType]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): InternalType(read=_read)
}


# --- metrics, from v2 to v1


def _is_cpu(metric: JSONObject) -> bool:
    return metric.get("type") == "Resource" and (metric.get("resource") or {}).get("name") == "cpu"


def _is_cpu_target(metric: JSONObject) -> bool:
    return _is_cpu(metric) and (metric["resource"].get("target") or {}).get("averageUtilization") is not None


def _metric_to_v1(metric: JSONObject) -> JSONObject:
    return _each_source(metric, _TARGETS_TO_V1)


def _status_to_v1(metric: JSONObject) -> JSONObject:
    return _each_source(metric, _STATUSES_TO_V1)


def _each_source(metric: JSONObject, maps: dict[str, Map]) -> JSONObject:
    """Convert the sources of a metric, in the order of the fields in the reference's type."""
    mapped: JSONObject = {"type": metric.get("type", "")}
    for name, convert in maps.items():
        source = metric.get(name)
        if isinstance(source, dict):
            mapped[name] = convert(source)
    return mapped


def _object_to_v1(value_name: str, of: str) -> Map:
    def mapped(source: JSONObject) -> JSONObject:
        metric, value = source.get("metric") or {}, source.get(of) or {}
        described = source.get("describedObject") or {}
        target = {"kind": described.get("kind", ""), "name": described.get("name", "")}
        if described.get("apiVersion"):
            target["apiVersion"] = described["apiVersion"]
        old = {"target": target, "metricName": metric.get("name", ""), value_name: value.get("value", "0")}
        _put(old, "selector", metric.get("selector"))
        _put(old, "averageValue", value.get("averageValue"))
        return old

    return mapped


def _pods_to_v1(value_name: str, of: str) -> Map:
    def mapped(source: JSONObject) -> JSONObject:
        metric, value = source.get("metric") or {}, source.get(of) or {}
        old = {"metricName": metric.get("name", ""), value_name: value.get("averageValue", "0")}
        _put(old, "selector", metric.get("selector"))
        return old

    return mapped


def _resource_to_v1(source: JSONObject) -> JSONObject:
    target = source.get("target") or {}
    old: JSONObject = {"name": source.get("name", "")}
    _put(old, "targetAverageUtilization", target.get("averageUtilization"))
    _put(old, "targetAverageValue", target.get("averageValue"))
    return old


def _resource_status_to_v1(source: JSONObject) -> JSONObject:
    current = source.get("current") or {}
    old: JSONObject = {"name": source.get("name", "")}
    _put(old, "currentAverageUtilization", current.get("averageUtilization"))
    old["currentAverageValue"] = current.get("averageValue", "0")
    return old


def _with_container(convert: Map) -> Map:
    return lambda source: {**convert(source), "container": source.get("container", "")}


def _external_to_v1(source: JSONObject) -> JSONObject:
    metric, target = source.get("metric") or {}, source.get("target") or {}
    old: JSONObject = {"metricName": metric.get("name", "")}
    _put(old, "metricSelector", metric.get("selector"))
    _put(old, "targetValue", target.get("value"))
    _put(old, "targetAverageValue", target.get("averageValue"))
    return old


def _external_status_to_v1(source: JSONObject) -> JSONObject:
    metric, current = source.get("metric") or {}, source.get("current") or {}
    old: JSONObject = {"metricName": metric.get("name", "")}
    _put(old, "metricSelector", metric.get("selector"))
    old["currentValue"] = current.get("value", "0")
    _put(old, "currentAverageValue", current.get("averageValue"))
    return old


_TARGETS_TO_V1: dict[str, Map] = {
    "object": _object_to_v1("targetValue", "target"),
    "pods": _pods_to_v1("targetAverageValue", "target"),
    "resource": _resource_to_v1,
    "containerResource": _with_container(_resource_to_v1),
    "external": _external_to_v1,
}
_STATUSES_TO_V1: dict[str, Map] = {
    "object": _object_to_v1("currentValue", "current"),
    "pods": _pods_to_v1("currentAverageValue", "current"),
    "resource": _resource_status_to_v1,
    "containerResource": _with_container(_resource_status_to_v1),
    "external": _external_status_to_v1,
}


# --- metrics, from v1 to v2


def _metric_to_v2(metric: JSONObject) -> JSONObject:
    return _each_source(metric, _TARGETS_TO_V2)


def _status_to_v2(metric: JSONObject) -> JSONObject:
    return _each_source(metric, _STATUSES_TO_V2)


def _identified(source: JSONObject, selector: str = "selector") -> JSONObject:
    metric: JSONObject = {"name": source.get("metricName", "")}
    _put(metric, "selector", source.get(selector))
    return metric


def _described(source: JSONObject) -> JSONObject:
    target = source.get("target") or {}
    described = {"kind": target.get("kind", ""), "name": target.get("name", "")}
    if target.get("apiVersion"):
        described["apiVersion"] = target["apiVersion"]
    return described


def _object_to_v2(source: JSONObject) -> JSONObject:
    average = source.get("averageValue")
    target = {"type": "Value" if average is None else "AverageValue", "value": source.get("targetValue", "0")}
    _put(target, "averageValue", average)
    return {"describedObject": _described(source), "target": target, "metric": _identified(source)}


def _object_status_to_v2(source: JSONObject) -> JSONObject:
    current = {"value": source.get("currentValue", "0")}
    _put(current, "averageValue", source.get("averageValue"))
    return {"metric": _identified(source), "current": current, "describedObject": _described(source)}


def _pods_to_v2(source: JSONObject) -> JSONObject:
    target = {"type": "AverageValue", "averageValue": source.get("targetAverageValue", "0")}
    return {"metric": _identified(source), "target": target}


def _pods_status_to_v2(source: JSONObject) -> JSONObject:
    return {"metric": _identified(source), "current": {"averageValue": source.get("currentAverageValue", "0")}}


def _resource_to_v2(source: JSONObject) -> JSONObject:
    utilization = source.get("targetAverageUtilization")
    target: JSONObject = {"type": "AverageValue" if utilization is None else "Utilization"}
    _put(target, "averageValue", source.get("targetAverageValue"))
    _put(target, "averageUtilization", utilization)
    return {"name": source.get("name", ""), "target": target}


def _resource_status_to_v2(source: JSONObject) -> JSONObject:
    current: JSONObject = {"averageValue": source.get("currentAverageValue", "0")}
    _put(current, "averageUtilization", source.get("currentAverageUtilization"))
    return {"name": source.get("name", ""), "current": current}


def _external_to_v2(source: JSONObject) -> JSONObject:
    value = source.get("targetValue")
    target: JSONObject = {"type": "AverageValue" if value is None else "Value"}
    _put(target, "value", value)
    _put(target, "averageValue", source.get("targetAverageValue"))
    return {"metric": _identified(source, "metricSelector"), "target": target}


def _external_status_to_v2(source: JSONObject) -> JSONObject:
    current = {"value": source.get("currentValue", "0")}
    _put(current, "averageValue", source.get("currentAverageValue"))
    return {"metric": _identified(source, "metricSelector"), "current": current}


_TARGETS_TO_V2: dict[str, Map] = {
    "object": _object_to_v2,
    "pods": _pods_to_v2,
    "resource": _resource_to_v2,
    "containerResource": _with_container(_resource_to_v2),
    "external": _external_to_v2,
}
_STATUSES_TO_V2: dict[str, Map] = {
    "object": _object_status_to_v2,
    "pods": _pods_status_to_v2,
    "resource": _resource_status_to_v2,
    "containerResource": _with_container(_resource_status_to_v2),
    "external": _external_status_to_v2,
}


# --- the rest


def _condition(condition: JSONObject) -> JSONObject:
    """Return a condition with known fields only, in the reference's order."""
    ordered: JSONObject = {"type": condition.get("type", ""), "status": condition.get("status", "")}
    ordered["lastTransitionTime"] = condition.get("lastTransitionTime")
    for name in ("reason", "message", "observedGeneration"):
        if condition.get(name):
            ordered[name] = condition[name]
    return ordered


def _behavior_to_internal(behavior: JSONObject) -> JSONObject:
    return {
        "ScaleUp": _rules_to_internal(behavior.get("scaleUp")),
        "ScaleDown": _rules_to_internal(behavior.get("scaleDown")),
    }


def _rules_to_internal(rules: JSONObject | None) -> JSONObject | None:
    if rules is None:
        return None
    policies = rules.get("policies")
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": policies
        and [
            {"Type": policy.get("type"), "Value": policy.get("value"), "PeriodSeconds": policy.get("periodSeconds")}
            for policy in policies
        ],
        "Tolerance": rules.get("tolerance"),
    }


def _behavior_from_internal(text: str | None) -> JSONObject | None:
    internal = _with_names(_decoded(text), _BEHAVIOR_NAMES)
    if not isinstance(internal, dict):
        return None
    behavior = {}
    for name, internal_name in (("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")):
        rules = internal.get(internal_name)
        if rules is not None:
            if not _are_rules(rules):
                return None
            behavior[name] = _rules_from_internal(rules)
    return behavior or None


def _are_rules(rules: JSONValue) -> bool:
    """Return whether the fields have the types of scaling rules."""
    if not isinstance(rules, dict) or not isinstance(rules.get("Policies") or [], list):
        return False
    return (
        _is_whole(rules.get("StabilizationWindowSeconds") or 0)
        and isinstance(rules.get("SelectPolicy") or "", str)
        and (rules.get("Tolerance") is None or _is_quantity(rules["Tolerance"]))
        and all(
            isinstance(policy, dict)
            and isinstance(policy.get("Type", ""), str)
            and _is_whole(policy.get("Value", 0))
            and _is_whole(policy.get("PeriodSeconds", 0))
            for policy in rules.get("Policies") or []
        )
    )


def _rules_from_internal(internal: JSONObject) -> JSONObject:
    rules: JSONObject = {}
    _put(rules, "stabilizationWindowSeconds", internal.get("StabilizationWindowSeconds"))
    _put(rules, "selectPolicy", internal.get("SelectPolicy"))
    if internal.get("Policies"):
        rules["policies"] = [
            {
                "type": policy.get("Type", ""),
                "value": policy.get("Value", 0),
                "periodSeconds": policy.get("PeriodSeconds", 0),
            }
            for policy in internal["Policies"]
        ]
    _put(rules, "tolerance", internal.get("Tolerance"))
    return rules


def _objects(text: str | None) -> list[JSONObject]:
    """Return the objects of an annotation's JSON list; an empty list if any field has a wrong type."""
    value = _with_names(_decoded(text), _METRIC_NAMES)
    return value if isinstance(value, list) and all(map(_fits, value)) else []


#: Fields whose values are objects: the sources of a metric, and the described object.
_PARTS = ("object", "pods", "resource", "containerResource", "external", "target")


def _fits(item: JSONValue, depth: int = 3) -> bool:
    """Return whether the known fields of an object have their types, or are null; unknown fields are ignored."""
    if not isinstance(item, dict) or not depth:
        return False
    for name, value in item.items():
        if value is None:
            continue
        if name in _PARTS:
            if not _fits(value, depth - 1):
                return False
        elif name in _CHECKS and not _CHECKS[name](value):
            return False
    return True


def _is_text(value: JSONValue) -> bool:
    return isinstance(value, str)


def _is_whole(value: JSONValue) -> bool:
    """Return whether a value is an C{int32}."""
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31


def _is_quantity(value: JSONValue) -> bool:
    """Return whether a value is a quantity; decoding has converted numbers to texts."""
    if not isinstance(value, str):
        return False
    try:
        Quantity.parse(value)
    except ValueError:
        return False
    return True


def _is_time(value: JSONValue) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _is_selector(value: JSONValue) -> bool:
    if not isinstance(value, dict):
        return False
    labels, requirements = value.get("matchLabels") or {}, value.get("matchExpressions") or []
    if not isinstance(labels, dict) or not isinstance(requirements, list):
        return False
    return all(map(_is_text, labels.values())) and all(
        isinstance(one, dict)
        and _is_text(one.get("key", ""))
        and _is_text(one.get("operator", ""))
        and isinstance(one.get("values") or [], list)
        and all(map(_is_text, one.get("values") or []))
        for one in requirements
    )


#: Quantity fields of both annotation formats.
_QUANTITIES = frozenset(
    ("targetValue", "targetAverageValue", "averageValue", "currentValue", "currentAverageValue", "Tolerance")
)

#: Type checks of fields of the metrics and conditions in annotations.
_CHECKS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("type", "status", "reason", "message"), _is_text),
    **dict.fromkeys(("name", "metricName", "container", "kind", "apiVersion"), _is_text),
    **dict.fromkeys(("targetAverageUtilization", "currentAverageUtilization", "observedGeneration"), _is_whole),
    **dict.fromkeys(_QUANTITIES, _is_quantity),
    **dict.fromkeys(("selector", "metricSelector"), _is_selector),
    "lastTransitionTime": _is_time,
}


def _names(*names: str) -> dict[str, str]:
    return {name.lower(): name for name in names}


_BEHAVIOR_NAMES = _names(
    *("ScaleUp", "ScaleDown", "StabilizationWindowSeconds", "SelectPolicy", "Policies", "Type", "Value"),
    *("PeriodSeconds", "Tolerance"),
)
_METRIC_NAMES = _names(*_PARTS, *_CHECKS, "matchLabels", "matchExpressions", "key", "operator", "values")


def _with_names(value: JSONValue, names: dict[str, str], depth: int = 10) -> JSONValue:
    """
    Return the value with field names in their canonical case: C{encoding/json} ignores case, and the last name wins.

    @param names: The canonical names by names in lower case.
    @param depth: Maximum depth of decoding, more than any type has.
    """
    if isinstance(value, list) and depth:
        return [_with_names(item, names, depth - 1) for item in value]
    if not isinstance(value, dict) or not depth:
        return value
    read: JSONObject = {}
    for key, item in value.items():
        name: str = names.get(key.lower()) or key
        if name == "matchLabels":
            read[name] = item
        else:
            read[name] = _canonical(item) if name in _QUANTITIES else _with_names(item, names, depth - 1)
    return read


def _canonical(value: JSONValue) -> JSONValue:
    """Return a quantity, which may be a JSON number, as Go prints it; the value itself if it is not a quantity."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return str(Quantity.parse(value if isinstance(value, str) else orjson.dumps(value).decode()))
        except ValueError:
            pass
    return value


def _decoded(text: str | None) -> JSONValue:
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _go_json(value: JSONValue) -> str:
    """Return JSON as Go writes it, with HTML characters escaped."""
    text = orjson.dumps(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _some(source: JSONObject, *names: str) -> JSONObject:
    return {name: source[name] for name in names if name in source}


def _put(target: JSONObject, name: str, value: JSONValue) -> None:
    if value is not None:
        target[name] = value


def _with_annotations(obj: JSONObject, annotations: dict[str, str]) -> JSONObject:
    metadata = {**obj["metadata"], "annotations": annotations}
    if not annotations:
        del metadata["annotations"]
    return {**obj, "metadata": metadata}
