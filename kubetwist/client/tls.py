"""
The client's side of TLS: trusted authorities, client certificates, and Go's errors about certificates.

@see: Go, C{crypto/x509/verify.go}.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from copy import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import Certificate, load_pem_x509_certificate
from OpenSSL import SSL, crypto

from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from .errors import (
    COMMON_NAME_ONLY,
    InvalidRESTConfig,
    Unreachable,
)
from .restconfig import RESTConfig

if TYPE_CHECKING:
    from twisted.protocols.tls import TLSMemoryBIOProtocol

#: Called by OpenSSL for each certificate of a chain; returns whether it is accepted.
Verifier: TypeAlias = Callable[[SSL.Connection, crypto.X509, int, int, int], bool]

_log = Logger()

_END: Final = b"-----END CERTIFICATE-----"
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
#: The certificate errors of OpenSSL that have a specific text in Go.
_EXPIRED, _NOT_YET = 10, 9
_BAD_PURPOSE: Final = 26
_TOO_LONG: Final = (22, 25)


def certificates(content: bytes) -> list[Certificate]:
    """
    Return the certificates in a PEM file.

    @raise InvalidRESTConfig: The file contains none, or a damaged one.
    """
    certificates_found = []
    for part in content.split(_END)[:-1]:
        begin = part.find(_BEGIN)
        if begin >= 0:
            try:
                certificates_found.append(load_pem_x509_certificate(part[begin:] + _END + b"\n"))
            except ValueError as error:
                raise InvalidRESTConfig("unable to load root certificates: a certificate is damaged") from error
    if not certificates_found:
        raise InvalidRESTConfig("unable to load root certificates: unable to parse bytes as PEM block")
    return certificates_found


@implementer(IOpenSSLClientConnectionCreator)
class ClientTLS:
    """Factory of TLS connections to one host."""

    def __init__(self, settings: RESTConfig, host: str, protocols: Sequence[bytes] = (b"http/1.1",)) -> None:
        """
        @param host: The host that the server's certificate must be for, unless C{settings} name another.
        @param protocols: The protocols over TLS (ALPN), best first.
        @raise InvalidRESTConfig: A certificate or key is invalid.
        """
        self._name = settings.server_name or host
        self._insecure = settings.insecure
        self._protocols = list(protocols)
        self._context = context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        context.set_mode(SSL.MODE_RELEASE_BUFFERS)
        if settings.certificate or settings.key:
            self._use_client_certificate(settings.certificate, settings.key)
        if settings.insecure:
            context.set_verify(SSL.VERIFY_NONE, None)
            return
        store = context.get_cert_store()
        assert store is not None, "a context has a store"
        # Every certificate among the authorities is a trust anchor, also an intermediate or leaf certificate.
        store.set_flags(crypto.X509StoreFlags.PARTIAL_CHAIN)
        if settings.ca:
            for certificate in certificates(settings.ca):
                store.add_cert(crypto.X509.from_cryptography(certificate))
        else:
            context.set_default_verify_paths()

    def _use_client_certificate(self, certificate: bytes, key: bytes) -> None:
        try:
            leaf, *chain = certificates(certificate)
            self._context.use_certificate(leaf)
            for issuer in chain:
                self._context.add_extra_chain_cert(issuer)
            self._context.use_privatekey(load_pem_private_key(key, None))  # type: ignore[arg-type]
            self._context.check_privatekey()
        except InvalidRESTConfig:
            raise InvalidRESTConfig("tls: failed to find any PEM data in certificate input") from None
        except (SSL.Error, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise InvalidRESTConfig("tls: private key does not match public key, or cannot be read") from error

    def with_protocols(self, protocols: Sequence[bytes]) -> ClientTLS:
        """Return a factory with the same settings that offers other protocols."""
        other = copy(self)
        other._protocols = list(protocols)
        return other

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        """@see: L{IOpenSSLClientConnectionCreator}."""
        connection = SSL.Connection(self._context, None)
        connection.set_alpn_protos(self._protocols)
        address = _address(self._name)
        if address is None:
            connection.set_tlsext_host_name(
                self._name.rstrip(".").encode("idna" if not self._name.isascii() else "ascii")
            )
        if not self._insecure:
            connection.set_verify(SSL.VERIFY_PEER, self._verifier(tlsProtocol))
        return connection

    def _verifier(self, protocol: TLSMemoryBIOProtocol) -> Verifier:
        reported = False

        def verify(connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, good: int) -> bool:
            # An exception within a callback of OpenSSL is lost.
            nonlocal reported
            try:
                reason = _certificate_error(certificate, error) if not good else ""
                if good and depth == 0:
                    reason = hostname_error(certificate.to_cryptography(), self._name)
            except Exception:
                _log.failure("verifying a certificate failed")
                reason = "x509: malformed certificate"
            if reason and not reported:
                reported = True
                protocol.failVerification(Failure(Unreachable(f"tls: failed to verify certificate: {reason}")))
            return not reason

        return verify


def _certificate_error(certificate: crypto.X509, error: int) -> str:
    """Return Go's text for an error of OpenSSL."""
    if error in (_EXPIRED, _NOT_YET):
        now = datetime.now(UTC)
        parsed = certificate.to_cryptography()
        edge, side = (
            (parsed.not_valid_after_utc, "after") if error == _EXPIRED else (parsed.not_valid_before_utc, "before")
        )
        return (
            "x509: certificate has expired or is not yet valid:"
            f" current time {now:%Y-%m-%dT%H:%M:%SZ} is {side} {edge:%Y-%m-%dT%H:%M:%SZ}"
        )
    if error == _BAD_PURPOSE:
        return "x509: certificate specifies an incompatible key usage"
    if error in _TOO_LONG:
        return "x509: too many intermediates for path length constraint"
    return "x509: certificate signed by unknown authority"


def hostname_error(certificate: Certificate, name: str) -> str:
    """Return the reason why a certificate is invalid for C{name}, a host or an address; C{""} if it is."""
    from cryptography.x509 import DNSName, ExtensionNotFound, IPAddress, SubjectAlternativeName
    from service_identity import CertificateError, VerificationError
    from service_identity.cryptography import verify_certificate_hostname

    try:
        alternatives = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
        names = alternatives.get_values_for_type(DNSName)
        addresses = alternatives.get_values_for_type(IPAddress)
    except ExtensionNotFound:
        names, addresses = [], []
    address = _address(name)
    if address is not None:
        if address in addresses:
            return ""
        if not addresses:
            return f"x509: cannot validate certificate for {name} because it doesn't contain any IP SANs"
        return f"x509: certificate is valid for {', '.join(map(str, addresses))}, not {name}"
    if not names:
        if not addresses and certificate.subject:
            return COMMON_NAME_ONLY
        return f"x509: certificate is not valid for any names, but wanted to match {name}"
    try:
        verify_certificate_hostname(certificate, name.rstrip("."))
    except (VerificationError, CertificateError, ValueError):
        return f"x509: certificate is valid for {', '.join(names)}, not {name}"
    return ""


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
