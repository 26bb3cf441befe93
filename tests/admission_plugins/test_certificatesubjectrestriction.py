"""Tests for L{CertificateSubjectRestriction}."""

from __future__ import annotations

from base64 import b64encode

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.certificatesubjectrestriction import CertificateSubjectRestriction
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.classes import ClassTestCase


class SubjectTests(ClassTestCase):
    """Tests for L{CertificateSubjectRestriction}."""

    def test_masters(self) -> None:
        """Client certificates of system:masters are rejected; other signers are not restricted."""
        key = ec.generate_private_key(ec.SECP256R1())

        def request(organization: str, signer: str = "kubernetes.io/kube-apiserver-client") -> JSONObject:
            name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
            made = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
            encoded = b64encode(made.public_bytes(Encoding.PEM)).decode()
            return {"metadata": {}, "spec": {"signerName": signer, "request": encoded}}

        plugin = CertificateSubjectRestriction()
        verifyObject(IValidatingAdmission, plugin)
        resource = "certificatesigningrequests"
        self.assert_admitted(plugin.validate, resource, request("devs"))
        self.assert_admitted(plugin.validate, resource, request("system:masters", "example.com/signer"))
        message = self.error_text(plugin.validate, resource, request("system:masters"))
        self.assertIn("system:masters group is not allowed", message)
