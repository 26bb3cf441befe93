"""RuntimeClass: sets the overhead, node selector and tolerations of a pod's RuntimeClass."""

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
        """Return true for CREATE; the class of a pod is immutable."""
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
            spec["nodeSelector"] = _merge_selectors(
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
            message = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise attributes.forbidden(message)


def _class_of(spec: JSONObject, attributes: AdmissionAttributes) -> JSONObject | None:
    name = spec.get("runtimeClassName")
    if name is None:
        return None
    if not name:
        raise APIStatusError.unknown("resource name may not be empty")
    runtime_class = attributes.context.get_decoded("node.k8s.io", "runtimeclasses", "", name)
    if runtime_class is None:
        raise attributes.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
    return runtime_class


def _mismatch(attributes: AdmissionAttributes) -> APIStatusError:
    return attributes.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def _same_amounts(one: JSONObject, other: JSONObject) -> bool:
    if one.keys() != other.keys():
        return False
    try:
        return all(Quantity.parse(value) == Quantity.parse(other[name]) for name, value in one.items())
    except ValueError:
        return False


def _merge_selectors(pod_selector: JSONObject, added: JSONObject, attributes: AdmissionAttributes) -> JSONObject:
    merged = dict(pod_selector)
    for key, value in added.items():
        if merged.setdefault(key, value) != value:
            message = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {merged[key]}"
            )
            raise attributes.forbidden(message)
    return merged
