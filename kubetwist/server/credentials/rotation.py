"""
Renewal and rotation of the keys and certificates in a data directory, whose server may be running. Blocking.

Each file is replaced atomically, in an order in which the directory is usable after each step. Running servers read
changed files by themselves. Key pairs of F{pki/}: C{ca} and C{front-proxy-ca} are authorities, C{sa} signs tokens of
service accounts, and the remaining ones are certificates that the authorities have issued.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from cryptography import x509

from ...api.times import format_time, seconds_since_epoch
from ...registry.core.serviceaccount.tokenkeys import BadVerificationKey, load_token_keys
from ..errors import StartError
from ..files import write_file
from .certificates import (
    BadCertificate,
    CertificateAuthority,
    CertKeyPair,
    current_time,
    renewal_time,
    service_account_key,
    subject_of,
)

#: The certificates that the server issues, with their authorities.
ISSUED: Final = {
    "apiserver": "ca",
    "apiserver-kubelet-client": "ca",
    "admin": "ca",
    "front-proxy-client": "front-proxy-ca",
}
AUTHORITIES: Final = ("ca", "front-proxy-ca")
#: Times at which previous keys of service account tokens end, by key id.
OVERLAP_FILE: Final = "sa-overlap.json"
_LOCK: Final = ".lock"
_PUBLIC_END: Final = b"-----END PUBLIC KEY-----"


@frozen
class CertificateState:
    """
    One certificate of a data directory.

    @ivar name: The name of its file without C{.crt}; a bundle of authorities has several entries.
    @ivar renewal: The time from which on it is renewed; the end of an authority, since only commands rotate it.
    """

    name: str
    subject: str
    issuer: str
    begin: datetime
    end: datetime
    renewal: datetime


def read_pair(pki: Path, name: str) -> CertKeyPair:
    """
    Read a certificate and its key.

    @raise StartError: They cannot be read.
    """
    try:
        return CertKeyPair((pki / f"{name}.crt").read_bytes(), (pki / f"{name}.key").read_bytes())
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror}") from error


def read_authority(pki: Path, name: str) -> CertificateAuthority:
    """
    Read an authority.

    @raise StartError: It is damaged or cannot be read.
    """
    cross = pki / f"{name}-cross.crt"
    try:
        return CertificateAuthority(read_pair(pki, name), cross.read_bytes() if cross.exists() else b"")
    except BadCertificate as error:
        raise StartError(f"cannot use {pki / name}.crt: {error}") from error


def list_certificates(pki: Path) -> list[CertificateState]:
    """
    Return all certificates of a data directory.

    @raise StartError: One is damaged or cannot be read.
    """
    found = []
    for name in (*AUTHORITIES, *ISSUED):
        path = pki / f"{name}.crt"
        if not path.exists():
            continue
        try:
            certificates = x509.load_pem_x509_certificates(path.read_bytes())
        except OSError as error:
            raise StartError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise StartError(f"cannot use {path}: it is damaged") from error
        for one in certificates if name in AUTHORITIES else certificates[:1]:
            begin, end = one.not_valid_before_utc, one.not_valid_after_utc
            renewal = end if name in AUTHORITIES else renewal_time(one)
            subject, issuer = (text.rfc4514_string() for text in (one.subject, one.issuer))
            found.append(CertificateState(name, subject, issuer, begin, end, renewal))
    if not found:
        raise StartError(f"there are no certificates in {pki}")
    return found


@contextmanager
def changing(pki: Path) -> Iterator[None]:
    """
    Exclude other commands while files are changed.

    @raise StartError: Another command is running, or the directory cannot be written.
    """
    try:
        descriptor = os.open(pki / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(f"cannot write {pki}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(f"another command is changing {pki}") from None
        try:
            yield
        except OSError as error:
            raise StartError(f"cannot write {pki}: {error.strerror or error}") from error
    finally:
        os.close(descriptor)


def _write_pair(pki: Path, name: str, pair: CertKeyPair) -> None:
    write_file(pki / f"{name}.key", pair.key)
    write_file(pki / f"{name}.crt", pair.certificate, 0o644)


def renew(pki: Path, names: Sequence[str] = tuple(ISSUED)) -> list[str]:
    """
    Issue certificates again, with the same subjects and new keys.

    @param names: The certificates; those that do not exist are left out.
    @return: The names of those that were issued.
    @raise StartError: A file is damaged, or cannot be read or written.
    """
    renewed = []
    with changing(pki):
        for name in names:
            if not (pki / f"{name}.crt").exists():
                continue
            try:
                certificate = x509.load_pem_x509_certificate((pki / f"{name}.crt").read_bytes())
                subject = subject_of(certificate)
            except (ValueError, x509.ExtensionNotFound) as error:
                raise StartError(f"cannot use {pki / name}.crt: it is damaged, or another program issued it") from error
            _write_pair(pki, name, read_authority(pki, ISSUED[name]).issue(subject))
            renewed.append(name)
    return renewed


# --- authorities


def rotate_authority(pki: Path, name: str = "ca") -> str:
    """
    Begin the rotation of an authority: a new one issues certificates, and both are trusted.

    Certificates are presented with a certificate of the new authority by the previous one, so that peers that trust
    only the previous one can verify them.

    @param name: One of L{AUTHORITIES}.
    @return: The name of the new authority.
    @raise StartError: A rotation has begun already, or a file is damaged, or cannot be read or written.
    """
    with changing(pki):
        previous = read_authority(pki, name)
        if len(x509.load_pem_x509_certificates(previous.pair.certificate)) > 1:
            raise StartError(f"{pki}/{name}.crt has several authorities: end the rotation before with --retire")
        new = CertificateAuthority.make(f"kubetwist-{name}-{current_time():%Y%m%dT%H%M%SZ}")
        write_file(pki / f"{name}-cross.crt", previous.cross_sign(new), 0o644)
        # The authority is the certificate of the key, so that it is the previous one until the last step.
        write_file(pki / f"{name}.crt", new.certificate + previous.certificate, 0o644)
        write_file(pki / f"{name}.key", new.pair.key)
    return x509.load_pem_x509_certificate(new.certificate).subject.rfc4514_string()


def retire_authority(pki: Path, authority: str = "ca") -> list[str]:
    """
    End the rotation of an authority: only the new one is trusted.

    @param authority: One of L{AUTHORITIES}.
    @return: The names of the authorities that are not trusted any more.
    @raise StartError: No rotation has begun; certificates of the previous authority are in use; a file is damaged, or
        cannot be read or written.
    """
    with changing(pki):
        current = read_authority(pki, authority)
        own = x509.load_pem_x509_certificate(current.certificate)
        all_certificates = x509.load_pem_x509_certificates(current.pair.certificate)
        retired = [one.subject.rfc4514_string() for one in all_certificates if one != own]
        if not retired:
            raise StartError(f"{pki}/{authority}.crt has one authority: there is no rotation to end")
        for name, issuer in ISSUED.items():
            if issuer == authority and (pki / f"{name}.crt").exists():
                certificate = x509.load_pem_x509_certificate((pki / f"{name}.crt").read_bytes())
                if certificate.issuer != own.subject:
                    raise StartError(f"{pki / name}.crt was issued by the previous authority: renew it first")
        write_file(pki / f"{authority}.crt", current.certificate, 0o644)
        (pki / f"{authority}-cross.crt").unlink(missing_ok=True)
    return retired


# --- keys of service account tokens


def rotate_service_account_key(pki: Path, overlap: float, published: Callable[[], object]) -> str:
    """
    Sign tokens of service accounts with a new key; the previous keys verify tokens for some time.

    @param overlap: Seconds for which the previous key verifies tokens; those in an overlap already keep their ends.
    @param published: Called when the new public key is published, and before it signs: servers must have read it.
    @return: The key id of the new key.
    @raise StartError: A file is damaged, or cannot be read or written.
    """
    private, public = service_account_key()
    with changing(pki):
        ends = _read_ends(pki)
        previous = (pki / "sa.pub").read_bytes()
        until = format_time(current_time().timestamp() + overlap)
        try:
            previous_ids = [one.key_id for one in load_token_keys(previous)]
            # The key that signs; further keys are in an overlap, or were published by an interrupted rotation.
            signing_id = load_token_keys((pki / "sa.key").read_bytes())[0].key_id
        except BadVerificationKey as error:
            raise StartError(f"cannot use the keys of service account tokens in {pki}: {error}") from error
        write_file(pki / "sa.pub", public + previous, 0o644)
        published()
        for key_id in previous_ids:
            if key_id == signing_id or key_id not in ends:
                ends[key_id] = until
        _write_ends(pki, ends)
        write_file(pki / "sa.key", private)
    return load_token_keys(public)[0].key_id


def drop_expired_keys(pki: Path, *, all_previous: bool = False) -> list[str]:
    """
    Remove the public keys whose overlap has passed.

    @param all_previous: Whether each overlap ends now.
    @return: The key ids of the removed keys.
    @raise StartError: A file is damaged, or cannot be read or written.
    """
    if not (pki / OVERLAP_FILE).exists():
        return []
    with changing(pki):
        ends = _read_ends(pki)
        now = current_time().timestamp()
        expired = {key_id for key_id, end in ends.items() if all_previous or seconds_since_epoch(end) <= now}
        if not expired:
            return []
        kept = b""
        dropped = []
        for part in (pki / "sa.pub").read_bytes().split(_PUBLIC_END)[:-1]:
            block = part.lstrip() + _PUBLIC_END + b"\n"
            try:
                (key,) = load_token_keys(block)
            except BadVerificationKey as error:
                raise StartError(f"cannot use {pki}/sa.pub: {error}") from error
            if key.key_id in expired:
                dropped.append(key.key_id)
            else:
                kept += block
        if dropped:
            write_file(pki / "sa.pub", kept, 0o644)
        _write_ends(pki, {key_id: end for key_id, end in ends.items() if key_id not in expired})
    return dropped


def list_token_keys(pki: Path) -> list[tuple[str, str]]:
    """
    Return the keys that verify tokens: key id and end of the overlap, C{""} for the key that signs.

    @raise StartError: A file is damaged, or cannot be read.
    """
    try:
        ends = _read_ends(pki)
        return [(one.key_id, ends.get(one.key_id, "")) for one in load_token_keys((pki / "sa.pub").read_bytes())]
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror}") from error
    except BadVerificationKey as error:
        raise StartError(f"cannot use {pki}/sa.pub: {error}") from error


def _read_ends(pki: Path) -> dict[str, str]:
    path = pki / OVERLAP_FILE
    try:
        content: Any = json.loads(path.read_bytes())
        for key_id, end in content.items():
            if not isinstance(key_id, str):
                raise ValueError
            seconds_since_epoch(end)
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise StartError(f"cannot use {path}: it is damaged") from error
    return dict(content)


def _write_ends(pki: Path, ends: dict[str, str]) -> None:
    path = pki / OVERLAP_FILE
    if ends:
        write_file(path, json.dumps(ends, indent=2).encode() + b"\n", 0o644)
    else:
        with suppress(FileNotFoundError):
            path.unlink()


def utc(moment: datetime) -> str:
    """Return a time in RFC 3339."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
