"""
Select serving certificates by SNI: C{--tls-sni-cert-key}.

@see: kubernetes/apiserver, C{pkg/server/dynamiccertificates/named_certificates.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from cryptography import x509
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

from ..errors import StartError
from ..watchedfiles import FileReloader
from .certificates import BadCertificate, CertKeyPair


@frozen
class NamedFiles:
    """
    The files of a certificate and its key.

    @ivar names: The names that it is presented for, C{"*.example.com"} for all names with one more label; if empty,
        the names in the certificate.
    """

    certificate: str
    key: str
    names: tuple[str, ...] = ()


def parse_named_files(text: str) -> tuple[NamedFiles, ...]:
    """
    Read one value of the flag: C{"crt,key"} or C{"crt,key:name,name"}.

    @raise ValueError: The value has another form.
    """
    files, colon, names = text.rpartition(":")
    if not colon:
        files, names = text, ""
    certificate, comma, key = files.partition(",")
    if not comma or not certificate or not key or "," in key:
        raise ValueError("expected comma separated certificate and key file paths")
    requested_names = tuple(name.strip() for name in names.split(",") if name.strip())
    if colon and not requested_names:
        raise ValueError("empty names list is not allowed")
    for name in requested_names:
        if "*" in name.removeprefix("*."):
            raise ValueError(f'"{name}" is not a name, or one with *. in front')
    return (NamedFiles(certificate, key, requested_names),)


class NamedCertificates:
    """
    TLS contexts by host name.

    Names of the flag take precedence over names in certificates, exact names over wildcards, and earlier values over
    later ones.
    """

    def __init__(self, files: Sequence[NamedFiles], make: Callable[[CertKeyPair], SSL.Context]) -> None:
        """
        @param make: Creates a context that presents a certificate; raises L{BadCertificate}.
        @raise StartError: A certificate cannot be read or used.
        """
        self._files = files
        self._make = make
        self._pairs = [self._read(one) for one in files]
        self._contexts: dict[str, SSL.Context] = {}
        try:
            self.renew()
        except BadCertificate as error:
            raise StartError(f"cannot use --tls-sni-cert-key: {error}") from error

    @staticmethod
    def _read(files: NamedFiles) -> CertKeyPair:
        try:
            return CertKeyPair(Path(files.certificate).read_bytes(), Path(files.key).read_bytes())
        except OSError as error:
            raise StartError(f"cannot read {error.filename}: {error.strerror}") from error

    def follow(self, watched: FileReloader) -> None:
        """Reload the certificates when their files change."""
        for index, files in enumerate(self._files):
            watched.watch(
                [files.certificate, files.key], self._load, self._certificate_setter(index), "--tls-sni-cert-key"
            )

    def _load(self, contents: Sequence[bytes]) -> CertKeyPair:
        pair = CertKeyPair(*contents)
        self._make(pair)
        return pair

    def _certificate_setter(self, index: int) -> Callable[[CertKeyPair], None]:
        def set_certificate(pair: CertKeyPair) -> None:
            self._pairs[index] = pair
            self.renew()

        return set_certificate

    def renew(self) -> None:
        """
        Create the contexts again after a change of certificates or client authorities.

        @raise BadCertificate: A certificate cannot be used; the contexts are unchanged.
        """
        contexts: dict[str, SSL.Context] = {}
        by_certificate: dict[str, SSL.Context] = {}
        for files, pair in zip(self._files, self._pairs, strict=True):
            pair.parsed()
            context = self._make(pair)
            for name in files.names:
                contexts.setdefault(name.lower(), context)
            if not files.names:
                for name in certificate_names(pair.certificate):
                    by_certificate.setdefault(name.lower(), context)
        self._contexts = {**by_certificate, **contexts}

    def choose(self, connection: SSL.Connection) -> None:
        """Select the certificate for the SNI name of a handshake; called by OpenSSL."""
        server_name = connection.get_servername()
        if server_name:
            context = self.find(server_name.decode("latin-1"))
            if context is not None:
                connection.set_context(context)

    def find(self, name: str) -> SSL.Context | None:
        """Return the context for a name; L{None} if it has no certificate."""
        name = name.lower().rstrip(".")
        return self._contexts.get(name) or self._contexts.get(f"*.{name.partition('.')[2]}")


def certificate_names(pem: bytes) -> list[str]:
    """Return the host names in a certificate, and its common name if that is a host name."""
    certificate = x509.load_pem_x509_certificate(pem)
    names = list(_alternative_names(certificate))
    for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        common = str(attribute.value)
        if common and not set(common) - _IN_NAMES and common not in names:
            names.insert(0, common)
    return names


_IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.*")


def _alternative_names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        names: Iterable[Any] = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    for name in names:
        if isinstance(name, x509.DNSName):
            yield name.value
