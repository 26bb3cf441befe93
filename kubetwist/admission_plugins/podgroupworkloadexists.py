"""PodGroupWorkloadExists: rejects PodGroups whose Workload, or the template in it, does not exist."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..interfaces import IValidatingAdmission


@implementer(IValidatingAdmission)
@frozen
class PodGroupWorkloadExists:
    """See kubernetes, C{plugin/pkg/admission/podgroup/admission.go}."""

    name: ClassVar[str] = "PodGroupWorkloadExists"
    resources: ClassVar[tuple[str, ...]] = ("podgroups.scheduling.k8s.io",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE."""
        return operation == "CREATE"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        assert attributes.object is not None
        reference = ((attributes.object.get("spec") or {}).get("podGroupTemplateRef") or {}).get("workload")
        if reference is None:
            return
        name, template = reference.get("workloadName") or "", reference.get("podGroupTemplateName") or ""
        workload = attributes.context.get_decoded("scheduling.k8s.io", "workloads", attributes.namespace, name)
        if workload is None:
            raise attributes.forbidden(f"PodGroup rejected: Workload {quoted(name)} not found")
        if workload["metadata"].get("deletionTimestamp") is not None:
            raise attributes.forbidden(f"PodGroup rejected: Workload {quoted(name)} is being deleted")
        templates = (workload.get("spec") or {}).get("podGroupTemplates") or ()
        if not any(one.get("name") == template for one in templates):
            message = f"PodGroup rejected: PodGroupTemplate {quoted(template)} not found in Workload {quoted(name)}"
            raise attributes.forbidden(message)
