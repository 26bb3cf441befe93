"""
The spans of requests and of their filters.

Spans start after authentication. The trace of the caller continues only for users that the reference trusts to choose
what is sampled; for other users a new trace links to it. The span of authentication is added afterwards.

@see: kubernetes/apiserver, C{pkg/endpoints/filters/traces.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..api.users import MASTERS, MONITORING
from ..http.request import Handler, KubeRequest
from ..logs.httplog import peer_address
from ..logs.redaction import MAX_AUDIT_ID_LENGTH, MAX_USER_AGENT_LENGTH, redact_uri, truncate
from ..tracing.propagation import BAGGAGE, TRACEPARENT, extract_baggage, extract_span_context
from ..tracing.spans import NonRecordingSpan, Span, Tracer, Value, current

#: Groups whose sampling decision is used.
TRUSTED: Final = frozenset((MASTERS, MONITORING))

_METHODS: Final = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"))
#: Characters of a part of a path.
_MAX_PART_LENGTH: Final = 256
_MAX_ADDRESS_LENGTH: Final = 64
_MAX_HOST_LENGTH: Final = 256


class _RequestTrace:
    """
    The root span of a request, and its progress through the filters.

    @ivar span: The root span.
    @ivar since: When the last filter was passed, in seconds of L{perf_counter<time.perf_counter>}.
    @ivar filters_done: Number of passed filters.
    """

    __slots__ = ("filters_done", "since", "span")

    def __init__(self, span: Span, since: float) -> None:
        self.span = span
        self.since = since
        self.filters_done = 0


class RequestTracing:
    """Spans of the requests of one server."""

    def __init__(self, tracer: Tracer, now: Callable[[], float]) -> None:
        """
        @param now: In the time of L{KubeRequest.started_at<kubetwist.http.request.KubeRequest>}.
        """
        self._begin = tracer.start_trace
        self._now = now
        #: Names of the filters with spans, in the order of the handler chain.
        self._filters: list[str] = []

    def clear_context(self, handler: Handler) -> Handler:
        """Clear the current span before a request, which may be pipelined behind another one."""

        def clear_context(request: KubeRequest) -> None:
            previous = current.get()
            if previous is None:
                handler(request)
                return
            # The request was read while another one is answered.
            current.set(None)
            try:
                handler(request)
            finally:
                current.set(previous)

        return clear_context

    def after_authentication(self, handler: Handler) -> Handler:
        """Start the root span of a request, sampled or not, and make it the current span."""
        begin, now = self._begin, self._now

        def start_root_span(request: KubeRequest) -> None:
            fields = request.fields
            remote = extract_span_context(fields) if TRACEPARENT in fields else None
            trusted = remote is not None and request.user is not None and not TRUSTED.isdisjoint(request.user.groups)
            baggage = extract_baggage(fields) if BAGGAGE in fields else b""
            span = begin(remote, trusted, baggage, request.started_at)
            if isinstance(span, Span):
                span.trace.audit_id = truncate(request.audit_id, MAX_AUDIT_ID_LENGTH)
                span.name = span_name(request)
                span.attributes = attributes_of(request)
                request.trace = trace = _RequestTrace(span, now())
                span.add_completed_child("authentication", span.began, trace.since)
            else:
                request.trace = span
            previous = current.get()
            current.set(span)
            try:
                handler(request)
            finally:
                current.set(previous)

        return start_root_span

    def mark_filter_done(self, name: str, handler: Handler, *, in_both_chains: bool = False) -> Handler:
        """
        Record that a request has passed a filter.

        @param in_both_chains: The filter is part of both handler chains; a request passes one of them.
        """
        if not in_both_chains:
            self._filters.insert(0, name)
        now = self._now

        def mark_filter_done(request: KubeRequest) -> None:
            trace: _RequestTrace | Span | NonRecordingSpan | None = request.trace
            previous = span = current.get()
            if trace is span:
                # Not sampled, as most requests.
                handler(request)
                return
            if isinstance(trace, _RequestTrace):
                span = trace.span
                since, trace.since = trace.since, now()
                trace.filters_done += 1
                span.add_completed_child(name, since, trace.since)
            else:
                span = trace
            # A request may start when another one releases its seats.
            current.set(span)
            try:
                handler(request)
            finally:
                current.set(previous)

        return mark_filter_done

    def chain_on_end(self, ended: Callable[[KubeRequest], object]) -> Callable[[KubeRequest], None]:
        """Return a callback for the end of a request that ends its span and calls C{ended}."""

        def end_span(request: KubeRequest) -> None:
            self.ended(request)
            ended(request)

        return end_span

    def ended(self, request: KubeRequest) -> None:
        """End the root span of a request that was answered or whose client has disconnected."""
        trace: _RequestTrace | Span | NonRecordingSpan | None = request.trace
        if not isinstance(trace, _RequestTrace):
            return
        request.trace = None
        span, now = trace.span, self._now()
        if trace.filters_done < len(self._filters):
            # The filter that has answered the request.
            span.add_completed_child(self._filters[trace.filters_done], trace.since, now)
        if request.body_length:
            span.set_attribute("http.request.body.size", request.body_length)
        if request.sentLength:
            span.set_attribute("http.response.body.size", request.sentLength)
        if request.switched or request.startedWriting:
            span.set_attribute("http.response.status_code", request.code)
            if request.code >= 500:
                span.set_error(str(request.code))
        else:
            span.set_error("aborted")
        span.end(now)


def span_name(request: KubeRequest) -> str:
    """Return the name of the root span: method and path, with placeholders for namespace and name."""
    info = request.info
    method = truncate(request.method.decode("latin-1"), _MAX_PART_LENGTH)
    if not info.is_resource_request:
        return method
    parts = [info.api_prefix, info.group, info.version] if info.group else [info.api_prefix, info.version]
    if info.namespace:
        parts += ("namespaces", "{:namespace}")
    parts.append(truncate(info.resource, _MAX_PART_LENGTH))
    if info.name:
        parts.append("{:name}")
    if info.subresource:
        parts.append(truncate(info.subresource, _MAX_PART_LENGTH))
    return f"{method} /{'/'.join(truncate(part, _MAX_PART_LENGTH) for part in parts)}"


def attributes_of(request: KubeRequest) -> dict[str, Value]:
    """Return the attributes of the root span, by the semantic conventions of OpenTelemetry."""
    method = request.method.decode("latin-1")
    known = method.upper() if method.upper() in _METHODS else "GET"
    info = request.info
    attributes: dict[str, Value] = {
        "http.request.method": known,
        "url.scheme": "https",
        "url.path": redact_uri(request.path),
        "http.target": redact_uri(request.uri, opaque=info.subresource == "proxy"),
        "network.protocol.version": request.clientproto.decode("latin-1").removeprefix("HTTP/"),
        "audit-id": truncate(request.audit_id, MAX_AUDIT_ID_LENGTH),
    }
    if known != method:
        attributes["http.request.method_original"] = truncate(method, _MAX_PART_LENGTH)
    host, port = _host(request)
    if host:
        attributes["server.address"] = truncate(host, _MAX_HOST_LENGTH)
    if port.isascii() and port.isdigit() and len(port) < 6:
        attributes["server.port"] = int(port)
    if request.user_agent:
        attributes["user_agent.original"] = truncate(request.user_agent, MAX_USER_AGENT_LENGTH)
    peer = peer_address(request)
    if peer is not None:
        attributes["network.peer.address"], attributes["network.peer.port"] = peer
    client = client_of(request)
    if client:
        attributes["client.address"] = client
    return attributes


def client_of(request: KubeRequest) -> str:
    """Return the address of the client: from C{X-Forwarded-For}, or the peer's."""
    forwarded = request.header(b"x-forwarded-for")
    if forwarded:
        return truncate(forwarded.partition(b",")[0].strip().decode("latin-1"), _MAX_ADDRESS_LENGTH)
    peer = peer_address(request)
    return "" if peer is None else peer[0]


def _host(request: KubeRequest) -> tuple[str, str]:
    """Return name and port in the C{Host} header."""
    text = (request.header(b"host") or b"").decode("latin-1")
    host, bracket, rest = text.partition("]")
    if bracket:
        return host.removeprefix("["), rest.removeprefix(":")
    host, _, port = text.partition(":")
    return host, port
