"""
The web site: the factory of connections and the registry of requests.

It connects the parts of the engine, which are independent of each other: requests (L{kubetwist.http.request}), the
protocol (L{kubetwist.http.http1}), connections (L{kubetwist.http.connection}), and responses to errors
(L{kubetwist.http.responses}, L{kubetwist.http.failures}).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IDelayedCall, IProtocol, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request, datetimeToString
from twisted.web.resource import IResource, getChildForRequest
from twisted.web.server import Site

from ..api.featuregates import FeatureGates
from .connection.connections import Connections
from .failures import answer_failure
from .http1.channel import KubeChannel
from .request import Handler, KubeRequest
from .responses import respond_error

if TYPE_CHECKING:
    from ..api.errors import APIStatusError
    from .collaborators import WorkScheduler
    from .connection.memorylimit import MemoryGuard

__all__ = ["DEFAULT_MAX_STREAMS", "KubeSite", "traverse"]

#: Maximum number of streams of a connection of HTTP/2: kube-apiserver's, which Go's clients assume at first
#: (k8s.io/apiserver, C{pkg/server/secure_serving.go}).
DEFAULT_MAX_STREAMS: Final = 100


class KubeSite(Site):
    """
    Factory of connections, and registry of their requests.

    @ivar handler: Answers requests: the filters, and behind them the servers of the chain.
    @ivar open_requests: Requests without a complete response.
    @ivar long_running_requests: The functions that end requests which do not end by themselves.
    @ivar connections: All connections.
    @ivar scheduler: Schedules expensive work in small pieces; L{None} runs it at once.
    @ivar ended: Called with each finished request; L{None} calls nothing.
    @ivar on_late_response: Called with the status of a response to a terminated request; L{None} calls nothing.
    @ivar streams: Functions that return, for the head of a request with a body, whether the body is streamed. A
        streamed body has no limit, and L{KubeRequest.deliver_body} reads it. One true result suffices.
    @ivar heads_first: Whether C{handler} authorizes requests by their heads, and requests large bodies with
        L{KubeRequest.collect_body}.
    @ivar guard: Decides which requests there is memory for; L{None} without a limit.
    @ivar max_streams: Maximum number of streams of a connection of HTTP/2; 0 if HTTP/2 is not served.
    @ivar date: The value of C{Date} headers.
    @ivar serves_cbor: Whether CBOR is a media type of requests and responses.
    @ivar compresses: Whether large responses are compressed for clients that accept it.
    @ivar features: The feature gates and the release of the server, which decides on the texts of errors.
    """

    _log = Logger()
    noisy = False
    requestFactory = KubeRequest  # type: ignore[assignment]
    timeOut = None

    def __init__(
        self,
        handler: Handler,
        reactor: IReactorTime,
        *,
        connections: Connections | None = None,
        scheduler: WorkScheduler | None = None,
        guard: MemoryGuard | None = None,
        heads_first: bool = False,
        streams: Sequence[Callable[[KubeRequest], bool]] = (),
        max_streams: int = DEFAULT_MAX_STREAMS,
        ended: Callable[[KubeRequest], object] | None = None,
        on_late_response: Callable[[int], object] | None = None,
        serves_cbor: bool = False,
        compresses: bool = True,
        features: FeatureGates | None = None,
    ) -> None:
        """
        The parameters are attributes of this class.

        @param handler: Answers requests.
        @param connections: By default, connections without further limits.
        """
        # The filters come first, so that there is no tree of resources.
        super().__init__(None, reactor=reactor, timeout=None)  # type: ignore[no-untyped-call]
        self.handler = handler
        self.open_requests: set[KubeRequest] = set()
        self.long_running_requests: dict[KubeRequest, Callable[[], object]] = {}
        self.date: bytes = datetimeToString()
        self.connections = connections or Connections(reactor)
        self.ended = ended
        self.on_late_response = on_late_response
        self.scheduler = scheduler
        self.streams = list(streams)
        self.heads_first = heads_first
        self.max_streams = max_streams
        self.guard = guard
        self.serves_cbor = serves_cbor
        self.compresses = compresses
        self.features = features or FeatureGates()
        self._event_writers: dict[Callable[[], object], None] = {}
        self._tick: IDelayedCall | None = None
        self._drained: list[Deferred[None]] = []

    def buildProtocol(self, addr: IAddress) -> KubeChannel:  # type: ignore[override]
        """Return a connection; it speaks HTTP/1.1 unless the TLS handshake chooses HTTP/2."""
        return KubeChannel(self)

    def acceptableProtocols(self) -> list[bytes]:
        """Return the protocols of the TLS handshake, best first."""
        return [b"h2", b"http/1.1"] if self.max_streams else [b"http/1.1"]

    def continue_with_http2(self, channel: KubeChannel) -> None:
        """Replace the protocol of a new connection with HTTP/2."""
        # Imported late: many servers never need it.
        from .http2.connection import Http2Connection

        transport: Any = channel.transport
        channel.release_transport()
        connection: IProtocol = Http2Connection(self)
        transport.wrappedProtocol = connection
        connection.makeConnection(transport)

    def log(self, request: Request) -> None:
        """Write no access log: a filter writes the audit log."""

    # The clock.

    def startFactory(self) -> None:
        """Start the clock that checks connections."""
        if self._tick is None:
            self._on_tick()

    def stopFactory(self) -> None:
        """Stop the clock."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        self.connections.stop()

    def _on_tick(self) -> None:
        self._tick = self.reactor.callLater(1.0, self._on_tick)
        self.check_deadlines()

    def check_deadlines(self) -> None:
        """Check the deadlines of connections and requests, and update the date."""
        self.date = datetimeToString()
        self.connections.check_deadlines()
        now = self.reactor.seconds()
        expired = [
            request
            for request in self.open_requests
            if request.on_deadline is not None and request.deadline is not None and request.deadline <= now
        ]
        for request in expired:
            expire, request.on_deadline = request.on_deadline, None
            # An earlier one may have ended this one.
            if expire is not None and request in self.open_requests:
                try:
                    expire(request)
                except Exception:
                    self._log.failure("the deadline of a request was not handled")

    # Requests.

    def respond_error(self, request: KubeRequest, error: APIStatusError) -> None:
        """Answer with the Status of an error, in a media type that the client accepts."""
        respond_error(request, error, protobuf=True)

    def respond_failure(self, request: KubeRequest, reason: Failure) -> None:
        """Log an uncaught exception, and answer 500 without details."""
        answer_failure(request, reason, self.guard)

    def write_events_with(self, write: Callable[[], object]) -> None:
        """
        Call C{write} before responses are sent; see L{KubeRequest.send_first}.

        @param write: Writes the watch events that wait for the end of an iteration of the reactor; must not raise.
        """
        self._event_writers[write] = None

    def write_events(self) -> None:
        """Write the waiting watch events, so that the response to a write is not sent before them."""
        for write in self._event_writers:
            write()

    def request_ended(self, request: KubeRequest) -> None:
        """Unregister a request that was answered, or whose client has disconnected."""
        if request in self.open_requests:
            self.open_requests.discard(request)
            if self.ended is not None:
                try:
                    self.ended(request)
                except Exception:
                    # The connection continues, even if an observer fails.
                    self._log.failure("the end of a request was not recorded")
        if self.long_running_requests:
            self.long_running_requests.pop(request, None)
        if self._drained:
            self._check_drained()

    # Stopping.

    def end_long_running(self, limit: int | None = None) -> None:
        """
        Finish watches.

        @param limit: Maximum number; all by default.
        """
        for end in list(self.long_running_requests.values())[:limit]:
            try:
                end()
            except Exception:
                self._log.failure("ending a long-running request failed")

    def requests_finished(self) -> Deferred[None]:
        """Return a Deferred that fires when only long-running requests are open."""
        finished: Deferred[None] = Deferred()
        self._drained.append(finished)
        self._check_drained()
        return finished

    def _check_drained(self) -> None:
        if self._drained and all(request in self.long_running_requests for request in self.open_requests):
            drained, self._drained = self._drained, []
            for finished in drained:
                finished.callback(None)


def traverse(root: IResource) -> Handler:
    """Return the innermost handler, which calls the resources below C{root}."""

    def answer(request: KubeRequest) -> None:
        path = request.path
        if b"%" in path:
            # An escaped slash separates path segments, as in the reference.
            path = unquote_to_bytes(path)
        request.postpath = path[1:].split(b"/")
        request.render(getChildForRequest(root, request))

    return answer
