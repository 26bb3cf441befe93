"""
The spans of requests and of what stands in front of those who answer them.

They come after authentication, since whoever may choose what is traced may have others trace everything: the caller's
trace is gone on with only for those whom the reference trusts in that, and linked to for all others. What comes before
is told of afterwards.

@see: kubernetes/apiserver, C{pkg/endpoints/filters/traces.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..api.users import MASTERS, MONITORING
from ..http.request import Handler, KubeRequest
from ..logs.httplog import peer_of
from ..logs.redaction import LONGEST_AGENT, LONGEST_ID, cut, safe_uri
from ..tracing.propagation import BAGGAGE, TRACEPARENT, baggage_of, remote_of
from ..tracing.spans import Span, Tracer, Unrecorded, Value, current

#: Who decides whether the traces are recorded that they take part in.
TRUSTED: Final = frozenset((MASTERS, MONITORING))

_METHODS: Final = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"))
#: Characters of a part of a path.
_LONGEST_PART: Final = 256
_LONGEST_ADDRESS: Final = 64
_LONGEST_HOST: Final = 256


class _Followed:
    """
    A request and its place in a trace.

    @ivar since: When it came to the filter that it is in, in seconds of L{perf_counter<time.perf_counter>}.
    @ivar behind: How many filters are behind it.
    """

    __slots__ = ("behind", "place", "since")

    def __init__(self, place: Span, since: float) -> None:
        self.place = place
        self.since = since
        self.behind = 0


class RequestTracing:
    """Has the requests of one server leave spans."""

    def __init__(self, tracer: Tracer, now: Callable[[], float]) -> None:
        """
        @param now: In the time of L{KubeRequest.begun<kubetwist.http.request.KubeRequest>}.
        """
        self._begin = tracer.begin
        self._now = now
        #: The filters that are told apart, in the order in which requests come to them.
        self._filters: list[str] = []

    def in_front(self, handler: Handler) -> Handler:
        """Have nothing that is done for a request, before it is known whose it is, belong to the one before it."""

        def in_front(request: KubeRequest) -> None:
            before = current.get()
            if before is None:
                handler(request)
                return
            # It came along with the other one, which is just being answered.
            current.set(None)
            try:
                handler(request)
            finally:
                current.set(before)

        return in_front

    def after_authentication(self, handler: Handler) -> Handler:
        """Begin with a request, or not; whatever is done for it belongs to it from here on."""
        begin, now = self._begin, self._now

        def begun(request: KubeRequest) -> None:
            fields = request.fields
            remote = remote_of(fields) if TRACEPARENT in fields else None
            trusted = remote is not None and request.user is not None and not TRUSTED.isdisjoint(request.user.groups)
            baggage = baggage_of(fields) if BAGGAGE in fields else b""
            place = begin(remote, trusted, baggage, request.begun)
            if isinstance(place, Span):
                place.trace.audit_id = cut(request.audit_id, LONGEST_ID)
                place.name = span_name(request)
                place.attributes = attributes_of(request)
                request.trace = followed = _Followed(place, now())
                place.past("authentication", place.began, followed.since)
            else:
                request.trace = place
            before = current.get()
            current.set(place)
            try:
                handler(request)
            finally:
                current.set(before)

        return begun

    def behind(self, name: str, handler: Handler, *, again: bool = False) -> Handler:
        """
        Record that a request has passed a filter.

        @param again: The filter is part of both handler chains; a request passes one of them.
        """
        if not again:
            self._filters.insert(0, name)
        now = self._now

        def behind(request: KubeRequest) -> None:
            followed: _Followed | Span | Unrecorded | None = request.trace
            before = place = current.get()
            if followed is place:
                # One of those that are not recorded, which are most of them.
                handler(request)
                return
            if isinstance(followed, _Followed):
                place = followed.place
                since, followed.since = followed.since, now()
                followed.behind += 1
                place.past(name, since, followed.since)
            else:
                place = followed
            # A request may come here from where others left their seat.
            current.set(place)
            try:
                handler(request)
            finally:
                current.set(before)

        return behind

    def and_then(self, ended: Callable[[KubeRequest], object]) -> Callable[[KubeRequest], None]:
        """What is told of requests that are over, and tells others of them, too."""

        def told(request: KubeRequest) -> None:
            self.ended(request)
            ended(request)

        return told

    def ended(self, request: KubeRequest) -> None:
        """A request is answered, or its client has gone."""
        followed: _Followed | Span | Unrecorded | None = request.trace
        if not isinstance(followed, _Followed):
            return
        request.trace = None
        place, now = followed.place, self._now()
        if followed.behind < len(self._filters):
            # It did not come any further.
            place.past(self._filters[followed.behind], followed.since, now)
        if request.body_length:
            place.put("http.request.body.size", request.body_length)
        if request.sentLength:
            place.put("http.response.body.size", request.sentLength)
        if request.switched or request.startedWriting:
            place.put("http.response.status_code", request.code)
            if request.code >= 500:
                place.fail(str(request.code))
        else:
            place.fail("aborted")
        place.end(now)


def span_name(request: KubeRequest) -> str:
    """What the span of a request is called: its method and its path, without the names in it."""
    info = request.info
    method = cut(request.method.decode("latin-1"), _LONGEST_PART)
    if not info.is_resource_request:
        return method
    parts = [info.api_prefix, info.group, info.version] if info.group else [info.api_prefix, info.version]
    if info.namespace:
        parts += ("namespaces", "{:namespace}")
    parts.append(cut(info.resource, _LONGEST_PART))
    if info.name:
        parts.append("{:name}")
    if info.subresource:
        parts.append(cut(info.subresource, _LONGEST_PART))
    return f"{method} /{'/'.join(cut(part, _LONGEST_PART) for part in parts)}"


def attributes_of(request: KubeRequest) -> dict[str, Value]:
    """What the span of a request says of it, when it comes."""
    method = request.method.decode("latin-1")
    known = method.upper() if method.upper() in _METHODS else "GET"
    info = request.info
    attributes: dict[str, Value] = {
        "http.request.method": known,
        "url.scheme": "https",
        "url.path": safe_uri(request.path),
        "http.target": safe_uri(request.uri, opaque=info.subresource == "proxy"),
        "network.protocol.version": request.clientproto.decode("latin-1").removeprefix("HTTP/"),
        "audit-id": cut(request.audit_id, LONGEST_ID),
    }
    if known != method:
        attributes["http.request.method_original"] = cut(method, _LONGEST_PART)
    host, port = _host(request)
    if host:
        attributes["server.address"] = cut(host, _LONGEST_HOST)
    if port.isascii() and port.isdigit() and len(port) < 6:
        attributes["server.port"] = int(port)
    if request.user_agent:
        attributes["user_agent.original"] = cut(request.user_agent, LONGEST_AGENT)
    peer = peer_of(request)
    if peer is not None:
        attributes["network.peer.address"], attributes["network.peer.port"] = peer
    client = client_of(request)
    if client:
        attributes["client.address"] = client
    return attributes


def client_of(request: KubeRequest) -> str:
    """Who has sent a request, if proxies are to be believed."""
    forwarded = request.header(b"x-forwarded-for")
    if forwarded:
        return cut(forwarded.partition(b",")[0].strip().decode("latin-1"), _LONGEST_ADDRESS)
    peer = peer_of(request)
    return "" if peer is None else peer[0]


def _host(request: KubeRequest) -> tuple[str, str]:
    """Under which name, and port, the client knows this server."""
    text = (request.header(b"host") or b"").decode("latin-1")
    host, bracket, rest = text.partition("]")
    if bracket:
        return host.removeprefix("["), rest.removeprefix(":")
    host, _, port = text.partition(":")
    return host, port
