"""Tests for L{kubetwist.streams.handshakes}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams.handshakes import HandshakeError, check_handshake, is_websocket, subprotocols

ASKED = {
    b"connection": [b"keep-alive, Upgrade"],
    b"upgrade": [b"WebSocket"],
    b"sec-websocket-key": [b"dGhlIHNhbXBsZSBub25jZQ=="],
    b"sec-websocket-version": [b"13"],
}


class HandshakeTests(SynchronousTestCase):
    """WebSocket handshakes."""

    def test_accepted(self) -> None:
        """The response has the accept key of RFC 6455 and the selected subprotocol."""
        handshake = check_handshake(b"GET", {**ASKED, b"sec-websocket-protocol": [b"a, v5.channel.k8s.io ,b"]})
        self.assertEqual(["a", "v5.channel.k8s.io", "b"], handshake.protocols)
        self.assertEqual(
            [
                (b"Upgrade", b"websocket"),
                (b"Connection", b"Upgrade"),
                (b"Sec-WebSocket-Accept", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
                (b"Sec-WebSocket-Protocol", b"a"),
            ],
            handshake.fields("a"),
        )
        self.assertEqual(3, len(handshake.fields()))

    def test_refused(self) -> None:
        """Invalid handshakes are rejected with the messages of the reference."""
        for method, without, code, reason in [
            (b"POST", b"", 405, "bad method"),
            (b"GET", b"upgrade", 400, "not websocket protocol"),
            (b"GET", b"connection", 400, "not websocket protocol"),
            (b"GET", b"sec-websocket-key", 400, "mismatch challenge/response"),
            (b"GET", b"sec-websocket-version", 400, "missing or bad WebSocket Version"),
        ]:
            fields = {name: value for name, value in ASKED.items() if name != without}
            error = self.assertRaises(HandshakeError, check_handshake, method, fields)
            self.assertEqual((code, reason), (error.code, str(error)))

    def test_is_websocket(self) -> None:
        """A request is a WebSocket request if its Connection and Upgrade fields say so."""
        self.assertTrue(is_websocket(ASKED))
        self.assertFalse(is_websocket({b"upgrade": [b"websocket"]}))
        self.assertFalse(is_websocket({**ASKED, b"upgrade": [b"SPDY/3.1"]}))
        self.assertEqual([], subprotocols({}))
