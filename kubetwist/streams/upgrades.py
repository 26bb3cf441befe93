"""How a kubelet is asked for SPDY/3.1, and what its answer means."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..api.decoding import BodyError, decode_json
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..client.errors import Unreachable
from .commands import encode_status, internal

if TYPE_CHECKING:
    from ..client.streaming import StreamingClient, StreamingResponse

Fields = Sequence[tuple[bytes, bytes]]

SPDY: Final = b"SPDY/3.1"
#: Header with the supported stream protocol versions, or with the selected one.
PROTOCOL_VERSION: Final = b"X-Stream-Protocol-Version"
#: Maximum bytes of a response with the reason of a failed upgrade.
_MAX_REFUSAL: Final = 64 * 1024


def spdy_fields(protocols: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the header fields that request SPDY with one of these protocols; the preferred one is first."""
    return [
        (b"Connection", b"Upgrade"),
        (b"Upgrade", SPDY),
        *((PROTOCOL_VERSION, protocol.encode("latin-1")) for protocol in protocols),
    ]


def is_spdy(answer: StreamingResponse) -> bool:
    """Return whether a response has switched the connection to SPDY."""
    connection = (answer.field(b"connection") or b"").lower()
    upgrade = (answer.field(b"upgrade") or b"").lower()
    return answer.switched and b"upgrade" in connection and SPDY.lower() in upgrade


class NoUpgrade(Exception):
    """
    The upgrade to SPDY failed.

    @ivar status: The reason, as a Status for the error channel.
    """

    def __init__(self, status: bytes) -> None:
        super().__init__(status)
        self.status = status


async def connect(
    client: StreamingClient, target: bytes, fields: Fields, protocols: Sequence[str]
) -> StreamingResponse:
    """
    Request an upgrade to SPDY.

    @param client: Client of the server.
    @param target: Path and query.
    @param fields: Further header fields.
    @param protocols: As for L{spdy_fields}.
    @return: The response, whose connection is to be taken over.
    @raise NoUpgrade: The server does not upgrade the connection.
    """
    url = client.settings.url.rstrip("/") + target.decode("latin-1")
    try:
        answer = await client.upgrade(b"POST", target, [*fields, *spdy_fields(protocols)])
    except Unreachable as error:
        raise NoUpgrade(internal(f"error sending request: Post {quoted(url)}: {error}")) from None
    if is_spdy(answer):
        return answer
    if answer.switched:
        answer.abort()
        raise NoUpgrade(internal("unable to upgrade connection: "))
    location = answer.field(b"location")
    if 300 <= answer.code < 400 and location:
        answer.abort()
        raise NoUpgrade(internal(f"error sending request: Post {quoted(url)}: redirect not allowed"))
    try:
        why = await answer.collect(_MAX_REFUSAL)
    except Unreachable:
        raise NoUpgrade(internal("unable to upgrade connection: unable to read error from server response")) from None
    raise NoUpgrade(_refusal(why))


def _refusal(why: bytes) -> bytes:
    """Return the reason of the other side as a Status: its own, or one with its text."""
    status: JSONValue = None
    with suppress(BodyError):
        status = decode_json(why).value
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("apiVersion") == "v1":
        return encode_status(status)
    return internal(f"unable to upgrade connection: {why.decode('utf-8', 'replace').strip()}")
