"""CertificateSubjectRestriction: rejects requests for client certificates of the group C{system:masters}."""

from __future__ import annotations

from base64 import b64decode
from typing import ClassVar, Final

from attrs import frozen
from cryptography import x509
from cryptography.x509.oid import NameOID

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.users import MASTERS
from ..interfaces import IValidatingAdmission

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"


@implementer(IValidatingAdmission)
@frozen
class CertificateSubjectRestriction:
    """See kubernetes, C{plugin/pkg/admission/certificates/subjectrestriction/admission.go}."""

    name: ClassVar[str] = "CertificateSubjectRestriction"
    resources: ClassVar[tuple[str, ...]] = ("certificatesigningrequests.certificates.k8s.io",)

    def handles(self, operation: str) -> bool:
        """Return true for CREATE; C{spec.request} is immutable."""
        return operation == "CREATE"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        obj = attributes.object
        assert obj is not None
        if obj["spec"].get("signerName") != CLIENT_SIGNER:
            return
        try:
            request = x509.load_pem_x509_csr(b64decode(obj["spec"]["request"]))
        except ValueError as error:
            raise attributes.forbidden(f"failed to parse CSR: {error}") from error
        organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if any(one.value == MASTERS for one in organizations):
            message = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            raise attributes.forbidden(message)
