"""Client certificates: the common name is the user, the organizations are its groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from cryptography.x509 import load_pem_x509_certificate
from OpenSSL import crypto

from zope.interface import implementer

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
    """A file of authorities can not be used; the text says why."""


class CertPool:
    """
    A set of certificate authorities.

    @ivar store: Verifies certificates.
    @ivar certificates: L{cryptography.x509.Certificate}, in the order of the file.
    """

    def __init__(self, content: bytes, *, needed: bool = True) -> None:
        """
        @param content: Their certificates, PEM.
        @param needed: Whether there must be any.
        @raise BadAuthorities: There is none, or it is damaged.
        """
        self.store = crypto.X509Store()
        # An authority is trusted for being in the file, whoever has issued it.
        self.store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)
        begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
        parts = [part for part in content.split(end) if begin in part]
        try:
            self.certificates = [load_pem_x509_certificate(part[part.index(begin) :] + end) for part in parts]
            for certificate in self.certificates:
                self.store.add_cert(crypto.X509.from_cryptography(certificate))
        except (crypto.Error, ValueError) as error:
            raise InvalidCABundle("it is damaged") from error
        if needed and not parts:
            raise InvalidCABundle("there is no certificate in it")


@frozen(eq=False)
class _PeerCertificate:
    """
    What is known of the certificate of a connection.

    @ivar pool: Which it was verified with.
    @ivar certificate: L{None} when there is none, or it is not good.
    @ivar expires: In seconds since the epoch.
    @ivar failure: Why it is not good.
    @ivar user: Whom it names.
    """

    pool: CertPool
    certificate: Any = None
    expires: float = 0.0
    failure: str | None = None
    user: UserInfo | None = None


#: Bounds of how long certificates are still good for, in seconds: from half an hour to a year.
_EXPIRATION_BUCKETS: Final = (
    *(0.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0, 172800.0, 345600.0, 604800.0),
    *(2592000.0, 7776000.0, 15552000.0, 31104000.0),
)


class ClientCAProvider:
    """
    Those whose certificates some clients must have; others can take their place while the server runs.

    Each connection is looked at once, and again when the authorities have changed.

    @ivar pool: Those of now.
    @ivar flag: By what the command line names them.
    @ivar listeners: Called when there are others.
    @ivar expiration_seconds: Seconds that certificates were still good for when they were used.
    """

    def __init__(
        self,
        pool: CertPool,
        user_conversion: Callable[[Certificate], UserInfo | None] = lambda certificate: None,
        flag: str = "",
    ) -> None:
        """
        @param user_conversion: Finds out whom a verified certificate names, or raises L{AuthenticationFailed}.
        """
        self.pool = pool
        self.flag = flag
        self.listeners: list[Callable[[], object]] = []
        self._user_conversion = user_conversion
        self.expiration_seconds = Histogram(_EXPIRATION_BUCKETS)

    def set_pool(self, pool: CertPool) -> None:
        """Trust these from now on, and no others."""
        self.pool = pool
        for listener in self.listeners:
            listener()

    def verify_peer(self, request: IAuthenticationRequest) -> _PeerCertificate:
        """
        What the client of a request has shown.

        @raise AuthenticationFailed: A certificate that is not good, or not for these authorities.
        """
        remembered = request.connection.remembered
        found: _PeerCertificate | None = remembered.get(self)
        if found is None or found.pool is not self.pool:
            found = remembered[self] = self._verify(request.connection.peer_certificates())
        if found.failure is not None:
            raise AuthenticationFailed(found.failure)
        if found.certificate is not None:
            left = found.expires - posix_now()
            if left < 0:
                raise AuthenticationFailed("the client certificate has expired")
            self.expiration_seconds.observe(left)
        return found

    def _verify(self, presented: Sequence[crypto.X509]) -> _PeerCertificate:
        if not presented:
            return _PeerCertificate(self.pool)
        shown, *chain = presented
        certificate = shown.to_cryptography()
        try:
            crypto.X509StoreContext(self.pool.store, shown, chain).verify_certificate()
            if not _has_client_auth_usage(certificate):
                raise AuthenticationFailed("it is not for clients")
            user = self._user_conversion(certificate)
        except (crypto.X509StoreContextError, AuthenticationFailed, ValueError) as error:
            return _PeerCertificate(
                self.pool, failure=f"verifying certificate {_describe(certificate)} failed: {error}"
            )
        return _PeerCertificate(self.pool, certificate, certificate.not_valid_after_utc.timestamp(), user=user)


@implementer(IAuthenticator)
class X509Authenticator:
    """Knows the users whose certificates some authorities have issued."""

    def __init__(self, authorities: ClientCAProvider) -> None:
        self._authorities = authorities

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        return self._authorities.verify_peer(request).user


def common_name_user_conversion(certificate: Certificate) -> UserInfo | None:
    """
    Whom a verified certificate names; L{None} without a common name.

    @raise AuthenticationFailed: It has several uids, or an empty one.
    """
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import ObjectIdentifier
    from cryptography.x509.oid import NameOID

    names = _subject(certificate, NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None
    uids = _subject(certificate, ObjectIdentifier(_UID))
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
    """The last common name, as in Go; C{""} without one."""
    from cryptography.x509.oid import NameOID

    return ("", *_subject(certificate, NameOID.COMMON_NAME))[-1]


def _subject(certificate: Certificate, kind: ObjectIdentifier) -> tuple[str, ...]:
    values: list[str] = []
    for attribute in certificate.subject.get_attributes_for_oid(kind):
        if not isinstance(attribute.value, str):
            raise AuthenticationFailed("a part of the subject is no text")
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
    """A certificate as the reference names it in its log: numbers of it, its key and its issuer's key."""
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
    The authorities of files, which are read again when they change.

    @param flag: What the log calls them.
    @raise BadAuthorities: A file can not be used.
    """

    def load(contents: Sequence[bytes]) -> CertPool:
        for path, content in zip(paths, contents, strict=True):
            try:
                CertPool(content)
            except InvalidCABundle as error:
                raise InvalidCABundle(f"can not use the client authorities in {path}: {error}") from error
        return CertPool(b"\n".join(contents))

    def use(pool: CertPool) -> None:
        authorities.set_pool(pool)

    try:
        authorities = ClientCAProvider(server.files.watch(paths, load, use, flag), user_conversion, flag)
    except OSError as error:
        raise InvalidCABundle(f"can not read {error.filename}: {error.strerror}") from error
    server.client_authorities.append(authorities)
    return authorities


def read_ca_files(paths: Iterable[Path]) -> bytes:
    """
    The content of files of authorities, each of which must have some.

    @raise BadAuthorities: One can not be used.
    """
    content = b""
    for path in paths:
        try:
            part = path.read_bytes()
            CertPool(part)
        except OSError as error:
            raise InvalidCABundle(f"can not read {path}: {error.strerror}") from error
        except InvalidCABundle as error:
            raise InvalidCABundle(f"can not use the client authorities in {path}: {error}") from error
        content += part + b"\n"
    return content


def client_ca_paths(options: FlagValues) -> list[Path]:
    """The files of those whose certificates name users: our own authority, and those of C{--client-ca-file}."""
    own = Path(options["data-dir"]) / "pki" / "ca.crt"
    return [own, Path(options["client-ca-file"])] if options["client-ca-file"] else [own]


def make(options: FlagValues, server: AuthenticationContext) -> X509Authenticator:
    """
    For L{client_ca_paths}.

    @raise BadAuthorities: A file can not be used.
    """

    def user_conversion(certificate: Certificate) -> UserInfo | None:
        # A node can say that it is where this server is. Whoever may ask its kubelet is not to ask us as ourselves.
        credentials = server.kubelet_credentials
        if credentials is not None and credentials.is_shown(certificate):
            raise AuthenticationFailed("it is the one that kubelets are shown")
        return common_name_user_conversion(certificate)

    return X509Authenticator(watch_ca_files(server, client_ca_paths(options), "--client-ca-file", user_conversion))
