"""Pods change only in ways that their node says it can carry out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.quantity import Quantity
from ..api.resource import JSONObject
from ..interfaces import IValidatingAdmission
from ..registry.core.pod.resources import amounts
from .pluginconfig import minor

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext


@implementer(IValidatingAdmission)
@frozen
class NodeDeclaredFeatureValidator:
    """
    See kubernetes, C{plugin/pkg/admission/nodedeclaredfeatures/admission.go}.

    @ivar active: Whether the release has it, which is from 1.36 on.
    """

    name: ClassVar[str] = "NodeDeclaredFeatureValidator"
    resources: ClassVar[tuple[str, ...]] = ("pods", "pods/resize")

    active: bool = True

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> NodeDeclaredFeatureValidator:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(minor(server) >= 36)

    def handles(self, operation: str) -> bool:
        """Return true for UPDATE."""
        return self.active and operation == "UPDATE"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        pod, old = attributes.object, attributes.old_object
        assert pod is not None and old is not None
        name = pod["spec"].get("nodeName")
        if not name or pod["spec"] == old["spec"]:
            return
        needed = list(needed_features(pod, old))
        if not needed:
            return
        node = attributes.context.get_decoded("", "nodes", "", name)
        if node is None:
            raise attributes.forbidden(f"node {quoted(name)} not found")
        declared = (node.get("status") or {}).get("declaredFeatures") or ()
        missing = [feature for feature in needed if feature not in declared]
        if missing:
            why = f"pod update requires features {', '.join(missing)} which are not available on node {quoted(name)}"
            raise attributes.forbidden(why)


def needed_features(pod: JSONObject, old: JSONObject) -> Iterator[str]:
    """Return the features, by their names, that a node needs for this change of one of its pods."""
    new_spec, old_spec = pod["spec"], old["spec"]
    if (old.get("status") or {}).get("qosClass") == "Guaranteed" and _cpus(new_spec) != _cpus(old_spec):
        yield "GuaranteedQoSPodCPUResize"
    if _whole(new_spec) != _whole(old_spec):
        yield "InPlacePodLevelResourcesVerticalScaling"


def _cpus(spec: JSONObject) -> list[Quantity]:
    """Return the CPU that each container asks for."""
    zero = Quantity.parse("0")
    containers = spec.get("containers") or ()
    return [amounts((one.get("resources") or {}).get("requests")).get("cpu", zero) for one in containers]


def _whole(spec: JSONObject) -> dict[str, object] | None:
    """Return the resources of the pod as a whole."""
    resources = spec.get("resources")
    if resources is None:
        return None
    return {part: amounts(resources.get(part)) for part in ("requests", "limits")}
