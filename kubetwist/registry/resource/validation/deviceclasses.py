"""Validation of DeviceClasses; see kubernetes, C{pkg/apis/resource/validation/validation.go}."""

from __future__ import annotations

from ....api.errors import Cause, invalid
from ....api.names import qualified_name_problems
from ....api.resource import JSONObject
from ...core.pod.validation.resources import is_extended
from ...generic.validation.fields import Causes
from .common import check_each, validate_configuration, validate_selector


def validate_device_class(obj: JSONObject, old: JSONObject | None = None) -> list[Cause]:
    """Selectors, configuration, and the resource that stands for the class."""
    causes: Causes = []
    spec = obj["spec"]
    stored = old is not None and (spec.get("config") or []) == (old["spec"].get("config") or [])

    def config(one: JSONObject, here: str, causes: Causes) -> None:
        validate_configuration(one, here, causes, stored)

    check_each(spec.get("selectors"), validate_selector, "spec.selectors", causes)
    check_each(spec.get("config"), config, "spec.config", causes)
    name = spec.get("extendedResourceName")
    if name is not None and (not is_extended(name) or qualified_name_problems(name)):
        causes.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return causes
