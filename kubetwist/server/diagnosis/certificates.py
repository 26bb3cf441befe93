"""Checks of certificates and keys: validity, issuer, key, names, algorithms."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from attrs import frozen
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ..credentials.certificates import alternative_names
from .findings import Finding, error, note, ok, warning

#: Remaining validity of an authority below which it should be replaced: its clients need the new one first.
_REPLACE_AUTHORITY: Final = timedelta(days=180)
#: The same for other certificates.
_REPLACE_CERTIFICATE: Final = timedelta(days=30)
#: Maximum size, in bytes, of a file with certificates.
_MOST: Final = 1 << 20
_WEAK_HASHES: Final = frozenset(("md5", "sha1"))
_LEAST_RSA_BITS: Final = 2048


@frozen
class CertificateFile:
    """
    A certificate to check.

    @ivar name: What it is for, in messages.
    @ivar path: The file of the certificate and its chain.
    @ivar key_path: The file of its key; C{""} if the server does not need the key.
    @ivar authority_path: The file of the authority that must have issued it; C{""} for any.
    @ivar names: Names and addresses that it must have.
    @ivar renewed: Whether the server issues it again when it is due, or its names have changed.
    @ivar authority: Whether it is a bundle of authorities.
    """

    name: str
    path: str
    key_path: str = ""
    authority_path: str = ""
    names: tuple[str, ...] = ()
    renewed: bool = False
    authority: bool = False


def check_certificate(file: CertificateFile, now: datetime) -> Iterator[Finding]:
    """
    Check one file with its key.

    @param now: The present time.
    """
    identifier = f"certificates/{file.name}"
    try:
        certificates = x509.load_pem_x509_certificates(_read(file.path))
        key = load_pem_private_key(_read(file.key_path), None) if file.key_path else None
        issuers = x509.load_pem_x509_certificates(_read(file.authority_path)) if file.authority_path else []
    except OSError as problem:
        yield error(identifier, f"{problem.filename} cannot be read: {problem.strerror}", _RESTORE)
        return
    except (ValueError, TypeError, UnsupportedAlgorithm):
        yield error(identifier, f"{file.path} or its key is no PEM file that can be used", _RESTORE)
        return
    if key is not None and certificates[0].public_key() != key.public_key():
        yield error(identifier, f"{file.path} and {file.key_path} do not match", _RESTORE)
        return
    judged = certificates if file.authority else certificates[:1]
    problems = [
        *(finding for one in judged for finding in judge_validity(file, one, now)),
        *(finding for one in judged for finding in judge_algorithms(file, one)),
        *judge_chain(file, certificates, issuers),
        *judge_names(file, certificates[0]),
    ]
    yield from problems
    if not problems:
        end = min(one.not_valid_after_utc for one in judged)
        yield ok(identifier, f"{file.path} is valid until {end:%Y-%m-%d}")


_RESTORE: Final = "restore the file from a backup, or correct the flag that names it"


def _read(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(_MOST)


def judge_validity(file: CertificateFile, certificate: x509.Certificate, now: datetime) -> Iterator[Finding]:
    """
    Judge the validity of a certificate.

    @param now: The present time.
    """
    identifier = f"certificates/{file.name}"
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if begin > now:
        yield error(
            identifier,
            f"{file.path} is not valid before {begin:%Y-%m-%d %H:%M} UTC, and now is {now:%Y-%m-%d %H:%M}",
            "correct the clock of this machine, or wait",
        )
    elif end <= now:
        message = f"{file.path} has expired on {end:%Y-%m-%d}"
        if file.renewed:
            yield error(identifier, message, "restart the server, which issues a new one")
        else:
            yield error(identifier, message, _replace(file))
    elif end - now < (_REPLACE_AUTHORITY if file.authority else _REPLACE_CERTIFICATE):
        message = f"{file.path} expires on {end:%Y-%m-%d}"
        if file.renewed:
            yield note(identifier, message, "a running server renews it, at its next start at the latest")
        else:
            yield warning(identifier, message, _replace(file))


def _replace(file: CertificateFile) -> str:
    if file.authority:
        return "create a new authority, add it to the bundles of all clients, then let it issue the certificates"
    return "replace the file; the server reads it again within 5 s"


def judge_algorithms(file: CertificateFile, certificate: x509.Certificate) -> Iterator[Finding]:
    """Judge the signature and the key of a certificate. Clients do not verify the signature of a root."""
    identifier = f"certificates/{file.name}"
    signature = certificate.signature_hash_algorithm
    root = certificate.issuer == certificate.subject
    if signature is not None and signature.name in _WEAK_HASHES and not root:
        yield error(identifier, f"{file.path} is signed with {signature.name}, which clients reject", _replace(file))
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _LEAST_RSA_BITS:
        yield warning(identifier, f"{file.path} has an RSA key of {key.key_size} bits", _replace(file))
    elif isinstance(key, ec.EllipticCurvePublicKey) and key.key_size < 256:
        yield warning(identifier, f"{file.path} has an elliptic curve key of {key.key_size} bits", _replace(file))


def judge_chain(
    file: CertificateFile, certificates: Sequence[x509.Certificate], issuers: Sequence[x509.Certificate]
) -> Iterator[Finding]:
    """
    Judge the issuers of a certificate.

    @param certificates: The certificate and its chain.
    @param issuers: The authorities, one of which must have issued a certificate of the chain; any if empty. After a
        rotation, the chain goes on to the previous authority.
    """
    identifier = f"certificates/{file.name}"
    if file.authority:
        for one in certificates:
            if not _is_authority(one):
                yield error(identifier, f"{file.path} has a certificate that is no authority", _RESTORE)
        return
    for one, issuer in pairwise(certificates):
        if not _issued(one, issuer):
            yield error(
                identifier,
                f"the chain in {file.path} is broken: a certificate is not issued by the next one",
                "put the intermediate certificates after the certificate, each followed by its issuer",
            )
            return
    if issuers and not any(_issued(certificate, one) for certificate in certificates for one in issuers):
        yield error(identifier, f"{file.path} was not issued by {file.authority_path}", _RESTORE)


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        # Roots of version 1 have no extensions.
        return certificate.issuer == certificate.subject


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:
        return False
    return True


def judge_names(file: CertificateFile, certificate: x509.Certificate) -> Iterator[Finding]:
    """Judge whether a certificate has the names by which clients reach the server."""
    shown = alternative_names(certificate)
    missing = [name for name in file.names if not _covers(shown, name)]
    if not missing:
        return
    message = f"{file.path} does not have the names {', '.join(missing)}"
    identifier = f"certificates/{file.name}"
    if file.renewed:
        yield note(identifier, message, "the next start of the server issues a new one with these names")
    else:
        yield warning(identifier, message, "clients that use these names reject the server: issue another certificate")


def _covers(shown: Iterable[str], name: str) -> bool:
    try:
        return str(ipaddress.ip_address(name)) in shown
    except ValueError:
        first, _, rest = name.lower().partition(".")
        return any(one.lower() in (name.lower(), f"*.{rest}" if first and rest else name) for one in shown)


def check_certificates(files: Iterable[CertificateFile]) -> Iterator[Finding]:
    """Check files."""
    now = datetime.now(UTC)
    for file in files:
        yield from check_certificate(file, now)
