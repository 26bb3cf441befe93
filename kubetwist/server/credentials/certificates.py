"""
Keys and certificates of a certificate authority.

Keys are ECDSA on P-256, which are generated quickly. All data are PEM.
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

AUTHORITY_LIFETIME = timedelta(days=3650)
CERTIFICATE_LIFETIME = timedelta(days=365)
#: Part of its lifetime after which a certificate is renewed, as by kubelets and cert-manager.
RENEWED_AFTER = 2 / 3
#: Tolerance for different clocks.
_BACKDATED = timedelta(minutes=5)


def current_time() -> datetime:
    """Return the time that decides about validity: the time of the machine, as for clients."""
    return datetime.now(UTC)


def renewal_time(certificate: x509.Certificate) -> datetime:
    """Return the time from which on a certificate is to be renewed."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return begin + (end - begin) * RENEWED_AFTER


class BadCertificate(ValueError):
    """A certificate or key cannot be used; the text is the reason."""


@frozen
class CertKeyPair:
    """
    A certificate and its key.

    @ivar certificate: PEM. Further certificates may precede or follow it: the chain, or other authorities.
    """

    certificate: bytes
    key: bytes

    def parsed(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """
        Parse both, and return the certificate of the key.

        @raise BadCertificate: They cannot be parsed, or do not match.
        """
        try:
            certificates = x509.load_pem_x509_certificates(self.certificate)
            key = load_pem_private_key(self.key, None)
        except (ValueError, TypeError) as error:
            raise BadCertificate("it is damaged") from error
        for certificate in certificates:
            if certificate.public_key() == key.public_key():
                return certificate, key  # type: ignore[return-value] # keys of other types work, too
        raise BadCertificate("certificate and key do not match")


@frozen
class CertConfig:
    """The subject and the usages of a certificate."""

    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()
    server: bool = False


class CertificateAuthority:
    """
    Issuer of certificates.

    @ivar pair: Its certificate and key; with other authorities that clients trust, too, during a rotation.
    @ivar chain: PEM of its certificate by the previous authority: presented with issued certificates, so that peers
        that trust only the previous one can verify them. Empty without a rotation.
    @raise BadCertificate: The certificate is not one of an authority.
    """

    def __init__(self, pair: CertKeyPair, chain: bytes = b"") -> None:
        self.pair = pair
        self.chain = chain
        self._certificate, self._key = pair.parsed()

    @property
    def certificate(self) -> bytes:
        """Return the certificate alone, as PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def _key_identifier(self) -> x509.AuthorityKeyIdentifier:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    def cross_sign(self, other: CertificateAuthority) -> bytes:
        """Return a certificate of this authority for the subject and key of another one, as PEM."""
        builder = _authority_builder(other._certificate.subject, other._key.public_key())
        end = min(other._certificate.not_valid_after_utc, self._certificate.not_valid_after_utc)
        builder = (
            builder.issuer_name(self._certificate.subject)
            .not_valid_before(current_time() - _BACKDATED)
            .not_valid_after(end)
            .add_extension(self._key_identifier(), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    @classmethod
    def make(cls, common_name: str) -> CertificateAuthority:
        """Create an authority with a new self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, "")
        now = current_time()
        certificate = (
            _authority_builder(name, key.public_key())
            .issuer_name(name)
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + AUTHORITY_LIFETIME)
            .sign(key, hashes.SHA256())
        )
        return cls(CertKeyPair(certificate.public_bytes(Encoding.PEM), private_pem(key)))

    def issue(self, subject: CertConfig) -> CertKeyPair:
        """Issue a certificate for C{subject}, with a new key; it is followed by L{chain}."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = current_time()
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
            .add_extension(self._key_identifier(), critical=False)
        )
        if subject.names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in subject.names]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        return CertKeyPair(certificate + self.chain, private_pem(key))

    def certify(
        self,
        request: x509.CertificateSigningRequest,
        extensions: Iterable[tuple[x509.ExtensionType, bool]],
        begin: datetime,
        end: datetime,
    ) -> bytes:
        """
        Issue a certificate for the public key of a certificate signing request.

        @param extensions: Further extensions, and whether each is critical.
        @param end: End of validity; the end of this authority's validity is the maximum.
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
            .add_extension(self._key_identifier(), critical=False)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def has_issued(self, certificate: bytes) -> bool:
        """
        Return whether a certificate names this authority, or a trusted previous one, as its issuer.

        @param certificate: PEM; the name of another authority, or no certificate, is L{False}.
        """
        try:
            issuer = x509.load_pem_x509_certificate(certificate).issuer
            return any(one.subject == issuer for one in x509.load_pem_x509_certificates(self.pair.certificate))
        except ValueError:
            return False

    def is_valid_for(self, pair: CertKeyPair, subject: CertConfig) -> bool:
        """Return whether a certificate can be reused: issued by this authority, for all names, not due for renewal."""
        try:
            certificate, _ = pair.parsed()
            certificate.verify_directly_issued_by(self._certificate)
        except Exception:
            return False
        if current_time() >= renewal_time(certificate):
            return False
        if certificate.subject != _name(subject.common_name, subject.organization):
            return False
        return not subject.names or set(subject.names) <= set(alternative_names(certificate))


def _authority_builder(subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def subject_of(certificate: x509.Certificate) -> CertConfig:
    """Return the subject and the usages of a certificate that an authority of this module issued."""

    def value(oid: x509.ObjectIdentifier) -> str:
        return "".join(str(one.value) for one in certificate.subject.get_attributes_for_oid(oid))

    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return CertConfig(
        value(NameOID.COMMON_NAME),
        value(NameOID.ORGANIZATION_NAME),
        tuple(alternative_names(certificate)),
        server=ExtendedKeyUsageOID.SERVER_AUTH in usage,
    )


def alternative_names(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses of a certificate."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = extension.get_values_for_type(x509.IPAddress)
    return [*extension.get_values_for_type(x509.DNSName), *map(str, addresses)]


def service_account_key() -> tuple[bytes, bytes]:
    """Return a new private key and its public key: RSA, which all verifiers of such tokens support."""
    key = take_key()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private_pem(key), public


def private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    """Encode a key without a password."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def serving_names(
    host_name: str, service_networks: Sequence[str], addresses: Iterable[str], external: str = ""
) -> tuple[str, ...]:
    """
    Return the names and addresses of the server, for its certificate.

    @param addresses: The listening and advertised addresses; C{""} and unspecified ones are ignored.
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
