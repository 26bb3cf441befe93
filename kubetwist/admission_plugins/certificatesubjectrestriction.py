"""Keeps anyone from asking for a client certificate that makes an admin of them."""

from __future__ import annotations

from base64 import b64decode
from typing import ClassVar, Final

from attrs import frozen
from cryptography import x509
from cryptography.x509.oid import NameOID

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.resource import GroupResource
from ..api.users import MASTERS
from ..interfaces import IValidatingAdmission

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"


@implementer(IValidatingAdmission)
@frozen
class CertificateSubjectRestriction:
    """See kubernetes, C{plugin/pkg/admission/certificates/subjectrestriction/admission.go}."""

    name: ClassVar[str] = "CertificateSubjectRestriction"

    def handles(self, operation: str) -> bool:
        """Creating; a request never changes."""
        return operation == "CREATE"

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        obj = attributes.object
        if attributes.resource != "certificatesigningrequests" or attributes.subresource or obj is None:
            return
        if obj["spec"].get("signerName") != CLIENT_SIGNER:
            return
        request = x509.load_pem_x509_csr(b64decode(obj["spec"]["request"]))
        organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if any(one.value == MASTERS for one in organizations):
            why = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            raise APIStatusError.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, why)
