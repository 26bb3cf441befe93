"""NodeDeclaredFeatureValidator: rejects pod updates that need features which the node does not declare."""

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

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext


@implementer(IValidatingAdmission)
@frozen
class NodeDeclaredFeatureValidator:
    """
    See kubernetes, C{plugin/pkg/admission/nodedeclaredfeatures/admission.go}.

    @ivar active: Whether the feature gate NodeDeclaredFeatures is enabled.
    """

    name: ClassVar[str] = "NodeDeclaredFeatureValidator"
    resources: ClassVar[tuple[str, ...]] = ("pods", "pods/resize")

    active: bool = True

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> NodeDeclaredFeatureValidator:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(server.features.enabled("NodeDeclaredFeatures"))

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
            message = (
                f"pod update requires features {', '.join(missing)} which are not available on node {quoted(name)}"
            )
            raise attributes.forbidden(message)


def needed_features(pod: JSONObject, old: JSONObject) -> Iterator[str]:
    """Return the names of the features that a node needs for an update of one of its pods."""
    new_spec, old_spec = pod["spec"], old["spec"]
    if (old.get("status") or {}).get("qosClass") == "Guaranteed" and _cpus(new_spec) != _cpus(old_spec):
        yield "GuaranteedQoSPodCPUResize"
    if _pod_level_resources(new_spec) != _pod_level_resources(old_spec):
        yield "InPlacePodLevelResourcesVerticalScaling"


def _cpus(spec: JSONObject) -> list[Quantity]:
    """Return the CPU request of each container."""
    zero = Quantity.parse("0")
    containers = spec.get("containers") or ()
    return [amounts((one.get("resources") or {}).get("requests")).get("cpu", zero) for one in containers]


def _pod_level_resources(spec: JSONObject) -> dict[str, object] | None:
    """Return the pod-level resources; L{None} without them."""
    resources = spec.get("resources")
    if resources is None:
        return None
    return {field: amounts(resources.get(field)) for field in ("requests", "limits")}
