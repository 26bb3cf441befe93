"""Gives pods what the runtime class they name asks for: overhead, and nodes that have such a runtime."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.frozen import mutable_copy
from ..api.quantity import Quantity
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from .tolerations import merge_tolerations


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class RuntimeClass:
    """See kubernetes, C{plugin/pkg/admission/runtimeclass/admission.go}."""

    name: ClassVar[str] = "RuntimeClass"
    resources: ClassVar[tuple[str, ...]] = ("pods",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE; the class of a pod never changes."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        assert attributes.object is not None
        spec = attributes.object["spec"]
        runtime = _class_of(spec, attributes)
        if runtime is None:
            return
        fixed = (runtime.get("overhead") or {}).get("podFixed")
        if fixed:
            if spec.get("overhead") and not _same_amounts(spec["overhead"], fixed):
                raise _mismatch(attributes)
            spec["overhead"] = dict(fixed)
        scheduling = runtime.get("scheduling") or {}
        if scheduling.get("nodeSelector"):
            spec["nodeSelector"] = _merged_selector(
                spec.get("nodeSelector") or {}, scheduling["nodeSelector"], attributes
            )
        if scheduling.get("tolerations"):
            spec["tolerations"] = merge_tolerations(
                spec.get("tolerations") or (), mutable_copy(scheduling["tolerations"])
            )

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: other plugins may have changed the overhead."""
        assert attributes.object is not None
        spec = attributes.object["spec"]
        runtime = _class_of(spec, attributes)
        fixed = ((runtime or {}).get("overhead") or {}).get("podFixed")
        if fixed:
            if not _same_amounts(spec.get("overhead") or {}, fixed):
                raise _mismatch(attributes)
        elif spec.get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise attributes.forbidden(why)


def _class_of(spec: JSONObject, attributes: AdmissionAttributes) -> JSONObject | None:
    name = spec.get("runtimeClassName")
    if name is None:
        return None
    if not name:
        raise APIStatusError.unknown("resource name may not be empty")
    found = attributes.context.get_decoded("node.k8s.io", "runtimeclasses", "", name)
    if found is None:
        raise attributes.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _mismatch(attributes: AdmissionAttributes) -> APIStatusError:
    return attributes.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def _same_amounts(one: JSONObject, other: JSONObject) -> bool:
    if one.keys() != other.keys():
        return False
    try:
        return all(Quantity.parse(value) == Quantity.parse(other[name]) for name, value in one.items())
    except ValueError:
        return False


def _merged_selector(own: JSONObject, added: JSONObject, attributes: AdmissionAttributes) -> JSONObject:
    merged = dict(own)
    for key, value in added.items():
        if merged.setdefault(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {merged[key]}"
            )
            raise attributes.forbidden(why)
    return merged
