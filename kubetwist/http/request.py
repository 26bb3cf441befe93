"""
Requests, independent of the protocol and the connection that they arrive on.

L{KubeRequest} keeps Twisted's interface, so that any resource can answer it, and adds fast paths for the frequent
operations of a Kubernetes API. It uses its client and its server through the protocols of L{kubetwist.http.transport}.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, Any, AnyStr, Final, TypeAlias

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IAddress, IConsumer, IProducer, IProtocol
from twisted.python.failure import Failure
from twisted.web.error import UnsupportedMethod
from twisted.web.http import NO_BODY_CODES, parse_qs
from twisted.web.http_headers import Headers
from twisted.web.resource import IResource
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..api.query import parse_query
from ..interfaces import IAuthenticationRequest
from .connection.bodyshares import MAX_BODY
from .fields import NO_LINES, FieldLines
from .streaming import StreamedBody, collected_body
from .warnings import Warnings

if TYPE_CHECKING:
    from ..api.resource import JSONObject, UserInfo
    from .collaborators import AuditTrail
    from .connection.flow import BodyStream
    from .requestinfo import RequestInfo
    from .sharedpieces import SharedWriter
    from .transport import RequestSite, RequestTransport

TEXT: Final = b"text/plain; charset=utf-8"
#: The version of requests over HTTP/2, see L{KubeRequest.clientproto}.
HTTP2: Final = b"HTTP/2.0"


#: The connection or stream of a request, and its server.
Transport: TypeAlias = "RequestTransport[KubeRequest]"
Host: TypeAlias = "RequestSite[KubeRequest]"


@implementer(IAuthenticationRequest)
class KubeRequest(Request):
    """
    One request.

    @ivar info: The resource and verb; set by the request info filter.
    @ivar user: The sender, or the user that the sender impersonates; L{None} before authentication.
    @ivar impersonator: The authenticated sender, if C{user} is impersonated.
    @ivar impersonation_constraint: The verb that allows the impersonation, such as C{"impersonate:user-info"}; C{""}
        for the unconstrained verb C{impersonate}.
    @ivar audit: The audit context, L{kubetwist.audit.trail.AuditContext}; L{None} if the request is not audited.
    @ivar response_held: The response is complete, and waits for the audit.
    @ivar audit_id: The request id in logs and in the response's C{Audit-Id}.
    @ivar deadline: Time limit of the response, in the reactor's time; L{None} for long-running ones.
    @ivar on_deadline: Called by the site up to a second after C{deadline}; L{None} calls nothing.
    @ivar cache_control: Value of C{Cache-Control}, unless the handler sets the header; C{b""} for none.
    @ivar started_at: Start of serving, in seconds of L{perf_counter<time.perf_counter>}, like the next two.
    @ivar authenticated_at: Time of authentication; 0 before.
    @ivar authorized_at: Time of authorization; 0 before.
    @ivar non_sli_seconds: Seconds that do not count for the SLI: in webhooks and in queues.
    @ivar apf_queue_seconds: Seconds in queues of priority and fairness.
    @ivar trace: Its span, see L{kubetwist.filters.tracing}; L{None} if requests are not traced.
    @ivar times: Seconds by activity, see L{kubetwist.api.latency}; L{None} if they are not measured.
    @ivar apf_request: Its seat or its position in a queue: L{kubetwist.flowcontrol.queueset.QueueSetRequest}.
    @ivar apf_classification: Its flow: L{kubetwist.flowcontrol.controller.Classification}.
    @ivar apf_handler: The handler that is called when the request has a seat.
    @ivar cache_is_current: The caches are known to be as new as the storage was when the request arrived.
    @ivar consistency_error: The failure of that check.
    @ivar signed_in: The request has a session cookie of the web page, valid or not.
    @ivar shown_prefix: The path under which a browser knows the proxied backend, instead of the API's; C{b""} for the
        latter. It is set for requests with a ticket (L{kubetwist.ui.proxied}).
    @ivar read_from_storage: The caches are outdated: the request reads from the storage.
    @ivar apf_headers: Header fields of the response that name its flow schema and priority level.
    @ivar response_fields: Header fields of the response that were set; L{None} without any.
    @ivar warnings: Warnings for the client; L{None} without any.
    @ivar body_pending: Whether the body has not arrived; L{collect_body} requests it.
    @ivar body_too_large: The body exceeded the limit and was dropped.
    @ivar streamed: The body, when it arrives while the request is answered.
    @ivar switched: The connection was switched to another protocol.
    @ivar disconnected: The client has disconnected before the response was complete.
    @ivar termination_code: The status with which the server terminated the request to protect itself; 0 otherwise.
    """

    defaultContentType = None
    info: RequestInfo
    user: UserInfo | None = None  # type: ignore[assignment]
    impersonator: UserInfo | None = None
    impersonation_constraint = ""
    audit: AuditTrail | None = None
    response_held = False
    audit_id = ""
    deadline: float | None = None
    on_deadline: Handler | None = None
    cache_control = b""
    body_pending = False
    body_too_large = False
    started_at = 0.0
    authenticated_at = 0.0
    authorized_at = 0.0
    non_sli_seconds = 0.0
    apf_queue_seconds = 0.0
    times: dict[str, float] | None = None
    trace: Any = None
    apf_request: Any = None
    apf_classification: Any = None
    apf_handler: Handler | None = None
    apf_headers: FieldLines = NO_LINES
    cache_is_current = False
    consistency_error: Failure | None = None
    read_from_storage = False
    signed_in = False
    shown_prefix = b""
    streamed: StreamedBody | None = None
    switched = False
    disconnected = False
    termination_code = 0
    method: bytes
    uri: bytes
    fields: dict[bytes, list[bytes]]
    site: Host  # type: ignore[assignment]
    channel: Transport | None  # type: ignore[assignment]
    response_fields: Headers | None = None
    warnings: Warnings | None = None

    _has_priority = False
    _shared_writer: SharedWriter | None = None
    _body = b""
    _body_handler: Callable[[KubeRequest], None] | None = None
    _body_requested_at = 0.0
    _query: dict[str, list[str]] | None = None
    _args: dict[bytes, list[bytes]] | None = None
    _request_headers: Headers | None = None
    _content: BytesIO | None = None

    def __init__(
        self, channel: Transport, method: bytes, target: bytes, version: bytes, fields: dict[bytes, list[bytes]]
    ) -> None:
        """
        @param target: Path and query, as sent.
        @param version: The version of HTTP.
        @param fields: The header fields, by names in lower case.
        """
        # Replaces Twisted's initializer, which creates objects that most requests do not use.
        self.channel = channel
        #: The same transport, which is not removed at the end of the request.
        self.connection = channel
        self.site = channel.site
        self.notifications: list[Deferred[None]] = []
        self.cookies: list[bytes] = []
        self.queued = False
        self.prepath: list[bytes] = []
        self.postpath: list[bytes] = []
        self.method = method
        self.uri = target
        self.path = target.partition(b"?")[0]
        self.clientproto = version
        self.fields = fields

    # Requests are compared by identity. The methods of Twisted are written in Python, and sets of requests call them.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def serve(self, body: bytes) -> None:
        """Answer the request, now or later: its body has arrived."""
        self._body = body
        site = self.site
        self.started_at = perf_counter()
        site.open_requests.add(self)
        try:
            site.handler(self)
        except Exception:
            self.processingFailed(Failure())

    def collect_body(self, handler: Callable[[KubeRequest], None]) -> None:
        """
        Call C{handler} when the body has arrived; answer 429 if there is no room for it.

        Metrics exclude the time that the body takes to arrive, as for bodies that arrive with their heads.
        """
        if not self.body_pending:
            handler(self)
            return
        self._body_handler = handler
        self._body_requested_at = perf_counter()
        if not self.connection.collect(self):
            self.termination_code = 429
            self.setHeader(b"Retry-After", b"1")
            self.respond_text(429, "Too many requests, please try again later.\n")

    def body_arrived(self, body: bytes) -> None:
        """Handle the arrival of a body that was incomplete when the request was served."""
        self._body = body
        self.body_pending = False
        handler = self._body_handler
        if handler is None or self.is_done:
            return
        self._body_handler = None
        elapsed = perf_counter() - self._body_requested_at
        self.started_at += elapsed
        if self.authenticated_at:
            self.authenticated_at += elapsed
        try:
            handler(self)
        except Exception:
            self.processingFailed(Failure())

    @property
    def is_done(self) -> bool:
        """Return whether the request is answered or its client has disconnected."""
        return bool(self.finished or self.response_held or self.disconnected)

    # Reading the request.

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of a header field; C{name} is in lower case."""
        values = self.fields.get(name)
        return values[0] if values is not None else None

    def getHeader(self, key: AnyStr) -> AnyStr | None:
        """As L{IRequest}, but the first of several fields with the same name is returned, as in the reference."""
        if isinstance(key, str):
            values = self.fields.get(key.lower().encode("latin-1"))
            return values[0].decode("latin-1") if values is not None else None
        values = self.fields.get(key) or self.fields.get(key.lower())
        return values[0] if values is not None else None

    @property
    def requestHeaders(self) -> Headers:  # type: ignore[override]
        """As L{IRequest}; created at the first use."""
        if self._request_headers is None:
            self._request_headers = Headers(self.fields)
        return self._request_headers

    @property
    def query(self) -> dict[str, list[str]]:
        """Return the parameters of the URL: the first value of repeated ones, blank ones included."""
        query = self._query
        if query is None:
            query = self._query = parse_query(self.uri.partition(b"?")[2])
        return query

    @property
    def args(self) -> dict[bytes, list[bytes]]:  # type: ignore[override]
        """As L{IRequest}."""
        if self._args is None:
            self._args = parse_qs(self.uri.partition(b"?")[2], True)
        return self._args

    @property
    def user_agent(self) -> str:
        """Return the value of C{User-Agent} as sent."""
        values = self.fields.get(b"user-agent")
        return values[0].decode("utf-8", "replace") if values is not None else ""

    def read_body(self) -> bytes:
        """
        Return the whole body.

        @raise APIStatusError: It exceeds the limit.
        """
        if self.body_too_large or self.body_pending:
            raise APIStatusError.too_large(f"Request entity too large: limit is {MAX_BODY}")
        if self.streamed is not None:
            body = self.streamed.buffered_body()
            if body is None:
                # The handler of this path has changed since the head arrived.
                raise APIStatusError.service_unavailable("the server is currently unable to handle the request")
            return body
        return self._body

    def deliver_body(self, consumer: IConsumer) -> Deferred[None]:
        """
        Write the body to C{consumer} as it arrives, at the consumer's pace. May be called once.

        @param consumer: L{IConsumer}; a push producer is registered with it until the end.
        @return: Fires when the whole body was written; fails if the client has disconnected or the request was
            answered before. If it is cancelled or the producer is stopped, the rest is not read.
        """
        body: BodyStream = self.streamed or collected_body(self._body)
        return body.deliver(consumer)

    @property
    def body_length(self) -> int | None:
        """Return the length of the body; L{None} if it is unknown before the end of the body."""
        return len(self._body) if self.streamed is None else self.streamed.length

    @property
    def content(self) -> BytesIO:  # type: ignore[override]
        """As L{IRequest}."""
        if self._content is None:
            self._content = BytesIO(self._body)
        return self._content

    @property
    def client(self) -> IAddress:
        """As L{IRequest}."""
        return self.connection.getPeer()

    @property
    def host(self) -> IAddress:
        """As L{IRequest}."""
        return self.connection.getHost()

    @property
    def received_cookies(self) -> dict[bytes, bytes]:  # type: ignore[override]
        """As L{IRequest}; always empty."""
        return {}

    # Writing the response.

    @property
    def responseHeaders(self) -> Headers:  # type: ignore[override]
        """As L{IRequest}; created at the first use."""
        if self.response_fields is None:
            self.response_fields = Headers()
        return self.response_fields

    def setHeader(self, name: bytes | str, value: bytes | str) -> None:
        """As L{IRequest}."""
        self.responseHeaders.setRawHeaders(name, [value])

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """As L{twisted.internet.interfaces.IConsumer}."""
        super().registerProducer(producer, streaming)  # type: ignore[no-untyped-call]

    def unregisterProducer(self) -> None:
        """As L{twisted.internet.interfaces.IConsumer}."""
        super().unregisterProducer()  # type: ignore[no-untyped-call]

    def loseConnection(self) -> None:
        """Close the connection when the written data are sent."""
        super().loseConnection()  # type: ignore[no-untyped-call]

    def abort(self) -> None:
        """Close the connection now, even if the client has not read the written data."""
        if self.channel is not None:
            self.channel.abort()

    def warn(self, text: str, agent: str = "-", code: int = 299) -> None:
        """Add a C{Warning} header; repeated texts, and texts after the start of the response, are ignored."""
        if self.warnings is None:
            self.warnings = Warnings()
        self.warnings.add(text, agent, code)

    def audit_response_status(self, status: JSONObject) -> None:
        """Record the Status of the response in the audit event."""

    def panicked(self, reason: Failure) -> None:
        """Record in the audit event that an exception ended this request."""

    def annotate(self, key: str, value: str, level: str) -> None:
        """Add an annotation to the audit event, for audit levels of at least C{level}."""

    def respond(self, code: int, body: bytes, content_type: bytes) -> None:
        """
        Answer with one body, and finish the response.

        It is dropped if the request was answered before, such as at the deadline, or the client has disconnected.
        Headers set with C{setHeader} are sent too.
        """
        if self.finished or self.disconnected or self.startedWriting:
            if self.termination_code and self.site.on_late_response is not None:
                self.site.on_late_response(code)
            return
        self.code = code
        self.startedWriting = 1
        self.finished = 1
        self.connection.send_response(self, body, content_type)
        self._cleanup()

    def fail(self, error: APIStatusError) -> None:
        """Answer with a Status, in the media type that the client accepts."""
        self.site.respond_error(self, error)

    def respond_text(self, code: int, text: str) -> None:
        """Answer in plain text, with a header that stops browsers from guessing another type."""
        self.setHeader(b"x-content-type-options", b"nosniff")
        self.respond(code, text.encode(), TEXT)

    def complete_fields(self, content_type: bytes = b"", length: int | None = None) -> Headers:
        """
        Return the header fields of the response, with those that filters set for all responses.

        @param content_type: The value of C{Content-Type}; empty keeps it as it is.
        @param length: The value of C{Content-Length}, unless it was set; L{None} sets none.
        """
        headers = self.responseHeaders
        if content_type:
            headers.setRawHeaders(b"Content-Type", [content_type])
        if length is not None and not headers.hasHeader(b"Content-Length"):
            headers.setRawHeaders(b"Content-Length", [b"%d" % length])
        if self.audit_id and not headers.hasHeader(b"Audit-Id"):
            headers.setRawHeaders(b"Audit-Id", [self.audit_id.encode("latin-1", "replace")])
        if self.cache_control and not headers.hasHeader(b"Cache-Control"):
            headers.setRawHeaders(b"Cache-Control", [self.cache_control])
        if not headers.hasHeader(b"Date"):
            headers.setRawHeaders(b"Date", [self.site.date])
        if self.warnings is not None:
            for value in self.warnings.values:
                headers.addRawHeader(b"Warning", value)
        return headers

    def write(self, data: bytes) -> None:
        """As L{IRequest}: send a piece of the body; the first one begins the response."""
        if not (self.finished or self.disconnected):
            self.connection.send_piece(self, data)

    def shared_writer(self) -> SharedWriter:
        """Return what sends pieces as C{write} does, which other requests send, too; the response has begun."""
        writer = self._shared_writer = self.connection.shared_writer(self)
        return writer

    def _close_shared_writer(self) -> None:
        writer, self._shared_writer = self._shared_writer, None
        if writer is not None:
            self.sentLength += writer.sent
            writer.close()

    def write_parts(self, parts: Sequence[bytes | memoryview], size: int) -> None:
        """Send a piece of the body as L{write} does: C{size} bytes in parts."""
        if not (self.finished or self.disconnected):
            self.connection.send_parts(self, parts, size)

    def finish(self) -> None:
        """As L{IRequest}, but without effect if the request is answered or the client has disconnected."""
        if self.finished or self.disconnected:
            return
        if not self.startedWriting:
            if not self.responseHeaders.hasHeader(b"Content-Length") and self.code not in NO_BODY_CODES:
                self.responseHeaders.setRawHeaders(b"Content-Length", [b"0"])
            self.write(b"")
        self.connection.end_response(self)
        self.finished = 1
        self._cleanup()

    def render(self, resrc: IResource) -> None:
        """Call a resource, which returns bytes or answers itself."""
        try:
            body = resrc.render(self)
        except UnsupportedMethod:
            self.fail(APIStatusError.method_not_allowed())
            return
        if body is NOT_DONE_YET:
            return
        assert isinstance(body, bytes), f"{resrc} answered with {type(body).__name__}"
        self.respond(self.code, body, b"" if self.responseHeaders.hasHeader(b"Content-Type") else TEXT)

    def processingFailed(self, reason: Failure) -> Failure:
        """Answer a request that failed with an exception; see L{kubetwist.http.failures}."""
        self.site.respond_failure(self, reason)
        return reason

    def handle_failure(self, reason: Failure) -> None:
        """Handle a failure as C{processingFailed} does, at the end of a chain of callbacks."""
        self.processingFailed(reason)

    # End of the request.

    def register_long_running(self, end: Callable[[], object]) -> None:
        """
        Register C{end}, which finishes this request when the server stops.

        The server waits for requests that are not registered.
        """
        self.site.long_running_requests[self] = end

    def send_first(self, write: Callable[[], object]) -> None:
        """
        Send data of this request before the responses that are written in the same iteration of the reactor.

        @param write: Writes the data that wait for the end of the iteration; called before that. It must not raise.
        """
        self.site.write_events_with(write)
        self.connection.prioritize(True)
        self._has_priority = True

    def switch_protocols(
        self, fields: Iterable[tuple[bytes, bytes]], protocol: IProtocol, end: Callable[[], object] | None = None
    ) -> bool:
        """
        Answer C{101}, and connect C{protocol} to the client until either side closes the connection.

        Data that the client has sent ahead are the protocol's first data. The transport supports abort, and is and
        accepts a push producer. The request ends with the connection: C{protocol.connectionLost} is called, then
        C{notifyFinish} fails.

        @param fields: Header fields; C{Connection} and the audit id are added.
        @param protocol: L{IProtocol}.
        @param end: Called when the server stops; the connection is closed without it.
        @return: Whether the connection was switched: not if the client has disconnected or the request was answered.
        """
        if self.finished or self.disconnected or self.startedWriting or self.response_held:
            return False
        self.code = 101
        # Further responses are dropped.
        self.startedWriting = self.finished = 1
        self.switched = True
        transport = self.connection.switch_protocol(self, fields, protocol)
        if not self.disconnected:
            self.register_long_running(end or transport.unregister_and_close)
        return True

    def truncate_response(self) -> None:
        """
        Abort a started response such that its client notices that it is incomplete.

        The written data are sent before, unless the client could take the end of the connection for the end of the
        response.
        """
        channel = self.channel
        if channel is None:
            return
        if self.producer:
            self.unregisterProducer()
        channel.truncate_response(self)

    def _cleanup(self) -> None:
        if self.producer:
            warnings.warn(f"a producer was not unregistered for {self.path!r}", stacklevel=2)
            self.unregisterProducer()
        if self._shared_writer is not None:
            self._close_shared_writer()
        self.site.request_ended(self)
        channel = self.connection
        self.channel = None
        if self._has_priority:
            channel.prioritize(False)
        self._body = b""
        if self.streamed is not None:
            self.streamed.lost(Failure(ConnectionDone()))
        for notified in self.notifications:
            notified.callback(None)
        self.notifications = []
        channel.requestDone(self)

    def connectionLost(self, reason: Failure) -> None:
        """Handle a client that disconnected before the response was complete."""
        self._disconnected = self.disconnected = True
        if self._shared_writer is not None:
            self._close_shared_writer()
        self.site.request_ended(self)
        self.channel = None
        self.producer = None
        self._body = b""
        if self.streamed is not None:
            self.streamed.lost(reason)
        for notified in self.notifications:
            notified.errback(reason)
        self.notifications = []


#: Answers a request, now or later.
Handler = Callable[[KubeRequest], None]
