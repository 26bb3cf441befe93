"""The WebSocket handshake of the server (RFC 6455)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Final

from attrs import frozen

#: The GUID that is hashed with the key (RFC 6455, section 1.3).
_ACCEPT: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Fields = Mapping[bytes, Sequence[bytes]]


class HandshakeError(Exception):
    """
    The WebSocket handshake failed.

    @ivar code: The HTTP status of the response.
    @ivar fields: Header fields for the response.
    """

    def __init__(self, code: int, text: str, fields: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.fields = fields


@frozen
class Handshake:
    """
    A valid handshake of a client.

    @ivar key: The value of C{Sec-WebSocket-Key}.
    @ivar protocols: The requested subprotocols, the preferred one first.
    """

    key: bytes
    protocols: Sequence[str]

    def fields(self, protocol: str = "") -> list[tuple[bytes, bytes]]:
        """
        Return the header fields of the response with status 101.

        @param protocol: The selected subprotocol; C{""} for none.
        """
        fields = [
            (b"Upgrade", b"websocket"),
            (b"Connection", b"Upgrade"),
            (b"Sec-WebSocket-Accept", b64encode(sha1(self.key + _ACCEPT, usedforsecurity=False).digest())),
        ]
        if protocol:
            fields.append((b"Sec-WebSocket-Protocol", protocol.encode("latin-1")))
        return fields


def is_upgrade(fields: Fields) -> bool:
    """
    Return whether a request asks for an upgrade of its connection.

    @param fields: Header fields, by names in lower case.
    """
    return any(b"upgrade" in value.lower() for value in fields.get(b"connection", ()))


def is_websocket(fields: Fields) -> bool:
    """Return whether a request asks for an upgrade to a WebSocket."""
    return fields.get(b"upgrade", (b"",))[0].lower() == b"websocket" and is_upgrade(fields)


def subprotocols(fields: Fields) -> list[str]:
    """Return the requested subprotocols."""
    requested = fields.get(b"sec-websocket-protocol", (b"",))[0].decode("latin-1").strip()
    return [one.strip() for one in requested.split(",")] if requested else []


def check_handshake(method: bytes, fields: Fields) -> Handshake:
    """
    Check a WebSocket handshake, with the error messages of the reference.

    The origin is not checked: clients send credentials that browsers do not add to requests of other origins.

    @raise HandshakeError: The handshake is invalid.
    """
    if method != b"GET":
        raise HandshakeError(405, "bad method")
    if not is_websocket(fields):
        raise HandshakeError(400, "not websocket protocol")
    key = fields.get(b"sec-websocket-key", (b"",))[0]
    if not key:
        raise HandshakeError(400, "mismatch challenge/response")
    if fields.get(b"sec-websocket-version", (b"",))[0] != b"13":
        raise HandshakeError(400, "missing or bad WebSocket Version", [(b"Sec-WebSocket-Version", b"13")])
    return Handshake(key, subprotocols(fields))
