"""Validation of HorizontalPodAutoscalers; see kubernetes, C{pkg/apis/autoscaling/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from ...api.errors import FieldError, forbidden, invalid, required
from ...api.featuregates import FeatureGates
from ...api.names import validate_path_segment_name
from ...api.resource import JSONObject
from ..core.pod.validation.resources import container_resource_name
from ..generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    invalid_name,
    needed_segment,
    not_negative,
    quantity,
    unsupported,
)

#: In the order of the reference, which validates only the first source that is set.
_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TARGETS: Final = ("AverageValue", "Utilization", "Value")


def validate_autoscaler(obj: JSONObject, features: FeatureGates, old: JSONObject | None = None) -> list[FieldError]:
    """
    Validate replica limits, target, metrics and behavior.

    @param obj: The autoscaler.
    @param features: The feature gates and the release of the server.
    @param old: The stored autoscaler, some of whose errors are ignored; L{None} when it is created.
    """
    errors: ErrorList = []
    spec, before = obj["spec"], (old or {}).get("spec") or {}
    min_replicas, max_replicas = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    bound = 0 if before.get("minReplicas") == 0 or features.enabled("HPAScaleToZero") else 1
    if min_replicas is not None and min_replicas < bound:
        errors.append(invalid("spec.minReplicas", min_replicas, f"must be greater than or equal to {bound}"))
    if max_replicas < 1 and not features.since(1, 36):
        errors.append(invalid("spec.maxReplicas", max_replicas, "must be greater than 0"))
    elif not max_replicas:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif max_replicas < 0:
        errors.append(invalid("spec.maxReplicas", max_replicas, "must be greater than or equal to 1"))
    if min_replicas is not None and max_replicas < min_replicas:
        errors.append(invalid("spec.maxReplicas", max_replicas, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    _validate_reference(target, "spec.scaleTargetRef", errors)
    old_target = before.get("scaleTargetRef") or {}
    checks_versions = features.since(1, 34)
    changes = old is None or any(
        (target.get(name) or "") != (old_target.get(name) or "") for name in ("apiVersion", "kind")
    )
    if checks_versions and changes:
        grouped = target.get("kind") != "ReplicationController"
        _validate_api_version(target, "spec.scaleTargetRef.apiVersion", errors, grouped)
    versions = checks_versions and not any(_has_invalid_object(metric) for metric in before.get("metrics") or ())
    for index, metric in enumerate(spec.get("metrics") or ()):
        _validate_metric(metric, f"spec.metrics[{index}]", errors, versions)
    if min_replicas == 0 and not any(one.get("type") in ("Object", "External") for one in spec.get("metrics") or ()):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", text))
    behavior = spec.get("behavior") or {}
    for name in ("scaleUp", "scaleDown"):
        if behavior.get(name) is not None:
            _validate_rules(behavior[name], f"spec.behavior.{name}", errors)
    return errors


def _validate_reference(reference: JSONObject, path: str, errors: ErrorList) -> None:
    for name in ("kind", "name"):
        needed_segment(reference.get(name), f"{path}.{name}", errors)


def _validate_api_version(reference: JSONObject, path: str, errors: ErrorList, grouped: bool) -> None:
    version = reference.get("apiVersion") or ""
    group, slash, _ = version.partition("/")
    if version.count("/") > 1:
        errors.append(invalid(path, version, f"unexpected GroupVersion string: {version}"))
    elif grouped and not (slash and group):
        errors.append(invalid(path, version, "apiVersion must specify API group"))


def _has_invalid_object(metric: JSONObject) -> bool:
    described = (metric.get("object") or {}).get("describedObject") or {}
    return metric.get("type") == "Object" and (described.get("apiVersion") or "").count("/") > 1


def _validate_metric(metric: JSONObject, path: str, errors: ErrorList, versions: bool) -> None:
    kind = metric.get("type") or ""
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        errors.append(unsupported(f"{path}.type", kind, sorted(_SOURCES)))
    sources = [field for field in _SOURCES.values() if metric.get(field) is not None]
    if sources:
        _validate_source(metric[sources[0]], sources[0], f"{path}.{sources[0]}", errors, versions)
    source = _SOURCES.get(kind)
    if source is not None and source not in sources:
        text = "must populate information for the given metric source"
        errors.append(required(f"{path}.{source}", text))
    elif source is None:
        # The reference repeats the error.
        errors.append(unsupported(f"{path}.type", kind, sorted(_SOURCES)))
    for field in sources if len(sources) > 1 else ():
        if field != source:
            errors.append(forbidden(f"{path}.{field}", "must populate the given metric source only"))


def _validate_source(source: JSONObject, field: str, path: str, errors: ErrorList, versions: bool) -> None:
    if field in ("resource", "containerResource"):
        if not source.get("name"):
            errors.append(required(f"{path}.name", "must specify a resource name"))
        elif field == "containerResource":
            container_resource_name(source["name"], f"{path}.name", errors)
        if field == "containerResource":
            if not source.get("container"):
                errors.append(required(f"{path}.container", "must specify a container"))
            else:
                check(source["container"], f"{path}.container", dns_label, errors)
    else:
        if field == "object":
            described = source.get("describedObject") or {}
            _validate_reference(described, f"{path}.describedObject", errors)
            if versions:
                _validate_api_version(described, f"{path}.describedObject.apiVersion", errors, False)
        metric = source.get("metric") or {}
        if not metric.get("name"):
            errors.append(required(f"{path}.metric.name", "must specify a metric name"))
        else:
            for text in validate_path_segment_name(metric["name"]):
                errors.append(invalid(f"{path}.metric.name", metric["name"], text))
    target = source.get("target") or {}
    _validate_target(target, field, f"{path}.target", errors)


def _validate_target(target: JSONObject, field: str, path: str, errors: ErrorList) -> None:
    kind = target.get("type") or ""
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in _TARGETS:
        errors.append(invalid_name(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        if target.get(name) is not None and quantity(target[name]).sign() <= 0:
            errors.append(invalid(f"{path}.{name}", str(target[name]), "must be positive", "resource.Quantity"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    if field in ("resource", "containerResource"):
        if share is None and target.get("averageValue") is None:
            text = "must set either a target raw value or a target utilization"
            errors.append(required(f"{path}.averageUtilization", text))
        if share is not None and target.get("averageValue") is not None:
            text = "may not set both a target raw value and a target utilization"
            errors.append(forbidden(f"{path}.averageValue", text))
    elif field == "pods":
        if target.get("averageValue") is None:
            errors.append(required(f"{path}.averageValue", "must specify a positive target averageValue"))
    elif target.get("value") is None and target.get("averageValue") is None:
        text = "must set either a target value for metric or a per-pod target"
        if field == "object":
            text = "must set either a target value or averageValue"
        errors.append(required(f"{path}.averageValue", text))
    elif field == "external" and target.get("value") is not None and target.get("averageValue") is not None:
        text = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.value", text))


def _validate_rules(rules: JSONObject, path: str, errors: ErrorList) -> None:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None:
        if window < 0:
            text = "must be greater than or equal to zero"
            errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, text))
        if window > 3600:
            text = "must be less than or equal to 3600"
            errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, text))
    select = rules.get("selectPolicy")
    if select is not None and select not in ("Disabled", "Max", "Min"):
        errors.append(unsupported(f"{path}.selectPolicy", select, ("Disabled", "Max", "Min")))
    policies = rules.get("policies") or []
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        item_path = f"{path}.policies[{index}]"
        if policy.get("type") not in ("Percent", "Pods"):
            errors.append(unsupported(f"{item_path}.type", policy.get("type") or "", ("Percent", "Pods")))
        value, period = policy.get("value") or 0, policy.get("periodSeconds") or 0
        if value <= 0:
            errors.append(invalid(f"{item_path}.value", value, "must be greater than zero"))
        if period <= 0:
            errors.append(invalid(f"{item_path}.periodSeconds", period, "must be greater than zero"))
        elif period > 1800:
            errors.append(invalid(f"{item_path}.periodSeconds", period, "must be less than or equal to 1800"))
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity(tolerance).sign() < 0:
        errors.append(invalid(f"{path}.tolerance", str(tolerance), "must be greater than or equal to 0"))


def validate_autoscaler_status(obj: JSONObject) -> list[FieldError]:
    """Validate the replica counts."""
    errors: ErrorList = []
    for name in ("currentReplicas", "desiredReplicas"):
        not_negative((obj.get("status") or {}).get(name), f"status.{name}", errors)
    return errors
