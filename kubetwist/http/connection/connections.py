"""The open connections of a server: their deadlines, the order of pipelined requests, and shared limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.logger import Logger

from .bodyshares import BodyShares
from .connectionlimit import ConnectionLimiter
from .memoryrelease import MemoryRelease

#: Seconds per iteration of the reactor for pipelined requests.
TURN_SECONDS: Final = 0.005
#: Seconds without reading after which the server checks whether a client is still connected.
STALLED_TIMEOUT: Final = 30.0


class Connection(Protocol):
    """
    A connection of any protocol.

    @ivar deadline: Time at which C{deadline_expired} is called, in the time of L{Connections.now}; L{None} for never.
    """

    deadline: float | None

    @property
    def idle(self) -> bool:
        """Return whether no request is open."""

    @property
    def unflushed(self) -> bool:
        """Return whether much data is written that the client has not read yet."""

    def getPeer(self) -> IAddress:
        """Return the address of the client."""

    def deadline_expired(self) -> None:
        """Handle the passing of the deadline."""

    def serve_next(self) -> None:
        """Serve the next request that has arrived."""

    def disable_keep_alive(self) -> None:
        """Accept no further requests."""

    def close(self) -> None:
        """Close a connection without an open request."""

    def abort(self) -> None:
        """Close the connection now."""


class Paused(Protocol):
    """A connection with paused reading."""

    def check_peer_closed(self) -> None:
        """Close the connection if the client has disconnected."""


class Connections:
    """
    The open connections of a server.

    One clock checks the deadlines of all of them, since a timer for every request is expensive.

    @ivar now: Returns the time of the reactor.
    @ivar channels: All connections.
    @ivar stalled: Connections with paused reading, and the time of the pause.
    @ivar failed_handshakes: Number of connections that ended during the TLS handshake.
    @ivar connection_limiter: Counts and limits connections per client network.
    @ivar bodies: Bytes of large bodies, by client.
    @ivar memory: Releases memory after connections have closed; L{None} does not.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: IReactorTime,
        *,
        connection_limiter: ConnectionLimiter | None = None,
        bodies: BodyShares | None = None,
        memory: MemoryRelease | None = None,
    ) -> None:
        """
        @param connection_limiter: By default, the number of connections per client is unlimited.
        @param bodies: By default, large bodies have the usual limit.
        @param memory: Releases memory after connections have closed; L{None} does not.
        """
        self._reactor = reactor
        self.now: Callable[[], float] = reactor.seconds
        self.channels: set[Connection] = set()
        self.stalled: dict[Paused, float] = {}
        self.failed_handshakes = 0
        self.connection_limiter = connection_limiter or ConnectionLimiter()
        self.bodies = bodies or BodyShares()
        self.memory = memory
        self._pipelined: deque[Connection] = deque()

    def connected(self, channel: Connection) -> bool:
        """
        Register a connection.

        @return: Whether it may stay.
        """
        self.channels.add(channel)
        return self.connection_limiter.acquire(channel.getPeer())

    def disconnected(self, channel: Connection) -> None:
        """Unregister a connection, which was lost."""
        self.channels.discard(channel)
        self.connection_limiter.release(channel.getPeer())
        if self.memory is not None:
            self.memory.connection_closed()

    def has(self, channel: object) -> bool:
        """Return whether a connection is open."""
        return channel in self.channels

    def check_deadlines(self) -> None:
        """Check the deadlines of all connections."""
        now = self.now()
        for channel in [one for one in self.channels if one.deadline is not None and one.deadline <= now]:
            channel.deadline_expired()
        if self.stalled:
            for stalled in [one for one, since in self.stalled.items() if now - since >= STALLED_TIMEOUT]:
                stalled.check_peer_closed()

    def schedule_pipelined(self, channel: Connection) -> None:
        """Schedule the next pipelined request of a connection, after the requests of other connections."""
        if not self._pipelined:
            self._reactor.callLater(0, self._serve_pipelined)
        self._pipelined.append(channel)

    def _serve_pipelined(self) -> None:
        """Serve one request of each waiting connection, until the time of the iteration is used up."""
        until = self.now() + TURN_SECONDS
        for _ in range(len(self._pipelined)):
            channel = self._pipelined.popleft()
            try:
                channel.serve_next()
            except Exception:
                # The requests of other connections wait, too.
                self._log.failure("serving a connection failed; it is closed")
                channel.abort()
            if self.now() > until:
                break
        if self._pipelined:
            self._reactor.callLater(0, self._serve_pipelined)

    # Stopping.

    def stop(self) -> None:
        """Cancel scheduled calls."""
        if self.memory is not None:
            self.memory.stop()

    def close_idle(self) -> None:
        """Close idle connections now, and busy ones as soon as their requests are answered."""
        for channel in list(self.channels):
            channel.disable_keep_alive()
            if channel.idle:
                channel.close()

    def abort_all(self) -> None:
        """Close every connection now."""
        for channel in list(self.channels):
            channel.abort()
