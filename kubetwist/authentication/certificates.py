"""Client certificates: the common name is the user, the organizations are its groups."""

from __future__ import annotations

import hashlib
from pathlib import Path
from time import time
from typing import Any

from OpenSSL import crypto

from zope.interface import implementer

from ..api.resource import UserInfo
from ..interfaces import IAuthenticator
from .errors import AuthenticationFailed
from .union import authenticated

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_UID = "1.3.6.1.4.1.57683.2"


class BadAuthorities(ValueError):
    """A file of authorities can not be used; the text says why."""


@implementer(IAuthenticator)
class ClientCertificates:
    """Knows the users whose certificates some authorities have issued; each connection is looked at once."""

    def __init__(self, authorities: bytes) -> None:
        """
        @param authorities: Their certificates, PEM.
        @raise BadAuthorities: There is none.
        """
        self._store = crypto.X509Store()
        end = b"-----END CERTIFICATE-----"
        parts = [part for part in authorities.split(end) if b"-----BEGIN CERTIFICATE-----" in part]
        try:
            for part in parts:
                self._store.add_cert(crypto.load_certificate(crypto.FILETYPE_PEM, part + end))
        except (crypto.Error, ValueError) as error:
            raise BadAuthorities("it is damaged") from error
        if not parts:
            raise BadAuthorities("there is no certificate in it")

    def authenticate(self, request: Any) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        remembered = request.connection.remembered
        found = remembered.get(self)
        if found is None:
            found = remembered[self] = self._look(request.connection.transport)
        user, expires, failure = found
        if failure is not None:
            raise AuthenticationFailed(failure)
        if user is not None and time() > expires:
            raise AuthenticationFailed("the client certificate has expired")
        return user  # type: ignore[no-any-return]

    def _look(self, transport: Any) -> tuple[UserInfo | None, float, str | None]:
        """The user, until when, and what is wrong, for all requests of a connection."""
        shown = getattr(transport, "getPeerCertificate", lambda: None)()
        if shown is None:
            return None, 0.0, None
        chain = transport.getHandle().get_peer_cert_chain() or []
        certificate = shown.to_cryptography()
        try:
            crypto.X509StoreContext(self._store, shown, chain[1:]).verify_certificate()
        except crypto.X509StoreContextError as error:
            return None, 0.0, f"verifying certificate SN={certificate.serial_number} failed: {error}"
        if not _for_clients(certificate):
            return None, 0.0, f"certificate SN={certificate.serial_number} is not for clients"
        return user_of(certificate), certificate.not_valid_after_utc.timestamp(), None


def user_of(certificate: Any) -> UserInfo | None:
    """Whom a verified certificate names; L{None} without a common name."""
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import ObjectIdentifier
    from cryptography.x509.oid import NameOID

    subject = certificate.subject

    def values(kind: Any) -> tuple[str, ...]:
        return tuple(attribute.value for attribute in subject.get_attributes_for_oid(kind))

    names = values(NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None
    uids = values(ObjectIdentifier(_UID))
    digest = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    return authenticated(
        UserInfo(
            names[-1],
            uids[0] if len(uids) == 1 else "",
            values(NameOID.ORGANIZATION_NAME),
            {CREDENTIAL_ID: (f"X509SHA256={digest}",)},
        )
    )


def _for_clients(certificate: Any) -> bool:
    from cryptography.x509 import ExtendedKeyUsage, ExtensionNotFound
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usages = certificate.extensions.get_extension_for_class(ExtendedKeyUsage).value
    except ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages


def make(options: Any, server: Any) -> ClientCertificates:
    """
    For our own authority, and those of C{--client-ca-file}.

    @raise BadAuthorities: A file can not be used.
    """
    own = Path(options["data-dir"]) / "pki" / "ca.crt"
    content = b""
    for path in (own, Path(options["client-ca-file"]) if options["client-ca-file"] else None):
        if path is None:
            continue
        try:
            part = path.read_bytes()
            ClientCertificates(part)
        except (OSError, BadAuthorities) as error:
            raise BadAuthorities(f"can not use the client authorities in {path}: {error}") from error
        content += part + b"\n"
    return ClientCertificates(content)
