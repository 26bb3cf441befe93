"""Test case for CertificateSigningRequests."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from twisted.internet.defer import Deferred, maybeDeferred

from kubetwist.controllers.csr.csrsigning import CSRSigningController
from kubetwist.controllers.csr.requests import CLIENT, GROUP
from kubetwist.server.credentials.certificates import CertificateAuthority
from tests.controllers.harness import ControllerTestCase

NAME = "certificatesigningrequests"


KEY = ec.generate_private_key(ec.SECP256R1())


AUTHORITY = CertificateAuthority.make("test")


class Signing(CSRSigningController):
    """A signing controller without threads."""

    def in_thread(self, call: Callable[[], Any]) -> Deferred[Any]:
        """Call the function immediately."""
        return maybeDeferred(call)


class SigningRequestTestCase(ControllerTestCase):
    """Test case with CSRs."""

    resources = (NAME,)
    config = SimpleNamespace(data=SimpleNamespace(authority=lambda: AUTHORITY))

    def request(
        self,
        name: str,
        signer: str = CLIENT,
        common: str = "jane",
        organization: str = "",
        names: tuple[x509.GeneralName, ...] = (),
        usages: tuple[str, ...] = ("client auth",),
        **spec: Any,
    ) -> Any:
        """Create a CSR."""
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
        if organization:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pem = builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)
        return self.make(
            NAME,
            name,
            "",
            GROUP,
            spec={"request": b64encode(pem).decode(), "signerName": signer, "usages": list(usages), **spec},
        )

    def decide(self, name: str, kind: str) -> None:
        """Approve or deny a CSR."""
        condition = {"type": kind, "status": "True", "reason": "Because", "message": ""}

        def change(obj: Any) -> None:
            obj.setdefault("status", {}).setdefault("conditions", []).append(condition)

        self.change(NAME, name, change, "", GROUP, subresource="approval")

    def status(self, name: str) -> Any:
        """Return the status of a CSR."""
        return (self.find(NAME, name, "", GROUP) or {}).get("status") or {}

    def certificate(self, name: str) -> x509.Certificate:
        """Return the issued certificate."""
        return x509.load_pem_x509_certificate(b64decode(self.status(name)["certificate"]))
