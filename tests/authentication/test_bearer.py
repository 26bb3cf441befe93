"""Tests for L{kubetwist.authentication.bearer}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.authentication import bearer
from kubetwist.authentication.bearer import InvalidTokenAuthenticator, bearer_token, without_token
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.union import AuthenticatorUnion
from kubetwist.interfaces import IAuthenticator
from tests.authentication.requests import Request


class BearerTests(SynchronousTestCase):
    """Tests for L{bearer_token}."""

    def test_tokens(self) -> None:
        """A token follows C{Bearer} in any case; further words are ignored."""
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
        """A token that exceeds the maximum length is rejected before it is processed."""
        self.assertEqual(bearer_token(Request("Bearer " + "x" * 65536)), b"x" * 65536)
        self.assertRaises(AuthenticationFailed, bearer_token, Request("Bearer " + "x" * 65537))
        result = AuthenticatorUnion([InvalidTokenAuthenticator()]).authenticate_token("x" * 3_000_000)
        self.assertEqual(result.error, "[invalid bearer token, the bearer token is longer than 65536 bytes]")

    def test_extra_space(self) -> None:
        """A token behind two spaces is ignored, and the client gets a warning."""
        request = Request("Bearer  abc")
        self.assertIsNone(bearer_token(request))
        self.assertEqual(
            request.warnings,
            ["the provided Authorization header contains extra space before the bearer token, and is ignored"],
        )

    def websocket(self, *protocols: bytes) -> bytes | None:
        """Return the token of a WebSocket handshake."""
        request = Request()
        request.fields = {b"upgrade": [b"WebSocket"], b"sec-websocket-protocol": list(protocols)}
        return bearer_token(request)

    def test_websocket(self) -> None:
        """A WebSocket handshake can have the token as a subprotocol beside the requested subprotocol."""
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
        """Two tokens, an invalid token, or no other subprotocol are rejected."""
        token = b"base64url.bearer.authorization.k8s.io."
        for protocols, message in (
            (b"x," + token + b"YQ," + token + b"YQ", "multiple base64.bearer.authorization tokens specified"),
            (b"x," + token + b"YQ==", "invalid base64.bearer.authorization token encoding"),
            (b"x," + token + b"YWJjZ", "invalid base64.bearer.authorization token encoding"),
            (b"x," + token + b"_w", "invalid base64.bearer.authorization token"),
            (token + b"YQ", "missing additional subprotocol"),
        ):
            error = self.assertRaises(AuthenticationFailed, self.websocket, protocols)
            self.assertEqual(str(error), message)

    def test_invalid_token(self) -> None:
        """A token that no authenticator accepted is invalid; a request without a token is not rejected."""
        unclaimed = bearer.invalid_token_authenticator({}, None)
        verifyObject(IAuthenticator, unclaimed)
        self.assertRaises(AuthenticationFailed, unclaimed.authenticate, Request("Bearer abc"))
        self.assertIsNone(unclaimed.authenticate(Request()))  # type: ignore[func-returns-value]
