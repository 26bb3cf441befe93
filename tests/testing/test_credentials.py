"""Tests for L{kubetwist.testing._credentials}."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_letters, digits
from typing import Any, cast

import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis.strategies import lists, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials.certificates import CertificateAuthority, CertKeyPair
from kubetwist.testing._connection import Connection
from kubetwist.testing._credentials import (
    CredentialError,
    account_token,
    client_certificate,
    credentials_folder,
    encode,
    user_token,
    write_account_folder,
    write_kubeconfig,
    write_user_key,
)

AUTHORITY = CertificateAuthority.make("test")
#: Names without surrogates and control characters, which certificates cannot have.
NAMES = text(ascii_letters + digits + ":/@. äλ", min_size=1, max_size=64).filter(lambda name: len(name.encode()) <= 64)


def write_authority(folder: Path) -> None:
    """Write the files of L{AUTHORITY}."""
    (folder / "ca.crt").write_bytes(AUTHORITY.pair.certificate)
    (folder / "ca.key").write_bytes(AUTHORITY.pair.key)


class ClientCertificateTests(SynchronousTestCase):
    """L{client_certificate}."""

    def setUp(self) -> None:
        """Create a directory with an authority."""
        self.pki = Path(self.mktemp())
        self.pki.mkdir()
        write_authority(self.pki)

    @given(user=NAMES, groups=lists(NAMES, max_size=4))
    def test_subject(self, user: str, groups: list[str]) -> None:
        """The common name is the user, and the organizations are the groups, in order."""
        certificate, key = client_certificate(self.pki, user, groups)
        parsed, _ = CertKeyPair(certificate.encode(), key.encode()).parsed()
        subject = parsed.subject
        self.assertEqual([user], [one.value for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)])
        organizations = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        self.assertEqual(groups, [one.value for one in organizations])

    def test_issuer(self) -> None:
        """The authority signs the certificate, for clients, as long as it is valid itself."""
        certificate = x509.load_pem_x509_certificate(client_certificate(self.pki, "alice", [])[0].encode())
        authority, _ = AUTHORITY.pair.parsed()
        certificate.verify_directly_issued_by(authority)
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        self.assertEqual([ExtendedKeyUsageOID.CLIENT_AUTH], list(usage))
        self.assertEqual(authority.not_valid_after_utc, certificate.not_valid_after_utc)
        self.assertLess(certificate.not_valid_before_utc, datetime.now(UTC))

    def test_no_authority(self) -> None:
        """The error names the directory that has no key."""
        (self.pki / "ca.key").unlink()
        with self.assertRaisesRegex(CredentialError, f"whose key is not in {self.pki}: .*No such file"):
            client_certificate(self.pki, "alice", [])

    def test_names(self) -> None:
        """Empty names, and user names that do not fit into a certificate, are errors."""
        for user, groups in (("", []), ("alice", ["dev", ""])):
            with self.assertRaisesRegex(CredentialError, "must not be empty"):
                client_certificate(self.pki, user, groups)
        with self.assertRaisesRegex(CredentialError, "groups are 'dev', must be a list"):
            client_certificate(self.pki, "alice", "dev")
        with self.assertRaisesRegex(CredentialError, "cannot have the user 'aaa"):
            client_certificate(self.pki, "a" * 65, [])


class UserTokenTests(SynchronousTestCase):
    """L{user_token} and L{write_user_key}."""

    def test_key(self) -> None:
        """Each server has a key in a file that only the user of the process may read."""
        keys = set()
        for _ in range(2):
            folder = Path(self.mktemp())
            folder.mkdir()
            key, flag = write_user_key(folder)
            self.assertEqual(f"--plugin-config-file=UserTokens={folder / 'users.key'}", flag)
            self.assertEqual(key, (folder / "users.key").read_text())
            self.assertEqual(0o600, stat.S_IMODE((folder / "users.key").stat().st_mode))
            keys.add(key)
        self.assertEqual(2, len(keys))

    def test_errors(self) -> None:
        """Empty names, texts instead of lists, and a missing key are errors."""
        for user, groups, extra, error in (
            ("", [], {}, "must not be empty"),
            ("alice", ["dev", ""], {}, "must not be empty"),
            ("alice", "dev", {}, "groups are 'dev', must be a list"),
            ("alice", [], {"team": "a"}, "the extra value team is 'a', must be a list"),
        ):
            with self.assertRaisesRegex(CredentialError, error):
                user_token("key", user, groups, "", extra)
        with self.assertRaisesRegex(CredentialError, "kubetwist.testing has started"):
            user_token("", "alice", [], "", {})


class FilesTests(SynchronousTestCase):
    """Kubeconfigs, and the files of service accounts."""

    def setUp(self) -> None:
        """Create a directory of a server."""
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()

    def test_folder(self) -> None:
        """Only the user of the process may read the directory, which is created once."""
        folder = credentials_folder(self.folder)
        self.assertEqual(0o700, stat.S_IMODE(folder.stat().st_mode))
        self.assertEqual(folder, credentials_folder(self.folder))

    def test_folder_of_the_process(self) -> None:
        """Connections to other servers share a directory of the process."""
        folder = credentials_folder(None)
        self.assertEqual(0o700, stat.S_IMODE(folder.stat().st_mode))
        self.assertEqual(folder, credentials_folder(None))

    def test_kubeconfig(self) -> None:
        """A kubeconfig has the identity and the namespace, and is private."""
        user = "system:serviceaccount:dev:../x y"
        path = write_kubeconfig(self.folder, "https://127.0.0.1:1", "the CA", user, {"token": "secret"}, "dev")
        self.assertEqual((self.folder, ".kubeconfig"), (path.parent, path.suffix))
        self.assertEqual(0o600, stat.S_IMODE(path.stat().st_mode))
        connection = Connection.from_kubeconfig(path)
        self.assertEqual(("secret", "the CA", "dev"), (connection.token, connection.ca, connection.namespace))
        self.assertEqual(("", ""), (connection.client_certificate, connection.client_key))
        self.assertEqual(user, yaml.safe_load(path.read_text())["users"][0]["name"])

    def test_certificate(self) -> None:
        """A kubeconfig can have a certificate, and no namespace."""
        entry = {"client-certificate-data": encode("certificate"), "client-key-data": encode("key")}
        paths = {write_kubeconfig(self.folder, "https://[::1]:1", "", "..", entry) for _ in range(2)}
        self.assertEqual(2, len(paths))
        for path in paths:
            connection = Connection.from_kubeconfig(path)
            self.assertEqual(("certificate", "key"), (connection.client_certificate, connection.client_key))
            self.assertEqual(("", ""), (connection.token, connection.namespace))

    def test_account(self) -> None:
        """The files of a service account are those in pods."""
        path = write_account_folder(self.folder, "secret", "the CA", "dev")
        self.assertEqual(
            {"token": "secret", "ca.crt": "the CA", "namespace": "dev"},
            {one.name: one.read_text() for one in path.iterdir()},
        )
        self.assertEqual({0o600}, {stat.S_IMODE(one.stat().st_mode) for one in path.iterdir()})
        self.assertEqual(0o700, stat.S_IMODE(path.stat().st_mode))


class FakeAdmin:
    """A connection that answers with prepared responses, and records requests."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = [*answers]
        self.requests: list[tuple[str, Any]] = []

    def request(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Record a request."""
        self.requests.append((f"{method} {path}", body))
        return self.answers.pop(0)


MISSING = 404, {"kind": "Status", "message": "serviceaccounts not found"}
TOKEN = 201, {"status": {"token": "secret"}}


class AccountTokenTests(SynchronousTestCase):
    """L{account_token}."""

    def token(
        self, *answers: tuple[int, Any], name: str = "robot", create: bool = False, audiences: tuple[str, ...] = ()
    ) -> list[tuple[str, Any]]:
        """Request a token; return the requests."""
        admin = FakeAdmin(*answers)
        self.assertEqual("secret", account_token(cast(Connection, admin), "dev", name, create, 600, audiences))
        return admin.requests

    def test_request(self) -> None:
        """The API server gets a TokenRequest."""
        ((path, body),) = self.token(TOKEN, audiences=("vault",))
        self.assertEqual("POST /api/v1/namespaces/dev/serviceaccounts/robot/token", path)
        self.assertEqual({"expirationSeconds": 600, "audiences": ["vault"]}, body["spec"])
        ((_, body),) = self.token(TOKEN)
        self.assertEqual({"expirationSeconds": 600}, body["spec"])

    def test_names_are_quoted(self) -> None:
        """Names cannot change the path."""
        ((path, _),) = self.token(TOKEN, name="../a?b")
        self.assertEqual("POST /api/v1/namespaces/dev/serviceaccounts/..%2Fa%3Fb/token", path)

    def test_missing(self) -> None:
        """A missing account is an error."""
        with self.assertRaisesRegex(CredentialError, "no service account robot in the namespace dev: .*create=True"):
            self.token(MISSING)

    def test_create(self) -> None:
        """With C{create}, a missing account and a missing namespace are created."""
        requests = self.token(MISSING, (201, {}), (201, {}), TOKEN, create=True)
        self.assertEqual(
            [
                ("POST /api/v1/namespaces", {"metadata": {"name": "dev"}}),
                ("POST /api/v1/namespaces/dev/serviceaccounts", {"metadata": {"name": "robot"}}),
            ],
            requests[1:3],
        )

    def test_create_in_existing(self) -> None:
        """A namespace that exists is no error."""
        self.token(MISSING, (409, {}), (201, {}), TOKEN, create=True)

    def test_default(self) -> None:
        """The default account may be missing until its controller has created it."""
        requests = self.token(MISSING, (409, {}), TOKEN, name="default")
        self.assertEqual("POST /api/v1/namespaces/dev/serviceaccounts", requests[1][0])

    def test_refused(self) -> None:
        """Errors of the server are reported."""
        with self.assertRaisesRegex(CredentialError, "dev/robot: 403 not today"):
            self.token((403, {"message": "not today"}))
        with self.assertRaisesRegex(CredentialError, "cannot create /api/v1/namespaces/dev: 403 Forbidden"):
            self.token(MISSING, (403, "Forbidden"), create=True)
