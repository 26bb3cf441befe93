"""Validation of PodTemplates; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from ....api.errors import Cause
from ....api.resource import JSONObject
from ...generic.validation.fields import Causes
from ..pod.validation.template import validate_template


def validate_pod_template(obj: JSONObject, old: JSONObject | None = None) -> list[Cause]:
    """A template that is an object of its own."""
    causes: Causes = []
    validate_template(obj.get("template") or {}, "template", causes)
    return causes
