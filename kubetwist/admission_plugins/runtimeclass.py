"""Gives pods what the runtime class they name asks for: overhead, and nodes that have such a runtime."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.quantity import Quantity
from ..api.resource import GroupResource, JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from .tolerations import merge_tolerations


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class RuntimeClass:
    """See kubernetes, C{plugin/pkg/admission/runtimeclass/admission.go}."""

    name: ClassVar[str] = "RuntimeClass"

    def handles(self, operation: str) -> bool:
        """Creating; the class of a pod never changes."""
        return operation == "CREATE"

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        spec = _pod_spec(attributes)
        runtime = _class_of(spec, attributes)
        if spec is None or runtime is None:
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
            spec["tolerations"] = merge_tolerations(spec.get("tolerations") or (), scheduling["tolerations"])

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: other plugins may have changed the overhead."""
        spec = _pod_spec(attributes)
        if spec is None:
            return
        runtime = _class_of(spec, attributes)
        fixed = ((runtime or {}).get("overhead") or {}).get("podFixed")
        if fixed:
            if not _same_amounts(spec.get("overhead") or {}, fixed):
                raise _mismatch(attributes)
        elif spec.get("overhead"):
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _forbidden(attributes, why)


def _pod_spec(attributes: AdmissionAttributes) -> JSONObject | None:
    if attributes.resource != "pods" or attributes.group or attributes.subresource or attributes.object is None:
        return None
    return attributes.object["spec"]  # type: ignore[no-any-return]


def _class_of(spec: JSONObject | None, attributes: AdmissionAttributes) -> JSONObject | None:
    name = (spec or {}).get("runtimeClassName")
    if not name:
        return None
    found = attributes.context.lookup("node.k8s.io", "runtimeclasses", "", name)
    if found is None:
        raise _forbidden(attributes, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _forbidden(attributes: AdmissionAttributes, why: str) -> APIStatusError:
    return APIStatusError.forbidden(GroupResource("", "pods"), attributes.name, why)


def _mismatch(attributes: AdmissionAttributes) -> APIStatusError:
    return _forbidden(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


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
            raise _forbidden(attributes, why)
    return merged
