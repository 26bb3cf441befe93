"""The client's side of an upgrade to SPDY/3.1, for connections to kubelets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..api.decoding import BodyError, decode_json
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..client.errors import Unreachable
from .commands import encode_status, internal_error_status

if TYPE_CHECKING:
    from ..client.streaming import StreamingClient, StreamingResponse

Fields = Sequence[tuple[bytes, bytes]]

SPDY: Final = b"SPDY/3.1"
#: Header with the supported stream protocol versions, or with the selected one.
PROTOCOL_VERSION: Final = b"X-Stream-Protocol-Version"
#: Maximum bytes of a response with the reason of a failed upgrade.
_MAX_ERROR_BODY: Final = 64 * 1024


def spdy_upgrade_fields(protocols: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the header fields that request SPDY with one of these protocols; the preferred one is first."""
    return [
        (b"Connection", b"Upgrade"),
        (b"Upgrade", SPDY),
        *((PROTOCOL_VERSION, protocol.encode("latin-1")) for protocol in protocols),
    ]


def is_spdy(response: StreamingResponse) -> bool:
    """Return whether a response has switched the connection to SPDY."""
    connection = (response.field(b"connection") or b"").lower()
    upgrade = (response.field(b"upgrade") or b"").lower()
    return response.switched and b"upgrade" in connection and SPDY.lower() in upgrade


class UpgradeFailure(Exception):
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
    @param protocols: See L{spdy_upgrade_fields}.
    @return: The response; the caller hijacks its connection.
    @raise UpgradeFailure: The server does not upgrade the connection.
    """
    url = client.settings.url.rstrip("/") + target.decode("latin-1")
    try:
        response = await client.upgrade(b"POST", target, [*fields, *spdy_upgrade_fields(protocols)])
    except Unreachable as error:
        raise UpgradeFailure(internal_error_status(f"error sending request: Post {quoted(url)}: {error}")) from None
    if is_spdy(response):
        return response
    if response.switched:
        response.abort()
        raise UpgradeFailure(internal_error_status("unable to upgrade connection: "))
    location = response.field(b"location")
    if 300 <= response.code < 400 and location:
        response.abort()
        raise UpgradeFailure(internal_error_status(f"error sending request: Post {quoted(url)}: redirect not allowed"))
    try:
        body = await response.collect(_MAX_ERROR_BODY)
    except Unreachable:
        raise UpgradeFailure(
            internal_error_status("unable to upgrade connection: unable to read error from server response")
        ) from None
    raise UpgradeFailure(_upgrade_error_status(body))


def _upgrade_error_status(body: bytes) -> bytes:
    """Return the Status in the body of a failed upgrade, or a Status with the body's text."""
    status: JSONValue = None
    with suppress(BodyError):
        status = decode_json(body).value
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("apiVersion") == "v1":
        return encode_status(status)
    return internal_error_status(f"unable to upgrade connection: {body.decode('utf-8', 'replace').strip()}")
