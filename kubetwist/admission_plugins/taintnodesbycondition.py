"""TaintNodesByCondition: adds the taint C{not-ready} to new nodes."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..interfaces import IMutatingAdmission

_NOT_READY: Final = "node.kubernetes.io/not-ready"


@implementer(IMutatingAdmission)
@frozen
class TaintNodesByCondition:
    """See kubernetes, C{plugin/pkg/admission/nodetaint/admission.go}."""

    name: ClassVar[str] = "TaintNodesByCondition"
    resources: ClassVar[tuple[str, ...]] = ("nodes",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        node = attributes.object
        assert node is not None
        spec = node.setdefault("spec", {})
        taints = spec.get("taints") or []
        if any(one.get("key") == _NOT_READY and one.get("effect") == "NoSchedule" for one in taints):
            return
        spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]
