"""
A client of one server that streams the bodies of requests and responses.

Connections are persistent. Over TLS, the server chooses HTTP/2 or HTTP/1.1 in the handshake; requests of HTTP/2 share
connections. Upgrades to other protocols use HTTP/1.1. Redirects, cookies and encodings are handled by the caller.
"""

from __future__ import annotations

import os
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
    PooledConnection,
    StaleConnection,
    StreamingResponse,
    UnprocessedRequest,
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
    from .http2.connection import Http2BackendConnection
    from .tls import ClientTLS

__all__ = ["StreamingClient", "StreamingResponse", "Upload"]

#: Maximum number of idle connections, and their timeout in seconds.
MAX_IDLE_CONNECTIONS: Final = 64
IDLE_TIMEOUT: Final = 60.0
#: Methods of requests that are retried if an idle connection has been closed.
_RETRIABLE_METHODS: Final = (b"GET", b"HEAD", b"OPTIONS")
#: Maximum number of retries of a request, on other connections.
MAX_RETRIES: Final = 3
#: The protocols that are offered in a handshake (ALPN), best first.
_HTTP2_OR_HTTP1: Final = (b"h2", b"http/1.1")
_HTTP1: Final = (b"http/1.1",)
#: The environment variable that disables HTTP/2 in clients, as in client-go.
DISABLE_HTTP2: Final = "DISABLE_HTTP2"


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
        http2: bool = True,
        endpoint: IStreamClientEndpoint | None = None,
    ) -> None:
        """
        @param connected: Contains C{owner} while this client has connections.
        @param owner: The client that uses this one; by default this client.
        @param max_idle_connections: Maximum number of idle connections; the oldest one is closed. With 0, each
            request opens a connection.
        @param idle_timeout: Seconds until an idle connection is closed.
        @param http2: Whether HTTP/2 is offered over TLS, unless the environment disables it.
        @param endpoint: Connects to the server; L{None} for the address in the settings.
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
        self._endpoint = endpoint
        self._connected: set[Closable] = set() if connected is None else connected
        self._owner: Closable = self if owner is None else owner
        self._max_idle_connections = max_idle_connections
        self._idle_timeout = idle_timeout
        self._fields = _default_headers(settings)
        self._names = frozenset(name.lower() for name, _ in self._fields)
        self._tls: ClientTLS | None = None
        if parts.scheme == "https":
            from .tls import ClientTLS

            offered = _HTTP2_OR_HTTP1 if http2 and not os.environ.get(DISABLE_HTTP2) else _HTTP1
            self._tls = ClientTLS(settings, host, offered)
        self._open: set[PooledConnection] = set()
        self._idle: list[PooledConnection] = []
        #: The connections of HTTP/2, idle ones as well.
        self._shared: list[Http2BackendConnection] = []
        self._connecting: set[Deferred[PooledConnection]] = set()
        #: Requests that wait for a connection that another request opens, by address.
        self._waiting: dict[tuple[str, int], list[Deferred[None]]] = {}
        self._woken: list[Deferred[None]] = []
        #: Whether the last handshake has chosen HTTP/2.
        self._expects_http2 = False
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
        connection = self._reusable(address)
        for retries_left in range(MAX_RETRIES, -1, -1):
            if connection is None:
                connection = await self._shared_or_new(address)
            answer = connection.round_trip(method, target, fields, body, response_header_timeout, False)
            self._wake()
            try:
                return await answer
            except StaleConnection as error:
                unprocessed = isinstance(error, UnprocessedRequest)
                if not (retries_left and (unprocessed or method in _RETRIABLE_METHODS)) or isinstance(body, Upload):
                    raise
                # Other idle connections may be stale as well.
                connection = self._reusable(address) if unprocessed else None
        raise AssertionError("the last try returns or raises")

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
        connection = await self._connect(self._current_address(), upgrade=True)
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

    def _reusable(self, address: tuple[str, int]) -> PooledConnection | None:
        """Return an open connection for a request; L{None} if there is none."""
        for shared in self._shared:
            if shared.address == address and shared.is_open:
                if shared in self._idle:
                    self._take(shared)
                return shared
        for connection in reversed(self._idle):
            if connection.address == address and connection not in self._shared:
                self._take(connection)
                return connection
        return None

    async def _shared_or_new(self, address: tuple[str, int]) -> PooledConnection:
        """
        Open a connection, or wait for one that another request opens and that can be shared.

        @raise Unreachable: No connection is possible.
        """
        while self._expects_http2 and address in self._waiting:
            waiter: Deferred[None] = Deferred()
            self._waiting[address].append(waiter)
            await waiter
            shared = self._reusable(address)
            if shared is not None:
                return shared
        if not self._expects_http2:
            return await self._connect(address)
        self._waiting[address] = []
        try:
            connection = await self._connect(address)
        except BaseException as error:
            for waiter in self._waiting.pop(address):
                if waiter.called:
                    continue
                if isinstance(error, Unreachable):
                    waiter.errback(error)
                else:
                    # The request was cancelled; another one connects.
                    waiter.callback(None)
            raise
        self._woken += self._waiting.pop(address)
        return connection

    def _wake(self) -> None:
        """Continue with requests that have waited for a connection; the request that has opened it was first."""
        woken, self._woken = self._woken, []
        for waiter in woken:
            if not waiter.called:
                waiter.callback(None)

    async def _connect(self, address: tuple[str, int], *, upgrade: bool = False) -> PooledConnection:
        if self._closed:
            raise Unreachable("context canceled")
        endpoint = self._endpoint or SSRFCheckedEndpoint(
            self._reactor,
            lambda: address,
            deny_internal=self.settings.deny_internal,
            allow_loopback=self.settings.allow_loopback,
            interfaces_are_loopback=self.settings.interfaces_are_loopback,
            denied_networks=self.settings.denied_networks,
            address_overrides=self._address_overrides,
            dial_timeout=self.settings.dial_timeout,
        )
        tls = self._tls
        secure = tls is not None
        factory = Factory.forProtocol(lambda: BackendConnection(self, self._reactor, address, secure))
        factory.noisy = False
        if tls is None:
            opening = endpoint.connect(factory)
        else:
            from ..http.connection.coalescingtls import CoalescingTLSFactory

            offered = tls.with_protocols(_HTTP1) if upgrade else tls
            opening = endpoint.connect(CoalescingTLSFactory(offered, factory, self._reactor, is_client=True))
        connecting = Deferred.fromCoroutine(self._connected_and_secured(opening, upgrade))
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

    async def _connected_and_secured(self, connecting: Deferred[IProtocol], upgrade: bool) -> PooledConnection:
        opened: Any = await connecting
        connection = opened if self._tls is None else opened.wrappedProtocol
        assert isinstance(connection, BackendConnection), "the factory creates these"
        if connection.handshake_done is None:
            return connection
        await self._with_handshake_timeout(connection.handshake_done, "net/http: TLS handshake timeout")
        if opened.negotiatedProtocol != b"h2":
            self._expects_http2 = self._expects_http2 and upgrade
            return connection
        return await self._switch_to_http2(opened, connection)

    async def _with_handshake_timeout(self, step: Deferred[None], text: str) -> None:
        """
        Wait for a step of the handshake.

        @param text: The error after the timeout.
        """
        timed_out = False

        def on_timeout() -> None:
            nonlocal timed_out
            timed_out = True
            step.cancel()

        timer = self._reactor.callLater(min(HANDSHAKE_TIMEOUT, self.settings.dial_timeout), on_timeout)
        try:
            await step
        except CancelledError:
            if timed_out:
                raise Unreachable(text) from None
            raise
        finally:
            if timer.active():
                timer.cancel()

    async def _switch_to_http2(self, transport: Any, connection: BackendConnection) -> PooledConnection:
        """
        Replace a connection whose handshake has chosen HTTP/2; this is called before data of HTTP/2 are read.

        @param transport: Its TLS.
        """
        from .http2.connection import Http2BackendConnection

        self._expects_http2 = True
        replacement = Http2BackendConnection(self, self._reactor, connection.address)
        self._open.discard(connection)
        transport.wrappedProtocol = replacement
        replacement.makeConnection(transport)  # type: ignore[no-untyped-call] # Twisted has no annotations here
        await self._with_handshake_timeout(replacement.ready, "http2: timeout awaiting SETTINGS")
        # Requests that began before the protocol was known have opened connections, too.
        other = self._reusable(connection.address)
        if other is not None:
            replacement.abort()
            return other
        if not replacement.is_open:
            replacement.abort()
            raise Unreachable("http2: the server accepts no streams")
        self._shared.append(replacement)
        return replacement

    def made(self, connection: PooledConnection) -> None:
        """Add an established connection."""
        self._open.add(connection)
        self._connected.add(self._owner)
        if self._closed:
            connection.abort()

    def lost(self, connection: PooledConnection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._shared = [shared for shared in self._shared if shared is not connection]
        if connection in self._idle:
            self._take(connection)
        if not self._open:
            self._connected.discard(self._owner)
            waiting, self._all_lost = self._all_lost, []
            for lost in waiting:
                lost.callback(None)
        self._check_retired()

    def released(self, connection: PooledConnection) -> None:
        """Keep a connection for later requests."""
        if self._closed or self._retired or not self._max_idle_connections:
            connection.abort()
            return
        if len(self._idle) >= self._max_idle_connections:
            self._idle[0].abort()
            del self._idle[0]
        connection.idle_since = self._reactor.seconds()
        self._idle.append(connection)
        if self._idle_timer is None:
            self._idle_timer = self._reactor.callLater(self._idle_timeout, self._close_idle)

    def _take(self, connection: PooledConnection) -> None:
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
