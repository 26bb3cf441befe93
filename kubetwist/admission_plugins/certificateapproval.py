"""CertificateApproval: approving a CertificateSigningRequest requires the permission C{approve} on its signer."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..interfaces import IValidatingAdmission
from .authorization import is_authorized_for_signer_name


@implementer(IValidatingAdmission)
@frozen
class CertificateApproval:
    """See kubernetes, C{plugin/pkg/admission/certificates/approval/admission.go}."""

    name: ClassVar[str] = "CertificateApproval"
    resources: ClassVar[tuple[str, ...]] = ("certificatesigningrequests.certificates.k8s.io/approval",)

    def handles(self, operation: str) -> bool:
        """Return true for UPDATE: approval is a subresource."""
        return operation == "UPDATE"

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: uses the signer of the stored request, not of the update."""
        old = attributes.old_object
        assert old is not None
        signer = old["spec"].get("signerName") or ""
        if not await is_authorized_for_signer_name(attributes, "approve", signer):
            raise attributes.forbidden(f"user not permitted to approve requests with signerName {quoted(signer)}")
