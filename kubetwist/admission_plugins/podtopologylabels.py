"""PodTopologyLabels: copies the zone and region labels of the node to a pod when it is bound."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..interfaces import IMutatingAdmission

#: The labels that are copied.
LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


@implementer(IMutatingAdmission)
@frozen
class PodTopologyLabels:
    """See kubernetes, C{plugin/pkg/admission/podtopologylabels/admission.go}."""

    name: ClassVar[str] = "PodTopologyLabels"
    resources: ClassVar[tuple[str, ...]] = (
        "pods",
        "pods/binding",
    )

    def handles(self, operation: str) -> bool:
        """Return true for CREATE: of bindings, and of pods created with a node."""
        return operation == "CREATE"

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
