"""LimitPodHardAntiAffinityTopology: rejects required anti-affinity whose topology is larger than a node."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..interfaces import IValidatingAdmission

_HOSTNAME: Final = "kubernetes.io/hostname"


@implementer(IValidatingAdmission)
@frozen
class LimitPodHardAntiAffinityTopology:
    """See kubernetes, C{plugin/pkg/admission/antiaffinity/admission.go}."""

    name: ClassVar[str] = "LimitPodHardAntiAffinityTopology"
    resources: ClassVar[tuple[str, ...]] = ("pods",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        pod = attributes.object
        assert pod is not None
        anti_affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            key = term.get("topologyKey") or ""
            if key != _HOSTNAME:
                message = (
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} "
                    f"but only key {_HOSTNAME} is allowed"
                )
                # The name in the object, not in the request, as in the reference: generateName is not resolved yet.
                raise APIStatusError.forbidden(attributes.group_resource, pod["metadata"].get("name") or "", message)
