"""
The interfaces of a request to its connection and to its server.

HTTP/1.1 implements L{RequestTransport} as a connection (L{kubetwist.http.http1.channel}), HTTP/2 as a stream
(L{kubetwist.http.http2.stream}). L{kubetwist.http.site.KubeSite} is the L{RequestSite}, and the L{ConnectionSite} of
connections. These interfaces are generic over the class of requests, L{kubetwist.http.request.KubeRequest}, which this
module does not import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from OpenSSL.crypto import X509

from twisted.internet.interfaces import IAddress, IProducer, IProtocol, IReactorTime
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from ..api.errors import APIStatusError
    from ..api.featuregates import FeatureGates
    from .collaborators import WorkScheduler
    from .connection.connections import Connections
    from .connection.flow import RawTransport
    from .sharedpieces import SharedWriter

#: The class of requests.
R = TypeVar("R")


class RequestTransport(Protocol[R]):
    """
    Transport of one request and its response: a connection of HTTP/1.1, or a stream of another protocol.

    It frames the response (lines and chunks of HTTP/1.1) from the attributes of the request, and applies the flow
    control of its client to the producer of a response. All calls come in the reactor's thread.

    @ivar remembered: Facts about the client that hold for all requests of the connection, such as the owner of its
        certificate, by any key.
    """

    remembered: dict[object, Any]

    @property
    def site(self) -> RequestSite[R]:
        """Return the server of the request."""

    def getPeer(self) -> IAddress:
        """Return the address of the client."""

    def getHost(self) -> IAddress:
        """Return the address that the client has connected to."""

    def peer_certificates(self) -> Sequence[X509]:
        """Return the certificate that the client has presented, and its chain; nothing without TLS."""

    def collect(self, request: R) -> bool:
        """
        Continue to read the body of a request that is served before its body has arrived.

        @return: Whether there is room for it. Then C{request.body_arrived} is called with the whole body.
        """

    def send_response(self, request: R, body: bytes, content_type: bytes) -> None:
        """Send a whole response, with the status and the header fields of the request."""

    def send_piece(self, request: R, data: bytes) -> None:
        """Send a piece of the response; the first one begins it, with the status and header fields of the request."""

    def send_parts(self, request: R, parts: Sequence[bytes | memoryview], size: int) -> None:
        """Send a piece of the response as L{send_piece} does: C{size} bytes in parts."""

    def shared_writer(self, request: R) -> SharedWriter:
        """
        Return what sends pieces of the response as L{send_piece} does, which other requests send, too.

        @param request: A request whose response has begun. It closes the writer at its end.
        """

    def end_response(self, request: R) -> None:
        """Complete a response that L{send_piece} has begun."""

    def truncate_response(self, request: R) -> None:
        """End an incomplete response such that its client notices; written data are sent if possible."""

    def switch_protocol(self, request: R, fields: Iterable[tuple[bytes, bytes]], protocol: IProtocol) -> RawTransport:
        """Send a response 101 with these header fields, and connect C{protocol} to the client."""

    def prioritize(self, urgent: bool) -> None:
        """Enable or disable sending written data before the responses of other requests."""

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """As L{IConsumer.registerProducer<twisted.internet.interfaces.IConsumer.registerProducer>}."""

    def unregisterProducer(self) -> None:
        """As L{IConsumer.unregisterProducer<twisted.internet.interfaces.IConsumer.unregisterProducer>}."""

    def requestDone(self, request: R) -> None:
        """Release the connection for the next request: the response is complete."""

    def disable_keep_alive(self) -> None:
        """Accept no request after this one."""

    def loseConnection(self) -> None:
        """Close the connection when the written data are sent."""

    def abort(self) -> None:
        """Close the connection now."""


class RequestSite(Protocol[R]):
    """
    The server of a request: its handler and its registrations.

    @ivar handler: Answers requests.
    @ivar open_requests: Requests without a complete response.
    @ivar long_running_requests: The functions that end requests which do not end by themselves.
    @ivar date: The value of C{Date} fields.
    @ivar on_late_response: Called with the status of a response to a request that the server has terminated.
    @ivar scheduler: Schedules expensive work; L{None} runs it at once.
    @ivar serves_cbor: Whether CBOR is a media type of requests and responses.
    @ivar compresses: Whether large responses are compressed for clients that accept it.
    @ivar features: The feature gates and the release of the server.
    """

    handler: Callable[[R], None]
    open_requests: set[R]
    long_running_requests: dict[R, Callable[[], object]]
    date: bytes
    on_late_response: Callable[[int], object] | None
    scheduler: WorkScheduler | None
    serves_cbor: bool
    compresses: bool
    features: FeatureGates

    @property
    def reactor(self) -> IReactorTime:
        """The reactor of the server."""

    def request_ended(self, request: R) -> None:
        """Unregister a request: it was answered, or its client has disconnected."""

    def write_events_with(self, write: Callable[[], object]) -> None:
        """Call C{write} before responses are sent, in each iteration of the reactor."""

    def respond_error(self, request: R, error: APIStatusError) -> None:
        """Answer with the Status of an error, in a media type that the client accepts."""

    def respond_failure(self, request: R, reason: Failure) -> None:
        """Log an uncaught exception, and answer 500 without details."""


class ConnectionSite(RequestSite[R], Protocol[R]):
    """
    The factory of connections, which accepts their requests.

    @ivar connections: All connections of the server.
    @ivar streams: Returns whether the body of a request is streamed to its handler.
    @ivar heads_first: Whether requests with large bodies are served before their bodies have arrived.
    @ivar max_streams: Maximum number of streams of a connection of HTTP/2; 0 if HTTP/2 is not served.
    """

    connections: Connections
    streams: list[Callable[[R], bool]]
    heads_first: bool
    max_streams: int

    @property
    def requestFactory(
        self,
    ) -> Callable[[RequestTransport[R], bytes, bytes, bytes, dict[bytes, list[bytes]]], R]:
        """Creates a request: transport, method, target, version and header fields, by names in lower case."""

    def continue_with_http2(self, channel: Any) -> None:
        """Replace the protocol of a new connection, a channel of HTTP/1.1, with HTTP/2."""
