"""
A client of one server that streams the bodies of requests and responses.

Connections are persistent. Redirects, cookies and encodings are handled by the caller.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IProtocol, IStreamClientEndpoint
from twisted.internet.protocol import Factory

from ..interfaces import IServerReactor
from .connection import (
    HANDSHAKE_TIMEOUT,
    BackendConnection,
    StaleConnection,
    StreamingResponse,
    Upload,
)
from .dialing import (
    AddressOverrides,
    Closable,
    SSRFCheckedEndpoint,
)
from .errors import (
    InvalidRESTConfig,
    Unreachable,
)
from .restconfig import (
    RESTConfig,
    split_url,
)

if TYPE_CHECKING:
    from .tls import ClientTLS

__all__ = ["StreamingClient", "StreamingResponse", "Upload"]

#: Maximum number of idle connections, and their timeout in seconds.
MAX_IDLE_CONNECTIONS: Final = 64
IDLE_TIMEOUT: Final = 60.0
#: Methods of requests that are retried if an idle connection has been closed.
_RETRIABLE_METHODS: Final = (b"GET", b"HEAD", b"OPTIONS")


class StreamingClient:
    """
    Client of the server in its settings; each request names a path.

    @ivar settings: The settings, unchanged.
    @ivar host: The value of the C{Host} header, unless a request sets another.
    """

    def __init__(
        self,
        reactor: IServerReactor,
        settings: RESTConfig,
        *,
        address_overrides: AddressOverrides | None = None,
        connected: set[Closable] | None = None,
        owner: Closable | None = None,
        max_idle_connections: int = MAX_IDLE_CONNECTIONS,
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        """
        @param connected: Contains C{owner} while this client has connections.
        @param owner: The client that uses this one; by default this client.
        @param max_idle_connections: Maximum number of idle connections; the oldest one is closed.
        @param idle_timeout: Seconds until an idle connection is closed.
        @raise InvalidRESTConfig: The settings are invalid.
        """
        parts, host, port = split_url(settings.url)
        if not parts.netloc.isascii():
            raise InvalidRESTConfig(f"no URL of a server: {settings.url}")
        self.settings = settings
        self.host = parts.netloc.rpartition("@")[2].encode()
        self._reactor = reactor
        self._address_overrides = address_overrides
        self._address = host, port
        self._connected: set[Closable] = set() if connected is None else connected
        self._owner: Closable = self if owner is None else owner
        self._max_idle_connections = max_idle_connections
        self._idle_timeout = idle_timeout
        self._fields = _default_headers(settings)
        self._names = frozenset(name.lower() for name, _ in self._fields)
        self._tls: ClientTLS | None = None
        if parts.scheme == "https":
            from .tls import ClientTLS

            self._tls = ClientTLS(settings, host)
        self._open: set[BackendConnection] = set()
        self._idle: list[BackendConnection] = []
        self._connecting: set[Deferred[BackendConnection]] = set()
        self._idle_timer: IDelayedCall | None = None
        self._closed = self._retired = False
        self._all_lost: list[Deferred[None]] = []

    @property
    def idle(self) -> int:
        """Return the number of idle connections."""
        return len(self._idle)

    @property
    def busy(self) -> int:
        """Return the number of connections that are opening or in use."""
        return len(self._open) - len(self._idle) + len(self._connecting)

    async def request(
        self,
        method: bytes,
        target: bytes,
        fields: Sequence[tuple[bytes, bytes]],
        body: bytes | Upload | None = None,
        *,
        response_header_timeout: float | None = None,
    ) -> StreamingResponse:
        """
        Send a request.

        @param target: The path and the query, escaped.
        @param fields: The header, without the fields that frame the body. C{Host} and the fields of the settings are
            added.
        @param response_header_timeout: Seconds until the head of the response.
        @return: Fires with the response when its head arrives.
        @raise Unreachable: No response arrives.
        """
        fields = self._add_default_headers(fields)
        address = self._current_address()
        for connection in reversed(self._idle):
            if connection.address == address:
                self._take(connection)
                try:
                    return await connection.round_trip(method, target, fields, body, response_header_timeout, False)
                except StaleConnection:
                    if method not in _RETRIABLE_METHODS or isinstance(body, Upload):
                        raise
                break
        connection = await self._connect(address)
        return await connection.round_trip(method, target, fields, body, response_header_timeout, False)

    async def upgrade(
        self,
        method: bytes,
        target: bytes,
        fields: Sequence[tuple[bytes, bytes]],
        *,
        response_header_timeout: float | None = None,
    ) -> StreamingResponse:
        """
        Upgrade to another protocol, on a separate connection.

        @param fields: With C{Connection} and C{Upgrade}.
        @return: The response; if it is C{101} it is C{switched}, and can be taken over.
        @raise Unreachable: No response arrives.
        """
        connection = await self._connect(self._current_address())
        return await connection.round_trip(
            method, target, self._add_default_headers(fields), None, response_header_timeout, True
        )

    def _add_default_headers(self, fields: Sequence[tuple[bytes, bytes]]) -> Sequence[tuple[bytes, bytes]]:
        defaults = list(self._fields)
        if not any(name.lower() == b"host" for name, _ in fields):
            defaults.insert(0, (b"host", self.host))
        if not defaults:
            return fields
        if self._names:
            fields = [field for field in fields if field[0].lower() not in self._names]
        return [*defaults, *fields]

    def _current_address(self) -> tuple[str, int]:
        if self._closed:
            raise Unreachable("context canceled")
        return self.settings.resolve_address() if self.settings.resolve_address is not None else self._address

    # Connections.

    async def _connect(self, address: tuple[str, int]) -> BackendConnection:
        endpoint: IStreamClientEndpoint = SSRFCheckedEndpoint(
            self._reactor,
            lambda: address,
            deny_internal=self.settings.deny_internal,
            allow_loopback=self.settings.allow_loopback,
            interfaces_are_loopback=self.settings.interfaces_are_loopback,
            denied_networks=self.settings.denied_networks,
            address_overrides=self._address_overrides,
            dial_timeout=self.settings.dial_timeout,
        )
        secure = self._tls is not None
        factory = Factory.forProtocol(lambda: BackendConnection(self, self._reactor, address, secure))
        factory.noisy = False
        if self._tls is None:
            opening = endpoint.connect(factory)
        else:
            from twisted.protocols.tls import TLSMemoryBIOFactory

            # Twisted's wrapClientTLS uses the global reactor.
            opening = endpoint.connect(TLSMemoryBIOFactory(self._tls, True, factory, self._reactor))
        connecting = Deferred.fromCoroutine(self._connected_and_secured(opening))
        self._connecting.add(connecting)
        try:
            return await connecting
        except CancelledError:
            if self._closed:
                raise Unreachable("context canceled") from None
            raise
        except Unreachable as error:
            error.sent = False
            raise
        finally:
            self._connecting.discard(connecting)
            self._check_retired()

    async def _connected_and_secured(self, connecting: Deferred[IProtocol]) -> BackendConnection:
        opened: Any = await connecting
        connection = opened if self._tls is None else opened.wrappedProtocol
        assert isinstance(connection, BackendConnection), "the factory creates these"
        handshake_done, timed_out = connection.handshake_done, False
        if handshake_done is None:
            return connection

        def on_timeout() -> None:
            nonlocal timed_out
            timed_out = True
            handshake_done.cancel()

        timer = self._reactor.callLater(min(HANDSHAKE_TIMEOUT, self.settings.dial_timeout), on_timeout)
        try:
            await handshake_done
        except CancelledError:
            if timed_out:
                raise Unreachable("net/http: TLS handshake timeout") from None
            raise
        finally:
            if timer.active():
                timer.cancel()
        return connection

    def made(self, connection: BackendConnection) -> None:
        """Add an established connection."""
        self._open.add(connection)
        self._connected.add(self._owner)
        if self._closed:
            connection.abort()

    def lost(self, connection: BackendConnection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        if connection in self._idle:
            self._take(connection)
        if not self._open:
            self._connected.discard(self._owner)
            waiting, self._all_lost = self._all_lost, []
            for lost in waiting:
                lost.callback(None)
        self._check_retired()

    def released(self, connection: BackendConnection) -> None:
        """Keep a connection for later requests."""
        if self._closed or self._retired:
            connection.abort()
            return
        if len(self._idle) >= self._max_idle_connections:
            self._idle[0].abort()
            del self._idle[0]
        connection.idle_since = self._reactor.seconds()
        self._idle.append(connection)
        if self._idle_timer is None:
            self._idle_timer = self._reactor.callLater(self._idle_timeout, self._close_idle)

    def _take(self, connection: BackendConnection) -> None:
        self._idle.remove(connection)
        if not self._idle and self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _close_idle(self) -> None:
        """Close connections that were idle for too long; the oldest are first."""
        self._idle_timer = None
        idle, now = self._idle, self._reactor.seconds()
        while idle and now - idle[0].idle_since >= self._idle_timeout:
            idle.pop(0).abort()
        if idle:
            seconds = self._idle_timeout - (now - idle[0].idle_since)
            self._idle_timer = self._reactor.callLater(seconds, self._close_idle)

    # Closing.

    def retire(self) -> None:
        """Close after the last pending exchange; the caller has replaced this client."""
        self._retired = True
        self.drop_idle()
        self._check_retired()

    def _check_retired(self) -> None:
        if self._retired and not (self._open or self._connecting):
            self._closed = True

    def close(self) -> Deferred[None]:
        """Abort all exchanges and connections; fires when all are closed. Idempotent."""
        self._closed = True
        self.drop_idle()
        for connecting in list(self._connecting):
            connecting.cancel()
        if not self._open:
            return succeed(None)
        lost: Deferred[None] = Deferred()
        self._all_lost.append(lost)
        for connection in list(self._open):
            connection.abort()
        return lost

    def drop_idle(self) -> None:
        """Close idle connections at once."""
        idle, self._idle = self._idle, []
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for connection in idle:
            connection.abort()


def _default_headers(settings: RESTConfig) -> list[tuple[bytes, bytes]]:
    """Return the header fields that the settings add to each request."""
    fields = [(name.encode(), value.encode()) for name, value in settings.headers.items()]
    if settings.token:
        fields.append((b"authorization", b"Bearer " + settings.token.encode()))
    elif settings.basic_auth is not None:
        fields.append((b"authorization", b"Basic " + b64encode(":".join(settings.basic_auth).encode())))
    return fields
