"""TLS contexts of the server; client certificates are optional, and authenticators verify them later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate
from OpenSSL import SSL
from OpenSSL.crypto import X509

from twisted.internet.interfaces import IOpenSSLContextFactory
from twisted.internet.ssl import AcceptableCiphers, CertificateOptions, TLSVersion
from zope.interface import implementer

from ...authentication.certificates import ClientCAProvider
from ...http.connection.curves import set_curves
from ..errors import StartError
from .certificates import BadCertificate, CertKeyPair
from .namedcertificates import NamedCertificates, NamedFiles

#: The protocols of a server without HTTP/2.
HTTP1_ONLY: Final = (b"http/1.1",)
_VERSIONS = {"VersionTLS12": TLSVersion.TLSv1_2, "VersionTLS13": TLSVersion.TLSv1_3}
#: OpenSSL's C{SSL_MODE_ENABLE_PARTIAL_WRITE}, which pyOpenSSL sets and does not export.
_MODE_ENABLE_PARTIAL_WRITE: Final = 1


@implementer(IOpenSSLContextFactory)
class ServingContextFactory:
    """
    Factory of the contexts of incoming connections.

    A client certificate is requested, and accepted unverified in the handshake, as in the reference: authenticators
    verify it and answer 401, while a failed handshake has no response.
    """

    def __init__(
        self,
        pair: CertKeyPair,
        min_version: str,
        ciphers: str = "",
        named: Sequence[NamedFiles] = (),
        protocols: Sequence[bytes] = HTTP1_ONLY,
        curves: Sequence[int] = (),
    ) -> None:
        """
        @param min_version: As in --tls-min-version.
        @param ciphers: The enabled suites in OpenSSL's syntax; the defaults of Twisted if empty.
        @param named: Certificates by SNI name.
        @param protocols: The protocols (ALPN), best first.
        @param curves: The groups of the key exchange, as in --tls-curve-preferences; the defaults of OpenSSL if empty.
        @raise StartError: A certificate cannot be used.
        """
        self._pair = pair
        self._lowest = min_version
        self._ciphers = ciphers
        self._protocols = protocols
        self._curves = curves
        self._authorities: Sequence[ClientCAProvider] = ()
        self.named = NamedCertificates(named, self._make) if named else None
        try:
            self._context = self._make_with_sni(pair)
        except BadCertificate as error:
            raise StartError(f"cannot use the serving certificate: {error}") from error

    def _make(self, pair: CertKeyPair) -> SSL.Context:
        return make_context(pair, self._lowest, self._authorities, self._ciphers, self._protocols, self._curves)

    def _make_with_sni(self, pair: CertKeyPair) -> SSL.Context:
        context = self._make(pair)
        if self.named is not None:
            context.set_tlsext_servername_callback(self.named.choose)
        return context

    def replace(self, pair: CertKeyPair) -> None:
        """
        Present another certificate on new connections.

        @raise BadCertificate: It cannot be used.
        """
        # A context that connections use cannot be changed.
        self._context = self._make_with_sni(pair)
        self._pair = pair

    def request_client_certificates(self, authorities: Sequence[ClientCAProvider]) -> None:
        """Send the names of accepted authorities to clients, now and after each change."""
        self._authorities = authorities

        def renew() -> None:
            self.replace(self._pair)
            if self.named is not None:
                self.named.renew()

        for one in authorities:
            one.listeners.append(renew)
        renew()

    def getContext(self) -> SSL.Context:
        """@see: L{IOpenSSLContextFactory}."""
        return self._context


def make_context(
    pair: CertKeyPair,
    min_version: str,
    authorities: Sequence[ClientCAProvider] = (),
    ciphers: str = "",
    protocols: Sequence[bytes] = HTTP1_ONLY,
    curves: Sequence[int] = (),
) -> SSL.Context:
    """
    Create a context that presents a certificate.

    @param min_version: As in --tls-min-version.
    @param authorities: The authorities whose certificates are requested from clients.
    @param ciphers: As for L{ServingContextFactory}.
    @param protocols: As for L{ServingContextFactory}.
    @param curves: As for L{ServingContextFactory}.
    @raise BadCertificate: It cannot be used.
    """
    try:
        certificate, *chain = [load_pem_x509_certificate(pem) for pem in split_pem(pair.certificate)]
        options = CertificateOptions(
            raiseMinimumTo=_VERSIONS[min_version],
            acceptableProtocols=list(protocols),
            acceptableCiphers=AcceptableCiphers.fromOpenSSLCipherString(ciphers) if ciphers else None,
        )
        context: SSL.Context = options.getContext()
        # Set here, as CertificateOptions is typed for pyOpenSSL's own certificates, which are deprecated.
        context.use_certificate(certificate)
        for issuer in chain:
            context.add_extra_chain_cert(issuer)
        context.use_privatekey(load_pem_private_key(pair.key, None))  # type: ignore[arg-type]
        context.check_privatekey()
        if curves:
            set_curves(context, curves)
    except (ValueError, TypeError, UnsupportedAlgorithm, SSL.Error) as error:
        raise BadCertificate(str(error)) from error
    context.set_verify(SSL.VERIFY_PEER, _accept)
    for each in authorities:
        for authority in each.pool.certificates:
            context.add_client_ca(authority)
    # Without read-ahead every record takes two reads. Released idle buffers keep watches cheap.
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    # One call encrypts all of its data, not one record.
    context.clear_mode(_MODE_ENABLE_PARTIAL_WRITE)
    return context


def split_pem(content: bytes) -> list[bytes]:
    """Split a PEM file into certificates."""
    end = b"-----END CERTIFICATE-----"
    certificates_found = []
    for part in content.split(end)[:-1]:
        begin = part.find(b"-----BEGIN CERTIFICATE-----")
        if begin >= 0:
            certificates_found.append(part[begin:] + end + b"\n")
    if not certificates_found:
        raise ValueError("there is no certificate in it")
    return certificates_found


def _accept(connection: SSL.Connection, certificate: X509, error: int, depth: int, preverified: int) -> bool:
    return True
