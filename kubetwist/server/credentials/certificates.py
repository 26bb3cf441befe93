"""
Keys and certificates: an authority, and what it issues.

Keys are ECDSA on P-256, which are made in no time. Everything is PEM.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .keygeneration import take_key

AUTHORITY_LIFE = timedelta(days=3650)
CERTIFICATE_LIFETIME = timedelta(days=365)
#: What is left of a life when a certificate is issued anew.
RENEW_BEFORE = timedelta(days=30)
#: Clocks differ.
_BACKDATED = timedelta(minutes=5)


class BadCertificate(ValueError):
    """A certificate or key cannot be used; the text says why."""


@frozen
class CertKeyPair:
    """A certificate and its key."""

    certificate: bytes
    key: bytes

    def parsed(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """
        Both, checked against each other.

        @raise BadCertificate: They do not parse, or do not belong together.
        """
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate)
            key = load_pem_private_key(self.key, None)
        except (ValueError, TypeError) as error:
            raise BadCertificate("it is damaged") from error
        if certificate.public_key() != key.public_key():
            raise BadCertificate("certificate and key do not match")
        return certificate, key  # type: ignore[return-value]


@frozen
class CertConfig:
    """Whom a certificate names, and what for."""

    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()
    server: bool = False


class CertificateAuthority:
    """
    Issues certificates.

    @raise BadCertificate: The pair is none of an authority.
    """

    def __init__(self, pair: CertKeyPair) -> None:
        self.pair = pair
        self._certificate, self._key = pair.parsed()

    @classmethod
    def make(cls, common_name: str) -> CertificateAuthority:
        """A new one, which vouches for itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, "")
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(CertKeyPair(certificate.public_bytes(Encoding.PEM), private_pem(key)))

    def issue(self, subject: CertConfig) -> CertKeyPair:
        """A certificate for C{subject}, with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if subject.server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject.common_name, subject.organization))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(min(now + CERTIFICATE_LIFETIME, self._certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._certificate.public_key()),  # type: ignore[arg-type]
                critical=False,
            )
        )
        if subject.names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in subject.names]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        return CertKeyPair(certificate.public_bytes(Encoding.PEM), private_pem(key))

    def certify(
        self,
        request: x509.CertificateSigningRequest,
        extensions: Iterable[tuple[x509.ExtensionType, bool]],
        begin: datetime,
        end: datetime,
    ) -> bytes:
        """
        A certificate for somebody else's key, as a request wants it.

        @param extensions: What it says besides, and whether who does not understand it must not accept it.
        @param end: It does not outlive this authority.
        """
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(min(end, self._certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._certificate.public_key()),  # type: ignore[arg-type]
                critical=False,
            )
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def is_valid_for(self, pair: CertKeyPair, subject: CertConfig) -> bool:
        """Whether what was issued once serves still: ours, for all the names, not about to expire."""
        try:
            certificate, _ = pair.parsed()
            certificate.verify_directly_issued_by(self._certificate)
        except Exception:
            return False
        if certificate.not_valid_after_utc < datetime.now(UTC) + RENEW_BEFORE:
            return False
        if certificate.subject != _name(subject.common_name, subject.organization):
            return False
        return not subject.names or set(subject.names) <= set(alternative_names(certificate))


def alternative_names(certificate: x509.Certificate) -> list[str]:
    """The host names and addresses that a certificate is for."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = extension.get_values_for_type(x509.IPAddress)
    return [*extension.get_values_for_type(x509.DNSName), *map(str, addresses)]


def service_account_key() -> tuple[bytes, bytes]:
    """A new private key, and its public one; of RSA, which everybody who verifies such tokens has to know."""
    key = take_key()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private_pem(key), public


def private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    """A key without a password."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def serving_names(
    host_name: str, service_networks: Sequence[str], addresses: Iterable[str], external: str = ""
) -> tuple[str, ...]:
    """
    Under what names and addresses the server is reached.

    @param addresses: Those it listens on and advertises; C{""} and unspecified ones do not count.
    """
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
    names += ["localhost", host_name.lower(), external]
    numbers = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    numbers += [ipaddress.ip_network(network)[1] for network in service_networks]
    numbers += [ipaddress.ip_address(address) for address in addresses if address]
    usable = [name for name in names if name and name.isascii() and len(name) < 254]
    return tuple(dict.fromkeys([*usable, *(str(number) for number in numbers if not number.is_unspecified)]))


def _name(common_name: str, organization: str) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
