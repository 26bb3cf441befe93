"""PodTopologyLabels: copies the zone and region labels of the node to a pod when it is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.jsontypes import JSONValue
from ..interfaces import IMutatingAdmission

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

#: The labels that are copied.
LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


@implementer(IMutatingAdmission)
@frozen
class PodTopologyLabels:
    """
    See kubernetes, C{plugin/pkg/admission/podtopologylabels/admission.go}.

    @ivar active: Whether the feature gate PodTopologyLabelsAdmission is enabled.
    """

    name: ClassVar[str] = "PodTopologyLabels"
    resources: ClassVar[tuple[str, ...]] = (
        "pods",
        "pods/binding",
    )

    active: bool = True

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodTopologyLabels:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(server.features.enabled("PodTopologyLabelsAdmission"))

    def handles(self, operation: str) -> bool:
        """Return true for CREATE: of bindings, and of pods created with a node."""
        return self.active and operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        obj = attributes.object
        assert obj is not None
        if attributes.subresource:
            target = obj.get("target") or {}
            node = target.get("name") if target.get("kind") in ("Node", None, "") else None
        else:
            node = obj["spec"].get("nodeName")
        node_object = attributes.context.get_decoded("", "nodes", "", node) if node else None
        if node_object is None:
            return
        node_labels = node_object["metadata"].get("labels") or {}
        added = {label: node_labels[label] for label in LABELS if label in node_labels}
        if added:
            obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), **added}
