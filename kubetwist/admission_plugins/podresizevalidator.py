"""PodResizeValidator: rejects resizes of pods beyond the allocatable resources of their node."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..api.quantity import Quantity
from ..interfaces import IValidatingAdmission
from ..registry.core.pod.resources import pod_resources

#: The compared resources, each with the power of ten of the quantities in error texts.
_COMPARED: Final = (("cpu", -3), ("memory", 0))
_ZERO: Final = Quantity.parse("0")
_OS: Final = "kubernetes.io/os"


@implementer(IValidatingAdmission)
@frozen
class PodResizeValidator:
    """See kubernetes, C{plugin/pkg/admission/podresize/admission.go}."""

    name: ClassVar[str] = "PodResizeValidator"
    resources: ClassVar[tuple[str, ...]] = ("pods/resize",)

    def handles(self, operation: str) -> bool:
        """Return true for UPDATE."""
        return operation == "UPDATE"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        pod, old = attributes.object, attributes.old_object
        assert pod is not None and old is not None
        spec = pod["spec"]
        name = spec.get("nodeName")
        if not name or spec == old["spec"]:
            return
        node = attributes.context.get_decoded("", "nodes", "", name)
        if node is None:
            raise attributes.forbidden(f"node {quoted(name)} not found")
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        requested = pod_resources(spec, "requests")
        problems = []
        for resource, exponent in _COMPARED:
            request = requested.get(resource, _ZERO).scaled_value(exponent)
            capacity = Quantity.parse(allocatable.get(resource, "0")).scaled_value(exponent)
            if request > capacity:
                problems.append(f"{resource}, requested: {request}, allocatable: {capacity}")
        if problems:
            raise attributes.forbidden(f"Node didn't have enough allocatable resources: {'; '.join(problems)}")
        system = (node["metadata"].get("labels") or {}).get(_OS) or ""
        if system != "linux":
            message = f"pod resize is only supported on linux nodes, node {quoted(name)} is {quoted(system)}"
            raise attributes.forbidden(message)
