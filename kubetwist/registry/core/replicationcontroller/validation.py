"""Validation of ReplicationControllers; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from ....api.errors import FieldError, invalid, required
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, not_negative
from ..pod.validation.options import PodValidationOptions
from ..pod.validation.template import always_restarts, validate_template

_BEYOND: Final = "cannot be greater than status.replicas"


def check_within_replicas(status: JSONObject, names: tuple[str, ...], errors: ErrorList) -> None:
    """Check that numbers in a status are not greater than C{replicas}."""
    replicas = status.get("replicas") or 0
    for name in names:
        count = status.get(name) or 0
        if count > replicas:
            errors.append(invalid(f"status.{name}", count, _BEYOND))


def validate_replica_set_status(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of the numbers in a status."""
    errors: ErrorList = []
    status = obj.get("status") or {}
    names = (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "terminatingReplicas",
        "observedGeneration",
    )
    for name in names:
        not_negative(status.get(name), f"status.{name}", errors)
    check_within_replicas(status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), errors)
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        text = "cannot be greater than readyReplicas"
        errors.append(invalid("status.availableReplicas", status.get("availableReplicas") or 0, text))
    return errors


def validate_replication_controller(obj: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Return the validation errors of a ReplicationController."""
    errors: ErrorList = []
    spec = obj["spec"]
    not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds", errors)
    selector, template = spec.get("selector"), spec.get("template")
    if not selector:
        errors.append(required("spec.selector"))
    not_negative(spec.get("replicas"), "spec.replicas", errors)
    if template is None:
        errors.append(required("spec.template"))
        return errors
    template_labels = (template.get("metadata") or {}).get("labels")
    labels = template_labels or {}
    if selector and any(labels.get(key) != value for key, value in selector.items()):
        text = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", template_labels, text))
    validate_template(template, "spec.template", errors, options)
    always_restarts(template.get("spec") or {}, "spec.template", "ReplicationController", errors)
    return errors
