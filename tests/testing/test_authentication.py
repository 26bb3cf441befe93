"""Tests for L{kubetwist.testing.authentication}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred, succeed
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.bearer import bearer_token
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.interfaces import IAuthenticationRequest, IAuthenticator, IClientConnection
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.errors import StartError
from kubetwist.server.plugins import AuthenticatorFactory
from kubetwist.testing.authentication import AuthenticatorHarness, StubRequest
from kubetwist.testing.memory import NoResult


@implementer(IAuthenticator)
class Stub:
    """Returns the result of a function."""

    def __init__(self, find: Any) -> None:
        self._find = find

    def authenticate(self, request: IAuthenticationRequest) -> Any:
        """Call the function."""
        return self._find(request)


def badge(request: IAuthenticationRequest) -> UserInfo | None:
    """Return the user of a badge."""
    value = request.header(b"x-badge")
    if value is None:
        return None
    if value == b"stolen":
        raise AuthenticationFailed("the badge is stolen")
    request.warn("badges are deprecated")
    request.annotate("example.com/badge", value.decode(), "Metadata")
    return UserInfo(value.decode(), groups=("staff",))


def make(options: Any, server: Any) -> Stub | None:
    """Return the authenticator, unless a flag disables it."""
    return Stub(badge) if options["profiling"] else None


class HarnessTests(SynchronousTestCase):
    """L{AuthenticatorHarness}."""

    def test_users(self) -> None:
        """The user gets the group system:authenticated, as in the server."""
        harness = AuthenticatorHarness(Stub(badge))
        outcome = harness.authenticate({"X-Badge": "alice"})
        self.assertEqual(outcome.user, UserInfo("alice", groups=("staff", "system:authenticated")))
        self.assertEqual((outcome.code, outcome.error), (0, None))
        self.assertEqual(outcome.request.warnings, ["badges are deprecated"])
        self.assertEqual(outcome.request.annotations, {"example.com/badge": "alice"})

    def test_none(self) -> None:
        """A request without credentials has no user and no error; invalid credentials have an error."""
        harness = AuthenticatorHarness(Stub(badge))
        outcome = harness.authenticate()
        self.assertEqual((outcome.user, outcome.error, outcome.code), (None, None, 401))
        outcome = harness.authenticate({"X-Badge": "stolen"})
        self.assertEqual((outcome.user, str(outcome.error), outcome.code), (None, "the badge is stolen", 401))

    def test_request(self) -> None:
        """The request has the header, the method and the path, and a connection."""
        request = StubRequest({"Authorization": "Bearer t", "X-A": ["1", "2"]}, method="POST", path="/apis")
        verifyObject(IAuthenticationRequest, request)
        verifyObject(IClientConnection, request.connection)
        self.assertEqual(bearer_token(request), b"t")
        self.assertEqual((request.fields[b"x-a"], request.header(b"x-b")), ([b"1", b"2"], None))
        self.assertEqual((request.method, request.path), (b"POST", b"/apis"))

    def test_certificates(self) -> None:
        """Client certificates are given as PEM."""
        authority = CertificateAuthority.make("test")
        pair = authority.issue(CertConfig("carol", organization="staff"))
        seen: list[Any] = []
        harness = AuthenticatorHarness(Stub(lambda request: seen.extend(request.connection.peer_certificates())))
        for certificate in (pair.certificate, pair.certificate.decode()):
            harness.authenticate(certificates=[certificate])
        self.assertEqual([one.get_subject().CN for one in seen], ["carol", "carol"])

    def test_make(self) -> None:
        """A factory gets the flags, and may make nothing."""
        factory = AuthenticatorFactory("Stub", 150, "tests.testing.test_authentication:make")
        for plugin in (make, factory):
            self.assertIsNotNone(AuthenticatorHarness(plugin).authenticate({"X-Badge": "a"}).user)
            harness = AuthenticatorHarness(plugin, "--profiling=false")
            self.assertIsNone(harness.authenticator)
            self.assertEqual(harness.authenticate({"X-Badge": "a"}).code, 401)

    def test_installed(self) -> None:
        """An installed authenticator is found by its name."""
        path = Path(self.mktemp())
        path.write_text('t,bob,1,"a,b"\n')
        harness = AuthenticatorHarness("TokenFile", f"--token-auth-file={path}")
        user = harness.authenticate({"Authorization": "Bearer t"}).user
        self.assertEqual(user, UserInfo("bob", "1", ("a", "b", "system:authenticated")))
        self.assertRaises(ValueError, AuthenticatorHarness, "Unknown")

    def test_deferred(self) -> None:
        """A Deferred is awaited; one that never fires is an error, or awaited."""
        user = UserInfo("a")
        outcome = AuthenticatorHarness(Stub(lambda request: succeed(user))).authenticate()
        assert outcome.user is not None
        self.assertEqual(outcome.user.name, "a")
        never = Deferred[None]()
        self.assertRaises(NoResult, AuthenticatorHarness(Stub(lambda request: never)).authenticate)
        later = Deferred[UserInfo]()
        waiting = ensureDeferred(AuthenticatorHarness(Stub(lambda request: later)).authenticate_async(StubRequest()))
        later.callback(user)
        self.assertIsNotNone(self.successResultOf(waiting).user)

    def test_wrong_types(self) -> None:
        """A result that is no user is an error, also later."""
        for result in (lambda request: "alice", lambda request: True, lambda request: succeed("alice")):
            with self.assertRaises(TypeError) as caught:
                AuthenticatorHarness(Stub(result)).authenticate()
            self.assertIn("Stub.authenticate returned", str(caught.exception))

    def test_exception(self) -> None:
        """Other exceptions of the authenticator are raised."""

        def fail(request: IAuthenticationRequest) -> UserInfo:
            raise KeyError("k")

        self.assertRaises(KeyError, AuthenticatorHarness(Stub(fail)).authenticate)

    def test_unusable(self) -> None:
        """An object that is no authenticator stops the test as it stops the server."""
        self.assertRaises(StartError, AuthenticatorHarness, 1)
