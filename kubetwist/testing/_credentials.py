"""Credentials of users and service accounts, made for a test, and the files that contain them."""

from __future__ import annotations

import json
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp, mkstemp
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ..api.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from ._connection import Connection

#: Maximum length of the common name of a certificate (ub-common-name of X.509).
MAX_COMMON_NAME: Final = 64
#: Tolerance for different clocks.
_BACKDATED: Final = timedelta(minutes=5)

#: Directory for files of connections to servers that C{kubetwist.testing} has not started; removed with the process.
_temporary: list[TemporaryDirectory[str]] = []


class CredentialError(Exception):
    """Credentials cannot be made; the text has the reason."""


def client_certificate(pki: Path, user: str, groups: Sequence[str]) -> tuple[str, str]:
    """
    Issue a client certificate by the authority of a server.

    @param pki: The directory with the authority's F{ca.crt} and F{ca.key}.
    @param user: The common name.
    @param groups: The organizations.
    @return: The certificate and its key, PEM.
    @raise CredentialError: The authority cannot be used, or a name does not fit into a certificate.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    from ..server.credentials.certificates import BadCertificate, CertificateAuthority, CertKeyPair, private_pem

    try:
        authority = CertificateAuthority(CertKeyPair((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes()))
    except (OSError, BadCertificate) as error:
        raise CredentialError(
            f"users need the certificate authority of the server, whose key is not in {pki}: {error}"
        ) from error
    _check_names(user, groups)
    key = ec.generate_private_key(ec.SECP256R1())
    try:
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, user),
            ]
        )
    except ValueError as error:
        raise CredentialError(
            f"a certificate cannot have the user {user!r} and the groups {groups}: {error}"
        ) from error
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    # Valid as long as the authority: tests may advance the clock of the server.
    now = datetime.now(UTC)
    certificate = authority.certify(request, [(usage, False)], now - _BACKDATED, datetime.max.replace(tzinfo=UTC))
    return certificate.decode(), private_pem(key).decode()


def _check_names(user: str, groups: Sequence[str]) -> None:
    # A text is a sequence, too: of groups with a letter each.
    if isinstance(groups, str):
        raise CredentialError(f"groups are {groups!r}, must be a list")
    if not user or "" in groups:
        raise CredentialError("names of users and groups must not be empty")


def write_user_key(folder: Path) -> tuple[str, str]:
    """
    Create a key for tokens of users, in a file with mode 0600.

    @param folder: The directory of the file F{users.key}.
    @return: The key, and the flag of C{twist kubeapi} for it.
    """
    key = secrets.token_hex(32)
    path = folder / "users.key"
    path.touch(mode=0o600)
    path.write_text(key)
    return key, f"--plugin-config-file=UserTokens={path}"


def user_token(key: str, user: str, groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]) -> str:
    """
    Return a token of a user, which does not expire.

    @param key: The key of the server; C{""} if there is none.
    @param user: The user name.
    @param groups: The groups.
    @param uid: The uid, or C{""}.
    @param extra: Extra values by their keys.
    @raise CredentialError: The server has no key, or a name is empty.
    """
    from ..api.resource import UserInfo
    from ..authentication.usertokens import sign_user

    if not key:
        raise CredentialError(
            "a uid, extra values and names of more than 64 characters need a server that kubetwist.testing has started"
        )
    _check_names(user, groups)
    for name, values in extra.items():
        if isinstance(values, str):
            raise CredentialError(f"the extra value {name} is {values!r}, must be a list")
    lists = {name: tuple(values) for name, values in extra.items()}
    return sign_user(key.encode(), UserInfo(user, uid, tuple(groups), lists))


def account_token(
    admin: Connection, namespace: str, name: str, create: bool, expiration_seconds: int, audiences: Sequence[str]
) -> str:
    """
    Request a token of a service account from the API server. Blocking.

    @param admin: A connection that may do that.
    @param create: Whether to create a missing account, and its namespace.
    @param audiences: The audiences of the token; by default the API server's.
    @raise CredentialError: The account does not exist, or the server refuses.
    """
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts"
    token_path = f"{path}/{quote(name, safe='')}/token"
    spec: JSONObject = {"expirationSeconds": expiration_seconds, **({"audiences": [*audiences]} if audiences else {})}
    request: JSONObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    code, answer = admin.request("POST", token_path, request)
    # The account "default" may be missing because its controller has not created it yet.
    if code == 404 and (create or name == "default"):
        if create:
            _create(admin, "/api/v1/namespaces", namespace)
        _create(admin, path, name)
        code, answer = admin.request("POST", token_path, request)
    if code == 404:
        raise CredentialError(
            f"there is no service account {name} in the namespace {namespace}: {_message(answer)}; create it before, or"
            " with create=True"
        )
    if code != 201:
        raise CredentialError(f"no token for the service account {namespace}/{name}: {code} {_message(answer)}")
    token: str = answer["status"]["token"]
    return token


def _create(admin: Connection, path: str, name: str) -> None:
    """
    Create an object without further fields, unless it exists.

    @raise CredentialError: The server refuses.
    """
    code, answer = admin.request("POST", path, {"metadata": {"name": name}})
    if code not in (201, 409):
        raise CredentialError(f"cannot create {path}/{name}: {code} {_message(answer)}")


def _message(answer: JSONValue) -> JSONValue:
    """Return the message of a Status, or a text that is not JSON."""
    return answer.get("message", answer) if isinstance(answer, dict) else answer


def credentials_folder(parent: Path | None) -> Path:
    """
    Return a directory for credentials, which only the user of this process may read.

    @param parent: The temporary directory of the server; L{None} for one of this process.
    """
    if parent is None:
        if not _temporary:
            _temporary.append(TemporaryDirectory(prefix="kubetwist-users-"))
        return Path(_temporary[0].name)
    folder = parent / "users"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def write_kubeconfig(folder: Path, url: str, ca: str, user: str, credentials: JSONObject, namespace: str = "") -> Path:
    """
    Write a kubeconfig with one context, with mode 0600.

    @param folder: Where a file with a new name is created.
    @param ca: The authorities of the server, PEM.
    @param user: The name of the user's entry.
    @param credentials: The fields of that entry.
    @param namespace: The namespace of the context; C{""} for the default.
    """
    cluster: JSONObject = {"server": url, "certificate-authority-data": encode(ca)}
    context: JSONObject = {"cluster": "kubetwist", "user": user, **({"namespace": namespace} if namespace else {})}
    document: JSONObject = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubetwist", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": f"{user}@kubetwist", "context": context}],
        "current-context": f"{user}@kubetwist",
    }
    descriptor, path = mkstemp(".kubeconfig", f"{_file_name(user)}-", folder)
    with open(descriptor, "w", encoding="utf-8") as file:
        # JSON is YAML.
        json.dump(document, file, indent=2)
    return Path(path)


def write_account_folder(folder: Path, token: str, ca: str, namespace: str) -> Path:
    """
    Write the files that a pod has of its service account into a new directory, with mode 0600.

    @param folder: Where the directory is created.
    @param token: The bearer token.
    @param ca: The authorities of the server, PEM.
    @param namespace: The namespace of the account.
    @return: The directory.
    """
    path = Path(mkdtemp(prefix="serviceaccount-", dir=folder))
    for name, content in (("token", token), ("ca.crt", ca), ("namespace", namespace)):
        (path / name).touch(mode=0o600)
        (path / name).write_text(content)
    return path


def encode(pem: str) -> str:
    """Encode PEM data as a kubeconfig contains them."""
    return b64encode(pem.encode()).decode()


def _file_name(user: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", user)[:100].strip(".-") or "user"
