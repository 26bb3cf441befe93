"""Tests for L{kubetwist.authentication.requestheader}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import requestheader as frontproxy
from kubetwist.authentication.anonymous import Anonymous
from kubetwist.authentication.certificates import (
    CertPool,
    ClientCAProvider,
    InvalidCABundle,
    X509Authenticator,
    common_name_user_conversion,
)
from kubetwist.authentication.errors import AuthenticationFailed, RequestRefused
from kubetwist.authentication.requestheader import (
    RequestHeaderAuthenticator,
    RequestHeaderConfig,
)
from kubetwist.authentication.union import AuthenticatorUnion
from kubetwist.cli.kubeapi import Options
from kubetwist.interfaces import IAuthenticator
from kubetwist.server.watchedfiles import FileReloader
from tests.certificates import Request, root, subject

FLAGS = (
    "--requestheader-username-headers=X-Remote-User,X-Other-User",
    "--requestheader-uid-headers=X-Remote-Uid",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
)


def options(*flags: str) -> Options:
    """Return a parsed command line."""
    made = Options()
    made.parseOptions([*FLAGS, *flags])
    return made


class FrontProxyTests(SynchronousTestCase):
    """Tests for L{RequestHeaderAuthenticator}."""

    def setUp(self) -> None:
        """Create a CA of proxies and a proxy."""
        self.root = root("proxies")
        self.proxy = self.root.issue(subject("proxy"))
        headers = RequestHeaderConfig.from_options(options())
        self.authenticator = RequestHeaderAuthenticator(ClientCAProvider(CertPool(self.root.pem)), headers, ("proxy",))
        verifyObject(IAuthenticator, self.authenticator)

    def user(self, **fields: Any) -> UserInfo | None:
        """Return the user in the headers of a proxy."""
        return self.authenticator.authenticate(Request(self.proxy, **fields))

    def error_text(self, **fields: Any) -> str:
        """Return the error for a request of a proxy."""
        return str(self.assertRaises(RequestRefused, self.user, **fields))

    def test_user(self) -> None:
        """The headers contain the user name, the uid, all groups and extra attributes."""
        fields = {
            "x_remote_user": "alice",
            "x_remote_uid": "u-1",
            "x_remote_group": ["a", "b", ""],
            "x_remote_extra_acme.com%2Fproject": ["x", "y"],
            "x_remote_extra_bad%zz": "z",
        }
        extra = {"acme.com/project": ("x", "y"), "bad%zz": ("z",)}
        self.assertEqual(self.user(**fields), UserInfo("alice", "u-1", ("a", "b"), extra))

    def test_first_name(self) -> None:
        """Of several configured headers, the first one with a value is used."""
        self.assertEqual(self.user(x_remote_user="", x_other_user="bob"), UserInfo("bob"))
        self.assertEqual(self.user(x_remote_user="alice", x_other_user="bob"), UserInfo("alice"))

    def test_no_name(self) -> None:
        """Without a user name the other headers are ignored."""
        self.assertIsNone(self.user(x_remote_group="system:masters"))

    def test_repeated(self) -> None:
        """Repeated user names and uids are rejected: parsers could choose different ones."""
        self.assertIn("X-Remote-User is repeated", self.error_text(x_remote_user=["alice", "bob"]))
        self.assertIn("X-Remote-Uid is repeated", self.error_text(x_remote_user="alice", x_remote_uid=["u", "v"]))

    def test_odd(self) -> None:
        """Headers that other parsers could take for these headers, and values that are not UTF-8, are rejected."""
        request = Request(self.proxy, x_remote_user="alice")
        for name in (b"x_remote_user", b"x-remote_group", b"x_remote-extra-k"):
            request.fields[name] = [b"system:masters"]
            error = self.assertRaises(RequestRefused, self.authenticator.authenticate, request)
            self.assertIn("can be taken for X-Remote-", str(error))
            del request.fields[name]
        request.fields[b"x_other"] = request.fields[b"x-remote-extra-a_b"] = [b"x"]
        self.assertEqual(self.authenticator.authenticate(request), UserInfo("alice", extra={"a_b": ("x",)}))
        self.assertIn("control characters", self.error_text(x_remote_user="al\x01ice"))
        self.assertIn("not UTF-8", self.error_text(x_remote_user="alice", x_remote_group="\xff"))

    def test_rejection_is_final(self) -> None:
        """A rejected request is not authenticated by other credentials, and is not anonymous."""
        users = X509Authenticator(ClientCAProvider(CertPool(self.root.pem), common_name_user_conversion))
        union = AuthenticatorUnion([self.authenticator, users], Anonymous())
        request = Request(self.proxy, x_remote_user=["alice", "bob"])
        self.assertRaises(RequestRefused, union.authenticate, request)

    def test_no_certificate(self) -> None:
        """Without a certificate of these CAs and an allowed common name the headers are ignored."""
        self.assertIsNone(self.authenticator.authenticate(Request(x_remote_user="alice")))
        for certificate in (root("proxies").issue(subject("proxy")), self.root.issue(subject("other"))):
            error = self.assertRaises(
                AuthenticationFailed, self.authenticator.authenticate, Request(certificate, x_remote_user="alice")
            )
            self.assertNotIsInstance(error, RequestRefused)

    def test_any_name(self) -> None:
        """Without a list of names all common names are allowed."""
        self.authenticator = RequestHeaderAuthenticator(
            ClientCAProvider(CertPool(self.root.pem)), RequestHeaderConfig.from_options(options())
        )
        self.proxy = self.root.issue(subject("other"))
        self.assertEqual(self.user(x_remote_user="alice"), UserInfo("alice"))

    def test_separate_cas(self) -> None:
        """Each CA has one purpose: user certificates cannot send headers, and proxies are not users."""
        users = root("users")
        union = AuthenticatorUnion(
            [self.authenticator, X509Authenticator(ClientCAProvider(CertPool(users.pem), common_name_user_conversion))],
            Anonymous(),
        )
        alice = users.issue(subject("alice"))
        self.assertEqual(union.authenticate(Request(alice, x_remote_user="root")).name, "alice")
        self.assertEqual(union.authenticate(Request(self.proxy, x_remote_user="bob")).name, "bob")
        self.assertRaises(AuthenticationFailed, union.authenticate, Request(self.proxy))


class PrivateTests(SynchronousTestCase):
    """Tests for L{RequestHeaderConfig.reserved_headers}."""

    def test_usual(self) -> None:
        """The standard headers are reserved even without flags."""
        exact, prefixes = RequestHeaderConfig().reserved_headers()
        self.assertLessEqual({b"x-remote-user", b"x-remote-uid", b"x-remote-group"}, exact)
        self.assertTrue(b"x-remote-extra-k".startswith(prefixes))

    def test_own(self) -> None:
        """The headers of the flags are reserved."""
        exact, _ = RequestHeaderConfig.from_options(options()).reserved_headers()
        self.assertIn(b"x-other-user", exact)


class MakeTests(SynchronousTestCase):
    """Tests for L{make}."""

    def make(self, *flags: str) -> RequestHeaderAuthenticator | None:
        """Return the authenticator of a command line; the data directory contains a CA of users."""
        self.users = root("users")
        data = Path(self.mktemp())
        (data / "pki").mkdir(parents=True)
        (data / "pki" / "ca.crt").write_bytes(self.users.pem)
        self.file = data / "proxies.crt"
        self.file.write_bytes(root("proxies").pem + self.additional)
        server: Any = type("Server", (), {"client_authorities": [], "files": FileReloader(Clock())})
        self.server = server
        flags = tuple(flag.replace("FILE", str(self.file)) for flag in flags)
        return frontproxy.make(options(f"--data-dir={data}", *flags), server)

    additional = b""

    def test_off(self) -> None:
        """Without --requestheader-client-ca-file there is no authenticator."""
        self.assertIsNone(self.make())

    def test_on(self) -> None:
        """With the flag there is an authenticator, and its CAs are announced to clients."""
        self.assertIsInstance(self.make("--requestheader-client-ca-file=FILE"), RequestHeaderAuthenticator)
        self.assertEqual(len(self.server.client_authorities), 1)

    def test_bad_file(self) -> None:
        """An invalid CA file is rejected."""
        self.assertRaises(InvalidCABundle, self.make, "--requestheader-client-ca-file=/nowhere")

    def test_overlap(self) -> None:
        """A CA of both users and proxies requires --requestheader-allowed-names."""
        made = self.make()
        self.additional = self.users.pem
        self.patch(frontproxy, "client_ca_paths", lambda options: [self.file])
        error = self.assertRaises(InvalidCABundle, self.make, "--requestheader-client-ca-file=FILE")
        self.assertIn("contain overlapping certificates", str(error))
        made = self.make("--requestheader-client-ca-file=FILE", "--requestheader-allowed-names=proxy")
        self.assertIsInstance(made, RequestHeaderAuthenticator)
