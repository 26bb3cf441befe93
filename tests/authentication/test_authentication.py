"""Tests for L{kubetwist.authentication}, but for certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from twisted.internet.defer import Deferred, fail, succeed
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import anonymous, bearer, tokenfile
from kubetwist.authentication.anonymous import Anonymous
from kubetwist.authentication.bearer import UnclaimedTokens, bearer_token, without_token
from kubetwist.authentication.configuration import AnonymousConfiguration, AuthenticationConfiguration
from kubetwist.authentication.errors import AuthenticationFailed, RequestRefused
from kubetwist.authentication.tokenfile import BadTokenFile, TokenFile
from kubetwist.authentication.union import AuthenticatorUnion, TokenFinding
from kubetwist.interfaces import IAuthenticator
from kubetwist.server.config import ServerConfig


class Request:
    """As much of a request as authenticators look at."""

    def __init__(self, authorization: str | None = None) -> None:
        self.fields = {} if authorization is None else {b"authorization": [authorization.encode("latin-1")]}
        self.warnings: list[str] = []
        self.path = b"/"

    def warn(self, text: str) -> None:
        """Keep a warning."""
        self.warnings.append(text)


class Says:
    """An authenticator that has one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def authenticate(self, request: Any) -> Any:
        """Give it."""
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class BearerTests(SynchronousTestCase):
    """Tests for L{bearer_token}."""

    def test_tokens(self) -> None:
        """A token stands behind C{Bearer}, in any case; more than that is ignored."""
        for header, token in (
            ("Bearer abc", b"abc"),
            ("bearer abc", b"abc"),
            ("BEARER abc ", b"abc"),
            ("Bearer abc def", b"abc"),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic abc", None),
            ("", None),
            (None, None),
        ):
            request = Request(header)
            self.assertEqual(bearer_token(request), token, header)
            self.assertEqual(request.warnings, [])

    def test_too_long(self) -> None:
        """A token that is longer than any needs to be is refused before anybody looks at it."""
        self.assertEqual(bearer_token(Request("Bearer " + "x" * 65536)), b"x" * 65536)
        self.assertRaises(AuthenticationFailed, bearer_token, Request("Bearer " + "x" * 65537))
        found = AuthenticatorUnion([UnclaimedTokens()]).user_of_token("x" * 3_000_000)
        self.assertEqual(found.error, "[invalid bearer token, the bearer token is longer than 65536 bytes]")

    def test_extra_space(self) -> None:
        """A token behind two spaces is ignored, and the client is told."""
        request = Request("Bearer  abc")
        self.assertIsNone(bearer_token(request))
        self.assertEqual(
            request.warnings,
            ["the provided Authorization header contains extra space before the bearer token, and is ignored"],
        )

    def websocket(self, *protocols: bytes) -> bytes | None:
        """The token of a WebSocket."""
        request = Request()
        request.fields = {b"upgrade": [b"WebSocket"], b"sec-websocket-protocol": list(protocols)}
        return bearer_token(request)

    def test_websocket(self) -> None:
        """A WebSocket may bring its token as a protocol beside the one that it wants to speak."""
        token = b"base64url.bearer.authorization.k8s.io.YWJjZA"
        self.assertEqual(self.websocket(b"v5.channel.k8s.io, " + token), b"abcd")
        self.assertEqual(self.websocket(b"v5.channel.k8s.io", token), b"abcd")
        self.assertIsNone(self.websocket(b"v5.channel.k8s.io"))
        request = Request()
        request.fields = {b"sec-websocket-protocol": [b"x," + token]}
        self.assertIsNone(bearer_token(request))
        self.assertEqual(without_token([b"v5.channel.k8s.io, " + token, b"x"]), [b"v5.channel.k8s.io, x"])
        self.assertEqual(without_token([b"a,b"]), [b"a,b"])

    def test_bad_websocket(self) -> None:
        """Two tokens, no token, or no other protocol are refused."""
        token = b"base64url.bearer.authorization.k8s.io."
        for protocols, why in (
            (b"x," + token + b"YQ," + token + b"YQ", "multiple base64.bearer.authorization tokens specified"),
            (b"x," + token + b"YQ==", "invalid base64.bearer.authorization token encoding"),
            (b"x," + token + b"YWJjZ", "invalid base64.bearer.authorization token encoding"),
            (b"x," + token + b"_w", "invalid base64.bearer.authorization token"),
            (token + b"YQ", "missing additional subprotocol"),
        ):
            error = self.assertRaises(AuthenticationFailed, self.websocket, protocols)
            self.assertEqual(str(error), why)

    def test_unclaimed(self) -> None:
        """A token that nobody knows is a bad credential; without one there is none."""
        unclaimed = bearer.make_unclaimed({}, None)
        verifyObject(IAuthenticator, unclaimed)
        self.assertRaises(AuthenticationFailed, unclaimed.authenticate, Request("Bearer abc"))
        self.assertIsNone(unclaimed.authenticate(Request()))  # type: ignore[func-returns-value]


class TokenFileTests(SynchronousTestCase):
    """Tests for L{TokenFile}."""

    def read(self, content: str) -> TokenFile:
        """Write a file, and read it."""
        path = Path(self.mktemp())
        path.write_text(content)
        return TokenFile.read(path)

    def test_users(self) -> None:
        """A line has a token, a name, a uid and, in quotes, groups; all are authenticated users."""
        tokens = self.read('t1,alice,u1,"developers,qa"\n\nt2,bob,u2\n')
        verifyObject(IAuthenticator, tokens)
        alice = tokens.authenticate(Request("Bearer t1"))
        self.assertEqual(alice, UserInfo("alice", "u1", ("developers", "qa", "system:authenticated")))
        self.assertEqual(tokens.authenticate(Request("Bearer t2")), UserInfo("bob", "u2", ("system:authenticated",)))

    def test_others(self) -> None:
        """Other tokens, or none, are not its business."""
        tokens = self.read("t1,alice,u1\n")
        self.assertIsNone(tokens.authenticate(Request("Bearer t")))
        self.assertIsNone(tokens.authenticate(Request("Bearer t11")))
        self.assertIsNone(tokens.authenticate(Request()))

    def test_empty_token(self) -> None:
        """A line without a token is nobody's."""
        self.assertIsNone(self.read(",alice,u1\n").authenticate(Request("Bearer ")))

    def test_bad_files(self) -> None:
        """A file of another form is refused with what is wrong about it."""
        error = self.assertRaises(BadTokenFile, self.read, "t1,alice\n")
        self.assertIn("must have at least 3 columns (token, user name, user uid), found 2", str(error))
        self.assertRaises(BadTokenFile, self.read, 't1,alice,u1,"open\n')
        self.assertRaises(BadTokenFile, TokenFile.read, Path("/nowhere/at/all"))

    def test_option(self) -> None:
        """Without the flag there is none."""
        self.assertIsNone(tokenfile.make({"token-auth-file": ""}, None))


class AnonymousTests(SynchronousTestCase):
    """Tests for L{Anonymous}."""

    options: ClassVar[dict[str, Any]] = {"anonymous-auth": True, "authentication-config": "", "authorization-mode": ()}

    def test_user(self) -> None:
        """Everyone is system:anonymous."""
        made = anonymous.make(self.options, None)
        assert made is not None
        verifyObject(IAuthenticator, made)
        self.assertEqual(made.authenticate(Request()), UserInfo("system:anonymous", "", ("system:unauthenticated",)))
        self.assertIsNone(anonymous.make({**self.options, "anonymous-auth": False}, None))

    def test_everything_allowed(self) -> None:
        """Where everyone may do everything nobody is anonymous."""
        self.assertIsNone(anonymous.make({**self.options, "authorization-mode": ("AlwaysAllow",)}, None))

    def test_file(self) -> None:
        """The configuration file may switch it off, or allow it for some paths; what it does not say flags do."""
        options = {**self.options, "authentication-config": "x"}

        def made(said: AnonymousConfiguration | None) -> Anonymous | None:
            server = ServerConfig.__new__(ServerConfig)
            server.authentication_configuration = AuthenticationConfiguration((), said)
            return anonymous.make(options, server)

        self.assertIsNone(made(AnonymousConfiguration(False)))
        self.assertIsNotNone(made(None))
        some = made(AnonymousConfiguration(True, ("/healthz", "/a b")))
        assert some is not None
        for path, known in ((b"/healthz", True), (b"/a%20b", True), (b"/healthz/", False), (b"/healthz/x", False)):
            request = Request()
            request.path = path
            self.assertEqual(some.authenticate(request) is not None, known, path)


class UnionTests(SynchronousTestCase):
    """Tests for L{AuthenticatorUnion}."""

    alice = UserInfo("alice", groups=("system:authenticated",))

    def ask(self, *answers: Any, last: Any = None) -> Any:
        """What several say together."""
        union = AuthenticatorUnion([Says(answer) for answer in answers], last)
        verifyObject(IAuthenticator, union)
        result = union.authenticate(Request())
        return self.successResultOf(result) if isinstance(result, Deferred) else result

    def test_first_who_knows(self) -> None:
        """The first who knows the user decides, and the others are not asked."""
        other = Says(UserInfo("bob"))
        union = AuthenticatorUnion([Says(None), Says(self.alice), other])
        self.assertIs(union.authenticate(Request()), self.alice)
        self.assertEqual(other.asked, 0)

    def test_group(self) -> None:
        """Whoever is known is an authenticated user."""
        self.assertEqual(self.ask(UserInfo("alice", groups=("a",))).groups, ("a", "system:authenticated"))
        self.assertEqual(self.ask(succeed(UserInfo("alice"))).groups, ("system:authenticated",))

    def test_good_after_bad(self) -> None:
        """Bad credentials do no harm where there are good ones, too."""
        bad = AuthenticationFailed("bad")
        self.assertIs(self.ask(bad, self.alice), self.alice)
        self.assertEqual(self.ask(bad, succeed(None), fail(bad), self.alice), self.alice)

    def test_bad_is_not_anonymous(self) -> None:
        """A request with bad credentials is not one without any."""
        bad = AuthenticationFailed("bad")
        union = AuthenticatorUnion([Says(bad), Says(None)], Anonymous())
        self.assertRaises(AuthenticationFailed, union.authenticate, Request())
        union = AuthenticatorUnion([Says(fail(bad)), Says(None)], Anonymous())
        self.failureResultOf(union.authenticate(Request()), AuthenticationFailed)

    def test_all_problems(self) -> None:
        """The log gets to know every problem, each once."""
        first, second = AuthenticationFailed("bad"), AuthenticationFailed("worse")
        for asked in ([first, None, second, first], [fail(first), second, fail(first)]):
            union = AuthenticatorUnion([Says(answer) for answer in asked], Anonymous())
            try:
                result = union.authenticate(Request())
                error: Any = self.failureResultOf(result).value
            except AuthenticationFailed as failed:
                error = failed
            self.assertEqual(str(error), "[bad, worse]")

    def test_refused(self) -> None:
        """Where something is wrong with the request nobody else is asked."""
        for refusal in (RequestRefused("odd"), fail(RequestRefused("odd"))):
            other = Says(self.alice)
            union = AuthenticatorUnion([Says(succeed(None)), Says(refusal), other])
            self.failureResultOf(union.authenticate(Request()), RequestRefused)
            self.assertEqual(other.asked, 0)
        union = AuthenticatorUnion([Says(RequestRefused("odd")), Says(self.alice)])
        self.assertRaises(RequestRefused, union.authenticate, Request())

    def test_nobody(self) -> None:
        """A request without credentials is the last one's, if there is one."""
        self.assertEqual(self.ask(None, last=Anonymous()).name, "system:anonymous")
        self.assertEqual(self.ask(succeed(None), last=Anonymous()).groups, ("system:unauthenticated",))
        self.assertIsNone(self.ask(None))

    def test_unclaimed_token(self) -> None:
        """A token that nobody knows is refused, not taken for anonymous."""
        union = AuthenticatorUnion([Says(None), UnclaimedTokens()], Anonymous())
        self.assertRaises(AuthenticationFailed, union.authenticate, Request("Bearer x"))

    def test_user_of_token(self) -> None:
        """A token can be looked up without a request; what nobody knows, and no token at all, is nobody's."""
        path = Path(self.mktemp())
        path.write_text("t1,alice,u1\n")
        union = AuthenticatorUnion([TokenFile.read(path), UnclaimedTokens()], Anonymous())
        alice = UserInfo("alice", "u1", ("system:authenticated",))
        self.assertEqual(union.user_of_token("t1"), TokenFinding(alice))
        # As from a file: what is blank at the end of a header does not belong to it.
        self.assertEqual(union.user_of_token("t1\n"), TokenFinding(alice))
        nobody = TokenFinding(None, error="invalid bearer token")
        self.assertEqual(union.user_of_token("t2"), nobody)
        self.assertEqual(union.user_of_token(""), nobody)
        later = AuthenticatorUnion([Says(succeed(alice))])
        self.assertEqual(self.successResultOf(later.user_of_token("t1")), TokenFinding(alice))
        later = AuthenticatorUnion([Says(fail(AuthenticationFailed("bad")))])
        found = self.successResultOf(later.user_of_token("t1"))
        self.assertEqual(found, TokenFinding(None, error="[invalid bearer token, bad]"))
