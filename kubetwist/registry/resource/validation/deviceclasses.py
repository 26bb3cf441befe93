"""Validation of DeviceClasses; see kubernetes, C{pkg/apis/resource/validation/validation.go}."""

from __future__ import annotations

from ....api.errors import FieldError, invalid
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...core.pod.validation.resources import is_extended
from ...generic.validation.fields import ErrorList
from .common import validate_configuration, validate_list, validate_selector


def validate_device_class(obj: JSONObject, old: JSONObject | None = None) -> list[FieldError]:
    """Validate selectors, configuration, and the extended resource name of the class."""
    errors: ErrorList = []
    spec = obj["spec"]
    stored = old is not None and (spec.get("config") or []) == (old["spec"].get("config") or [])

    def config(one: JSONObject, item_path: str, errors: ErrorList) -> None:
        validate_configuration(one, item_path, errors, stored)

    validate_list(spec.get("selectors"), validate_selector, "spec.selectors", errors)
    validate_list(spec.get("config"), config, "spec.config", errors)
    name = spec.get("extendedResourceName")
    if name is not None and (not is_extended(name) or validate_qualified_name(name)):
        errors.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors
