"""CertificateSigning: setting a certificate requires the permission C{sign} on the signer of the request."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..interfaces import IValidatingAdmission
from .authorization import is_authorized_for_signer_name

#: The fields that only signers write.
_SIGNED: Final = ("certificate", "conditions")


@implementer(IValidatingAdmission)
@frozen
class CertificateSigning:
    """See kubernetes, C{plugin/pkg/admission/certificates/signing/admission.go}."""

    name: ClassVar[str] = "CertificateSigning"
    resources: ClassVar[tuple[str, ...]] = ("certificatesigningrequests.certificates.k8s.io/status",)

    def handles(self, operation: str) -> bool:
        """Return true for UPDATE: certificates are in the status."""
        return operation == "UPDATE"

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        obj, old = attributes.object, attributes.old_object
        assert obj is not None and old is not None
        new_status, old_status = obj.get("status") or {}, old.get("status") or {}
        if all((new_status.get(field) or None) == (old_status.get(field) or None) for field in _SIGNED):
            return
        signer = old["spec"].get("signerName") or ""
        if not await is_authorized_for_signer_name(attributes, "sign", signer):
            raise attributes.forbidden(f"user not permitted to sign requests with signerName {quoted(signer)}")
