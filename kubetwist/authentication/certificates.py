"""Authentication by client certificates: the common name is the user name, the organizations are the groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from cryptography.x509 import load_pem_x509_certificate
from OpenSSL import crypto

from zope.interface import implementer

from ..api.featuregates import FeatureGates
from ..api.flagvalues import FlagValues
from ..api.resource import UserInfo
from ..api.times import posix_now
from ..interfaces import IAuthenticator
from ..metrics.registry import Histogram
from .errors import AuthenticationFailed
from .union import add_authenticated_group

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, ObjectIdentifier

    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_UID = "1.3.6.1.4.1.57683.2"


class InvalidCABundle(ValueError):
    """A CA bundle cannot be used; the text has the reason."""


class CertPool:
    """
    A set of CA certificates (C{x509.CertPool}).

    @ivar store: The OpenSSL store that verifies certificates.
    @ivar certificates: The CA certificates, L{cryptography.x509.Certificate}, in the order of the file.
    """

    def __init__(self, content: bytes, *, needed: bool = True) -> None:
        """
        @param content: The certificates in PEM.
        @param needed: Whether an empty pool is an error.
        @raise InvalidCABundle: There is no certificate, or a certificate cannot be decoded.
        """
        self.store = crypto.X509Store()
        # A certificate in the file is trusted, also if it is not self-signed.
        self.store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)
        begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
        parts = [part for part in content.split(end) if begin in part]
        try:
            self.certificates = [load_pem_x509_certificate(part[part.index(begin) :] + end) for part in parts]
            for certificate in self.certificates:
                self.store.add_cert(crypto.X509.from_cryptography(certificate))
        except (crypto.Error, ValueError) as error:
            raise InvalidCABundle("cannot decode a certificate") from error
        if needed and not parts:
            raise InvalidCABundle("no certificate found")


@frozen(eq=False)
class _PeerCertificate:
    """
    The verified client certificate of a connection.

    @ivar pool: The pool that it was verified with.
    @ivar certificate: The certificate; L{None} if there is none or it is invalid.
    @ivar expires: The expiration time, in seconds since the epoch.
    @ivar failure: Why the certificate is invalid; L{None} otherwise.
    @ivar user: The user of the certificate.
    """

    pool: CertPool
    certificate: Any = None
    expires: float = 0.0
    failure: str | None = None
    user: UserInfo | None = None


#: Histogram buckets of the remaining validity of certificates, in seconds: half an hour to a year.
_EXPIRATION_BUCKETS: Final = (
    *(0.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0, 172800.0, 345600.0, 604800.0),
    *(2592000.0, 7776000.0, 15552000.0, 31104000.0),
)


class ClientCAProvider:
    """
    Verifies client certificates against a CA pool that can change while the server runs.

    A connection is verified once, and again after the pool has changed
    (C{dynamiccertificates.CAContentProvider}).

    @ivar pool: The current pool.
    @ivar flag: The flag that names the CA files.
    @ivar listeners: Called after the pool has changed.
    @ivar expiration_seconds: Histogram of the remaining validity of certificates at their use, in seconds.
    """

    def __init__(
        self,
        pool: CertPool,
        user_conversion: Callable[[Certificate], UserInfo | None] = lambda certificate: None,
        flag: str = "",
    ) -> None:
        """
        @param pool: The initial pool.
        @param user_conversion: Returns the user of a verified certificate, or raises L{AuthenticationFailed}.
        @param flag: The flag that names the CA files.
        """
        self.pool = pool
        self.flag = flag
        self.listeners: list[Callable[[], object]] = []
        self._user_conversion = user_conversion
        self.expiration_seconds = Histogram(_EXPIRATION_BUCKETS)

    def set_pool(self, pool: CertPool) -> None:
        """Replace the pool."""
        self.pool = pool
        for listener in self.listeners:
            listener()

    def verify_peer(self, request: IAuthenticationRequest) -> _PeerCertificate:
        """
        Verify the client certificate of the connection of a request.

        @raise AuthenticationFailed: The certificate is invalid, expired, or not issued by a CA of the pool.
        """
        remembered = request.connection.remembered
        peer: _PeerCertificate | None = remembered.get(self)
        if peer is None or peer.pool is not self.pool:
            peer = remembered[self] = self._verify(request.connection.peer_certificates())
        if peer.failure is not None:
            raise AuthenticationFailed(peer.failure)
        if peer.certificate is not None:
            remaining = peer.expires - posix_now()
            if remaining < 0:
                raise AuthenticationFailed("the client certificate has expired")
            self.expiration_seconds.observe(remaining)
        return peer

    def _verify(self, presented: Sequence[crypto.X509]) -> _PeerCertificate:
        if not presented:
            return _PeerCertificate(self.pool)
        leaf, *chain = presented
        certificate = leaf.to_cryptography()
        try:
            crypto.X509StoreContext(self.pool.store, leaf, chain).verify_certificate()
            if not _has_client_auth_usage(certificate):
                raise AuthenticationFailed("certificate is not valid for client authentication")
            user = self._user_conversion(certificate)
        except (crypto.X509StoreContextError, AuthenticationFailed, ValueError) as error:
            return _PeerCertificate(
                self.pool, failure=f"verifying certificate {_describe(certificate)} failed: {error}"
            )
        return _PeerCertificate(self.pool, certificate, certificate.not_valid_after_utc.timestamp(), user=user)


@implementer(IAuthenticator)
class X509Authenticator:
    """Authenticates client certificates."""

    def __init__(self, authorities: ClientCAProvider) -> None:
        self._authorities = authorities

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        return self._authorities.verify_peer(request).user


def common_name_user_conversion(certificate: Certificate, *, with_uid: bool = True) -> UserInfo | None:
    """
    Return the user of a verified certificate; L{None} without a common name.

    @param with_uid: Whether to read the uid: the feature gate AllowParsingUserUIDFromCertAuth.
    @raise AuthenticationFailed: The certificate has several uids or an empty one.
    """
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import ObjectIdentifier
    from cryptography.x509.oid import NameOID

    names = _subject(certificate, NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None
    uids = _subject(certificate, ObjectIdentifier(_UID)) if with_uid else ()
    if len(uids) > 1:
        raise AuthenticationFailed(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if "" in uids:
        raise AuthenticationFailed("UID cannot be an empty string")
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    return add_authenticated_group(
        UserInfo(
            names[-1],
            "".join(uids),
            _subject(certificate, NameOID.ORGANIZATION_NAME),
            {CREDENTIAL_ID: (f"X509SHA256={digest}",)},
        )
    )


def common_name(certificate: Certificate) -> str:
    """Return the last common name, as in Go; C{""} without one."""
    from cryptography.x509.oid import NameOID

    return ("", *_subject(certificate, NameOID.COMMON_NAME))[-1]


def _subject(certificate: Certificate, kind: ObjectIdentifier) -> tuple[str, ...]:
    values: list[str] = []
    for attribute in certificate.subject.get_attributes_for_oid(kind):
        if not isinstance(attribute.value, str):
            raise AuthenticationFailed("an attribute of the subject is not a string")
        values.append(attribute.value)
    return tuple(values)


def _has_client_auth_usage(certificate: Certificate) -> bool:
    from cryptography.x509 import ExtendedKeyUsage, ExtensionNotFound
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usages = certificate.extensions.get_extension_for_class(ExtendedKeyUsage).value
    except ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages


def _describe(certificate: Certificate) -> str:
    """Return the description of a certificate in the reference's log: serial number, subject and authority key ID."""
    from cryptography.x509 import AuthorityKeyIdentifier, ExtensionNotFound, SubjectKeyIdentifier

    keys = []
    for kind, attribute in ((SubjectKeyIdentifier, "digest"), (AuthorityKeyIdentifier, "key_identifier")):
        try:
            number = getattr(certificate.extensions.get_extension_for_class(kind).value, attribute)
        except (ExtensionNotFound, ValueError):
            number = None
        keys.append((number or b"").hex(":").upper())
    return f"SN={certificate.serial_number}, SKID={keys[0]}, AKID={keys[1]}"


def watch_ca_files(
    server: AuthenticationContext,
    paths: Sequence[Path],
    flag: str,
    user_conversion: Callable[[Certificate], UserInfo | None] = lambda certificate: None,
) -> ClientCAProvider:
    """
    Return a provider of the CAs in files, which are read again when they change.

    @param server: The server; the provider is added to its C{client_authorities}.
    @param paths: The CA files.
    @param flag: The flag that names the files, for the log.
    @param user_conversion: Returns the user of a verified certificate.
    @raise InvalidCABundle: A file cannot be used.
    """

    def load(contents: Sequence[bytes]) -> CertPool:
        for path, content in zip(paths, contents, strict=True):
            try:
                CertPool(content)
            except InvalidCABundle as error:
                raise InvalidCABundle(f"cannot use the client CA file {path}: {error}") from error
        return CertPool(b"\n".join(contents))

    def use(pool: CertPool) -> None:
        authorities.set_pool(pool)

    try:
        authorities = ClientCAProvider(server.files.watch(paths, load, use, flag), user_conversion, flag)
    except OSError as error:
        raise InvalidCABundle(f"cannot read {error.filename}: {error.strerror}") from error
    server.client_authorities.append(authorities)
    return authorities


def read_ca_files(paths: Iterable[Path]) -> bytes:
    """
    Return the concatenated content of CA files, each of which must contain a certificate.

    @raise InvalidCABundle: A file cannot be used.
    """
    content = b""
    for path in paths:
        try:
            part = path.read_bytes()
            CertPool(part)
        except OSError as error:
            raise InvalidCABundle(f"cannot read {path}: {error.strerror}") from error
        except InvalidCABundle as error:
            raise InvalidCABundle(f"cannot use the client CA file {path}: {error}") from error
        content += part + b"\n"
    return content


def client_ca_paths(options: FlagValues) -> list[Path]:
    """Return the CA files for client certificates of users: the CA of the server, and C{--client-ca-file}."""
    server_ca = Path(options["data-dir"]) / "pki" / "ca.crt"
    return [server_ca, Path(options["client-ca-file"])] if options["client-ca-file"] else [server_ca]


def make(options: FlagValues, server: AuthenticationContext) -> X509Authenticator:
    """
    Return the authenticator of client certificates whose CAs are in L{client_ca_paths}.

    @raise InvalidCABundle: A file cannot be used.
    """
    with_uid = FeatureGates.from_options(options).enabled("AllowParsingUserUIDFromCertAuth")

    def user_conversion(certificate: Certificate) -> UserInfo | None:
        # A node can claim the address of this server. A client of its kubelet API must not authenticate here with the
        # server's own kubelet client certificate.
        credentials = server.kubelet_credentials
        if credentials is not None and credentials.is_client_certificate(certificate):
            raise AuthenticationFailed("certificate is the API server's own kubelet client certificate")
        return common_name_user_conversion(certificate, with_uid=with_uid)

    return X509Authenticator(watch_ca_files(server, client_ca_paths(options), "--client-ca-file", user_conversion))
