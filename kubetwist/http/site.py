"""
The web site: the factory of connections, and the clock that watches over them.

Requests are L{kubetwist.http.request}'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.web.http import datetimeToString
from twisted.web.resource import IResource, getChildForRequest
from twisted.web.server import Site

from .connection.bodyshares import BodyShares
from .connection.memoryrelease import MemoryRelease
from .connection.neighbours import Neighbours
from .http1.channel import KubeChannel
from .http1.requestbody import BodyReader
from .request import Handler, KubeRequest

if TYPE_CHECKING:
    from ..flowcontrol.turns import Turns
    from .connection.memorylimit import MemoryGuard

__all__ = ["KubeSite", "traverse"]

#: Seconds for which pipelined requests are served in one turn of the reactor.
TURN: Final = 0.005
#: Seconds without reading after which it is looked whether a client is still there.
STALLED: Final = 30.0


class KubeSite(Site):
    """
    The factory of connections, and the clock that watches over them.

    @ivar handler: What answers requests: the filters, and behind them the servers of the chain.
    @ivar open_requests: Those that are not answered yet.
    @ivar long_running: What ends each of those that would not end by themselves.
    @ivar channels: All connections.
    @ivar turns: Where heavy work is done a little at a time; L{None} does it at once.
    @ivar ended: Called with each request once it is over; L{None} when nobody wants to know.
    @ivar late: Called with the code of an answer that came when the server had put an end to its request; likewise.
    @ivar failed_handshakes: How many connections ended before they were ones.
    @ivar stalled: Those that are not read from, and since when.
    @ivar streams: Each says of a request with a body, when its head has arrived, whether the body shall be passed on
        as it arrives: there is no limit to it, and L{KubeRequest.deliver_body} is how it is had. Only one has to.
    @ivar heads_first: Whether C{handler} authorizes requests by their heads, and requests large bodies with
        L{KubeRequest.collect_body}.
    @ivar guard: Decides which requests there is memory for; L{None} without a limit.
    @ivar bodies: Bytes of large bodies, by client.
    @ivar neighbours: Counts connections by where they come from, and says which are too many.
    @ivar memory: Releases memory after connections have closed; L{None} does not.
    @ivar date: For C{Date} headers.
    """

    _log = Logger()
    noisy = False
    requestFactory = KubeRequest  # type: ignore[assignment]
    timeOut = None

    def __init__(self, handler: Handler, reactor: Any) -> None:
        # There is no tree of resources in front of the filters.
        super().__init__(None, reactor=reactor, timeout=None)  # type: ignore[no-untyped-call]
        self.handler = handler
        self.open_requests: set[KubeRequest] = set()
        self.long_running: dict[KubeRequest, Callable[[], object]] = {}
        self.now: Callable[[], float] = reactor.seconds
        self.date: bytes = datetimeToString()
        self.channels: set[KubeChannel] = set()
        self.ended: Callable[[KubeRequest], object] | None = None
        self.late: Callable[[int], object] | None = None
        self.turns: Turns | None = None
        self.stalled: dict[BodyReader, float] = {}
        self.streams: list[Callable[[KubeRequest], bool]] = []
        self.failed_handshakes = 0
        self.neighbours = Neighbours()
        self.heads_first = False
        self.bodies = BodyShares()
        self.guard: MemoryGuard | None = None
        self._pipelined: deque[KubeChannel] = deque()
        self.memory: MemoryRelease | None = None
        self._event_writers: dict[Callable[[], object], None] = {}
        self._tick: Any = None
        self._drained: list[Deferred[None]] = []

    def buildProtocol(self, addr: Any) -> Any:
        """A connection."""
        channel = KubeChannel()
        channel.factory = channel.site = self
        channel.callLater = self.reactor.callLater  # type: ignore[assignment]
        return channel

    def acceptableProtocols(self) -> list[bytes]:
        """What is offered in the TLS handshake; one connection per watch is what HTTP/1.1 makes of it."""
        return [b"http/1.1"]

    def log(self, request: Any) -> None:
        """No access log: an audit log is another filter's."""

    # The clock.

    def startFactory(self) -> None:
        """Begin to watch over connections."""
        if self._tick is None:
            self._on_tick()

    def stopFactory(self) -> None:
        """Stop the clock."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        if self.memory is not None:
            self.memory.stop()

    def _on_tick(self) -> None:
        self._tick = self.reactor.callLater(1.0, self._on_tick)
        self.look_around()

    def look_around(self) -> None:
        """Do what it is time for."""
        self.date = datetimeToString()
        now = self.now()
        for channel in [one for one in self.channels if one.deadline is not None and one.deadline <= now]:
            channel.patience_over()
        if self.stalled:
            for stalled in [one for one, since in self.stalled.items() if now - since >= STALLED]:
                stalled.look_whether_gone()

    # Connections tell.

    def connected(self, channel: KubeChannel) -> bool:
        """
        A connection was made.

        @return: Whether it may stay.
        """
        self.channels.add(channel)
        return self.neighbours.came(channel.transport.getPeer())

    def disconnected(self, channel: KubeChannel) -> None:
        """A connection was lost."""
        self.channels.discard(channel)
        self.neighbours.left(channel.transport.getPeer())
        if self.memory is not None:
            self.memory.connection_gone()
        self.stalled.pop(channel, None)
        self._check_drained()

    def take_turn(self, channel: KubeChannel) -> None:
        """Schedule the next pipelined request of a connection, after those of other connections."""
        if not self._pipelined:
            self.reactor.callLater(0, self._serve_pipelined)
        self._pipelined.append(channel)

    def _serve_pipelined(self) -> None:
        """Serve one request of each waiting connection, until the turn's time is over."""
        until = self.now() + TURN
        for _ in range(len(self._pipelined)):
            self._pipelined.popleft().go_on()
            if self.now() > until:
                break
        if self._pipelined:
            self.reactor.callLater(0, self._serve_pipelined)

    def write_events_with(self, write: Callable[[], object]) -> None:
        """
        Call C{write} before answers are sent; see L{KubeRequest.send_first}.

        @param write: Writes the watch events that wait for the end of the reactor's turn; must not raise.
        """
        self._event_writers[write] = None

    def write_events(self) -> None:
        """Write the waiting watch events, so that the answer to a write is not sent before them."""
        for write in self._event_writers:
            write()

    def request_ended(self, request: KubeRequest) -> None:
        """A request was answered, or its client has gone."""
        if request in self.open_requests:
            self.open_requests.discard(request)
            if self.ended is not None:
                try:
                    self.ended(request)
                except Exception:
                    # Its connection goes on, whoever wants to know.
                    self._log.failure("the end of a request was not noted")
        if self.long_running:
            self.long_running.pop(request, None)
        if self._drained:
            self._check_drained()

    # Stopping.

    def end_long_running(self, most: int | None = None) -> None:
        """
        Finish watches.

        @param most: So many of them; all without it.
        """
        for end in list(self.long_running.values())[:most]:
            try:
                end()
            except Exception:
                self._log.failure("a long-running request was not ended in good order")

    def close_idle(self) -> None:
        """Close the connections that have no request open, and the others as soon as theirs are answered."""
        for channel in list(self.channels):
            channel.finish_with_this()
            if channel.idle:
                channel.close()

    def abort_all(self) -> None:
        """Close every connection now."""
        for channel in list(self.channels):
            channel.abort()

    def requests_finished(self) -> Deferred[None]:
        """Fires when no request is open but those that are long-running."""
        finished: Deferred[None] = Deferred()
        self._drained.append(finished)
        self._check_drained()
        return finished

    def _check_drained(self) -> None:
        if self._drained and all(request in self.long_running for request in self.open_requests):
            drained, self._drained = self._drained, []
            for finished in drained:
                finished.callback(None)


def traverse(root: IResource) -> Handler:
    """What lets the resources below C{root} answer: the innermost of the handlers."""

    def answer(request: KubeRequest) -> None:
        path = request.path
        if b"%" in path:
            # An escaped slash parts a path like any other, as in the reference.
            path = unquote_to_bytes(path)
        request.postpath = path[1:].split(b"/")
        request.render(getChildForRequest(root, request))

    return answer
