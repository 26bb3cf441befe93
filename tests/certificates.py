"""Client certificates of all kinds, for tests of authentication."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from OpenSSL import crypto

UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
NOW = datetime.now(UTC)


def subject(*names: str, organizations: tuple[str, ...] = (), uids: tuple[str, ...] = ()) -> x509.Name:
    """Return a subject with these common names."""
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations),
            *(x509.NameAttribute(UID, one, _validate=False) for one in uids),
            *(x509.NameAttribute(NameOID.COMMON_NAME, one) for one in names),
        ]
    )


@frozen
class Issued:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Any

    @property
    def pem(self) -> bytes:
        """Return the certificate in PEM."""
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(
        self,
        name: x509.Name,
        *,
        authority: bool = False,
        begins: timedelta = timedelta(hours=-1),
        ends: timedelta = timedelta(hours=1),
        purpose: Any = ExtendedKeyUsageOID.CLIENT_AUTH,
    ) -> Issued:
        """Issue a certificate signed by this one."""
        return _made(name, self, authority, begins, ends, purpose)


def root(name: str = "root") -> Issued:
    """Return a self-signed authority."""
    return _made(subject(name), None, True, timedelta(hours=-1), timedelta(hours=1), None)


def _made(
    name: x509.Name, issuer: Issued | None, authority: bool, begins: timedelta, ends: timedelta, purpose: Any
) -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.certificate.subject if issuer else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + begins)
        .not_valid_after(NOW + ends)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if purpose is not None and not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    return Issued(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


class Request:
    """
    A request on a connection with client certificates.

    @ivar connection: The request itself, which is also its connection.
    """

    def __init__(self, *shown: Issued, **fields: str | list[str]) -> None:
        self._shown = [crypto.X509.from_cryptography(one.certificate) for one in shown]
        self.asked = 0
        self.remembered: dict[object, Any] = {}
        self.connection = self
        self.fields = {
            name.replace("_", "-").encode(): [
                one.encode("latin-1") for one in ([value] if isinstance(value, str) else value)
            ]
            for name, value in fields.items()
        }

    def peer_certificates(self) -> list[crypto.X509]:
        """Return the client certificates, as L{kubetwist.http.transport.RequestTransport} does."""
        self.asked += 1
        return self._shown
