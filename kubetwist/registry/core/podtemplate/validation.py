"""Validation of PodTemplates; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from ....api.errors import FieldError
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList
from ..pod.validation.options import PodValidationOptions
from ..pod.validation.template import validate_template


def validate_pod_template(obj: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Return the validation errors of a PodTemplate."""
    errors: ErrorList = []
    validate_template(obj.get("template") or {}, "template", errors, options)
    return errors
