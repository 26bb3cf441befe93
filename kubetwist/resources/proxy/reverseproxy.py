"""
A reverse proxy: forwards requests and answers with backpressure in both directions.

The forwarding is the reference's (kubernetes/apimachinery, C{pkg/util/proxy/upgradeaware.go}, and Go's
C{httputil.ReverseProxy}), without its openings for misuse. A redirect is an error, or rewritten to the path under
which its backend is proxied. A connection is upgraded only after the backend has accepted. Links in HTML are not
rewritten.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from attrs import define

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...api.errors import APIStatusError
from ...client.errors import Unreachable
from ...http.request import KubeRequest
from .relay import splice

if TYPE_CHECKING:
    from ...client.streaming import StreamingClient, StreamingResponse

_log = Logger()

Fields = list[tuple[bytes, bytes]]

#: Hop-by-hop fields.
HOP_BY_HOP_HEADERS: Final = frozenset(
    (
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
#: Fields that are rebuilt for the backend, or meant for this server.
REPLACED_HEADERS: Final = frozenset((b"host", b"content-length", b"expect", b"authorization", b"audit-id"))
#: Fields with the user's identity: only this server sets them.
_IDENTITY_PREFIXES: Final = (b"x-remote-", b"impersonate-")
#: Response fields that a backend may not set, such as CORS headers.
BLOCKED_RESPONSE_HEADERS: Final = frozenset(
    (
        b"access-control-allow-credentials",
        b"access-control-allow-headers",
        b"access-control-allow-methods",
        b"access-control-allow-origin",
        b"audit-id",
    )
)
#: The policy for content of backends in a browser with a session: it runs in an opaque origin, so that it cannot read
#: the session's key.
SANDBOX: Final = b"sandbox allow-downloads allow-forms allow-popups allow-scripts"
#: Response fields that would affect the page of the UI, or other backends, in a browser with a session.
_ORIGIN_HEADERS: Final = frozenset(
    (
        b"alt-svc",
        b"clear-site-data",
        b"nel",
        b"report-to",
        b"service-worker-allowed",
        b"strict-transport-security",
    )
)
#: Prefix of the names of the server's own cookies: L{kubetwist.authentication.sessions}.
_SERVER_COOKIES: Final = b"__host-kubetwist-"
#: The protocols of upgrades.
PROTOCOLS: Final = (b"websocket", b"spdy/3.1")

REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
UPGRADE_REQUIRED: Final = "Upgrade request required"

_UNSAFE_LOCATION: Final = re.compile(rb"[\x00-\x20\x7f-\xff\\]")


class ProxyError(Exception):
    """
    A request without a response of a backend; the text is for the client.

    @ivar code: The HTTP status, if the error is returned as a Status.
    @ivar transport: The backend was unreachable, or its response invalid; C{__cause__} has the details.
    """

    def __init__(self, code: int, text: str, *, transport: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.transport = transport

    def as_status(self) -> APIStatusError:
        """Return the error as a Status."""
        text = str(self)
        if self.code == 503:
            return APIStatusError.service_unavailable(text)
        if self.code == 400:
            return APIStatusError.bad_request(text)
        return APIStatusError.unknown(text) if self.code == 500 else APIStatusError(self.code, "", text)


Fail = Callable[["KubeRequest", ProxyError], object]


def fail_with_status(request: KubeRequest, error: ProxyError) -> None:
    """Answer with a Status, as the proxies of pods, services and nodes do."""
    request.fail(error.as_status())


def fail_with_text(request: KubeRequest, error: ProxyError) -> None:
    """Answer in plain text, as the aggregator does: any failure of a backend makes it unavailable."""
    if error.code == 502:
        request.respond(502, str(error).encode(), b"text/plain; charset=utf-8")
    else:
        request.respond_text(503 if error.code == 500 else error.code, f"{error}\n")


class Tunnel(Protocol):
    """Requests another protocol from the backend than the client has requested, and translates."""

    method: bytes

    def fields(self, fields: Fields) -> Fields:
        """Return the header of the backend's request, given the header without a translation."""

    def upgraded(self, request: KubeRequest, answer: StreamingResponse) -> Deferred[None]:
        """Answer the client after a backend's C{101}; fires when both connections are closed."""


async def proxy_request(
    request: KubeRequest,
    client: StreamingClient,
    target: bytes,
    *,
    identity: Sequence[tuple[bytes, bytes]] = (),
    host: bytes = b"",
    prefix: bytes = b"",
    redirects: bool = False,
    upgrades: bool = True,
    upgrade_required: bool = False,
    tunnel: Tunnel | None = None,
    fail: Fail = fail_with_status,
    response_header_timeout: float | None = None,
) -> None:
    """
    Forward a request to a backend; returns when the exchange is over.

    The loss of the client ends the exchange with the backend; a truncated response is truncated for the client, too.

    @param request: The request of the client.
    @param client: The client of the backend.
    @param target: The path and the query at the backend, escaped.
    @param identity: Fields with the user's identity, and further fields; they replace fields of the client.
    @param host: The backend's C{Host}; by default the host in the settings of C{client}.
    @param prefix: The path on this server that maps to the backend's root.
    @param redirects: Pass on redirects to paths below C{prefix}.
    @param upgrades: Allow upgrades to WebSocket or SPDY.
    @param upgrade_required: Reject other requests.
    @param tunnel: Handles upgrades instead of passing them on unchanged.
    @param fail: Answers the client when the backend does not.
    @param response_header_timeout: Seconds to wait for the head of the response.
    """
    if request.is_done:
        # The client was lost while its target or identity was resolved.
        return
    exchange = _Exchange(
        request, client, target, tuple(identity), host, prefix, redirects, tunnel, fail, response_header_timeout
    )
    task: Deferred[None] = Deferred.fromCoroutine(exchange.run(upgrades, upgrade_required))
    request.notifyFinish().addBoth(lambda _: None if exchange.settled else task.cancel())
    if request.info.long_running and not request.finished:
        # The end of a forwarded response is unknown: it is aborted when the server stops.
        request.register_long_running(lambda: _end_exchange(request))
    try:
        await task
    except CancelledError:
        # The client has disconnected, or has received a timeout.
        if not (request.finished or request.disconnected):
            raise


def _end_exchange(request: KubeRequest) -> None:
    if request.startedWriting:
        request.truncate_response()
    else:
        request.fail(APIStatusError.service_unavailable("the server is stopping"))


@define
class _Exchange:
    """
    A forwarded request.

    @ivar settled: Whether the end is already handled: nothing is to be aborted at the end of the request.
    """

    request: KubeRequest
    client: StreamingClient
    target: bytes
    identity: tuple[tuple[bytes, bytes], ...]
    host: bytes
    prefix: bytes
    redirects: bool
    tunnel: Tunnel | None
    fail: Fail
    response_header_timeout: float | None
    settled: bool = False

    async def run(self, upgrades: bool, upgrade_required: bool) -> None:
        request = self.request
        try:
            if is_upgrade(request):
                await self._upgrade(upgrades)
            elif upgrade_required:
                raise ProxyError(400, UPGRADE_REQUIRED)
            else:
                await self._forward()
        except ProxyError as error:
            self.settled = True
            self.fail(request, error)
        except APIStatusError as error:
            self.settled = True
            request.fail(error)

    # Requests and responses.

    async def _forward(self) -> None:
        from ...client.streaming import Upload

        request = self.request
        body: bytes | Upload
        streamed = request.streamed
        if streamed is not None and not streamed.finished:
            body = Upload(streamed.length, request.deliver_body)
        else:
            body = request.read_body()
        try:
            answer = await self.client.request(
                request.method, self.target, self._fields(), body, response_header_timeout=self.response_header_timeout
            )
        except Unreachable as error:
            raise ProxyError(503, f"error trying to reach service: {error}", transport=True) from error
        await self._respond(answer)

    async def _respond(self, answer: StreamingResponse) -> None:
        request = self.request
        location = answer.field(b"location")
        redirect = 300 <= answer.code < 400 and (answer.code != 304 or location is not None)
        if location is not None and self.redirects:
            location = self._rewrite(location)
        if redirect and (location is None or not self.redirects):
            answer.abort()
            raise ProxyError(502, REDIRECTED)
        request.setResponseCode(answer.code)
        headers = request.responseHeaders
        for name, value in _without_hops(answer.fields):
            if _is_blocked_response_header(name, value) or (
                name == b"cache-control" and value == request.cache_control
            ):
                continue
            if request.signed_in and name in _ORIGIN_HEADERS:
                continue
            if request.shown_prefix and name in (b"set-cookie", b"referrer-policy"):
                # All backends have the same host, so that each would get the cookies of all.
                continue
            if name == b"content-length" and answer.code == 204:
                # There is no body that the length could describe.
                continue
            if name == b"location" and location is not None:
                value = self._shown(location)
            headers.addRawHeader(name, value)
        if request.cache_control:
            headers.addRawHeader(b"cache-control", request.cache_control)
        if request.signed_in:
            headers.addRawHeader(b"content-security-policy", SANDBOX)
        body = answer.buffered_body()
        if body is not None:
            # The whole body has arrived with the head.
            if answer.length is None or answer.length < 0:
                headers.setRawHeaders(b"content-length", [b"%d" % len(body)])
            self.settled = True
            request.write(body)
            request.finish()
            return
        request.write(b"")
        try:
            await answer.deliver(request)
        except CancelledError:
            raise
        except Exception:
            # If the backend is lost, the client gets a truncated response.
            self.settled = True
            request.truncate_response()
        else:
            self.settled = True
            request.finish()

    # Upgrades.

    async def _upgrade(self, allowed: bool) -> None:
        request, tunnel = self.request, self.tunnel
        protocols = request.fields.get(b"upgrade") or [b""]
        if not allowed:
            raise ProxyError(400, "upgrades are not supported here")
        if len(protocols) != 1 or protocols[0].lower() not in PROTOCOLS:
            raise ProxyError(400, "only upgrades to websocket and SPDY/3.1 are supported")
        if request.body_length != 0:
            raise ProxyError(400, "an upgrade request cannot have a body")
        protocol = protocols[0]
        fields = [*self._fields(), (b"connection", b"Upgrade"), (b"upgrade", protocol)]
        method = request.method
        if tunnel is not None:
            method, fields = tunnel.method, tunnel.fields(fields)
            protocol = next((value for name, value in fields if name.lower() == b"upgrade"), b"")
        try:
            answer = await self.client.upgrade(
                method, self.target, fields, response_header_timeout=self.response_header_timeout
            )
        except Unreachable as error:
            raise ProxyError(500, f"error dialing backend: {error}", transport=True) from error
        if not answer.switched:
            if answer.code < 400:
                answer.abort()
                raise ProxyError(500, f"invalid upgrade response: status code {answer.code}")
            # Both connections close after the response: further data belongs to no protocol.
            request.connection.disable_keep_alive()
            await self._respond(answer)
            return
        if (answer.field(b"upgrade") or b"").lower() != protocol.lower():
            answer.abort()
            raise ProxyError(502, "the backend switched to another protocol than it was asked for")
        self.settled = True
        if tunnel is not None:
            await tunnel.upgraded(request, answer)
        else:
            fields_back = [
                (name, value)
                for name, value in _without_hops(answer.fields)
                if not _is_blocked_response_header(name, value)
            ]
            await splice(request, answer, [(b"upgrade", protocol), *fields_back])

    # The forwarded fields.

    def _fields(self) -> Fields:
        """Return the header of the backend's request."""
        request = self.request
        replaced = {name.lower() for name, _ in self.identity}
        fields: Fields = []
        forwarded = []
        for name, value in _without_hops((name, value) for name, values in request.fields.items() for value in values):
            if name == b"x-forwarded-for":
                forwarded.append(value)
            elif not (name in REPLACED_HEADERS or name in replaced or _is_identity(name) or name == b"x-forwarded-uri"):
                fields.append((name, value))
        peer = getattr(request.client, "host", None)
        if peer:
            forwarded.append(peer.encode())
        if forwarded:
            fields.append((b"x-forwarded-for", b", ".join(forwarded)))
        path = self.target.partition(b"?")[0]
        fields.append((b"x-forwarded-uri", joined_path(self.prefix, path)))
        if request.audit_id:
            fields.append((b"audit-id", request.audit_id.encode("latin-1", "replace")))
        if self.host:
            fields.append((b"host", self.host))
        fields += self.identity
        return fields

    # Redirects.

    def _shown(self, location: bytes) -> bytes:
        """Return a path of a backend as the browser knows it."""
        shown, prefix = self.request.shown_prefix, self.prefix.rstrip(b"/")
        return shown + location[len(prefix) :] if shown and location.startswith(prefix) else location

    def _rewrite(self, location: bytes) -> bytes | None:
        """Map a backend's C{Location} to our path; L{None} if it is not below our path for the backend."""
        hosts = {one.lower() for one in (self.client.host, self.host, self.request.header(b"host")) if one}
        return rewritten_location(location, self.target, self.prefix, hosts)


def is_upgrade(request: KubeRequest) -> bool:
    """Return whether a client requests an upgrade."""
    values = request.fields.get(b"connection")
    return values is not None and any(b"upgrade" in value.lower() for value in values)


def redirect_to_slash(request: KubeRequest) -> None:
    """
    Redirect a client to the same path with a trailing slash.

    The reference does so for a GET or HEAD of a proxy without a subpath, so that relative links resolve below it.
    """
    path, question, query = request.uri.partition(b"?")
    request.setHeader(b"location", path + b"/" + question + query)
    request.respond(301, b"", b"")


def joined_path(prefix: bytes, path: bytes) -> bytes:
    """Join two paths as Go's C{path.Join}, but keep a trailing slash."""
    joined = posixpath.normpath(b"/" + prefix.strip(b"/") + b"/" + path.lstrip(b"/"))
    if joined.startswith(b"//"):
        joined = joined[1:]
    return joined + b"/" if path.endswith(b"/") and joined != b"/" else joined


def rewritten_location(location: bytes, target: bytes, prefix: bytes, hosts: set[bytes]) -> bytes | None:
    """
    Map a backend's C{Location} to a path here.

    @param target: The path and query of the request to the backend.
    @param prefix: The path here that maps to the backend's root.
    @param hosts: The names of the backend, in lower case.
    @return: A path below C{prefix}; L{None} if it leads elsewhere, or is ambiguous to parsers.
    """
    if _UNSAFE_LOCATION.search(location) or not prefix:
        return None
    try:
        parts = urlsplit(location)
    except ValueError:
        return None
    if parts.netloc:
        if parts.netloc.lower() not in hosts or parts.scheme not in (b"", b"http", b"https"):
            return None
    elif parts.scheme:
        return None
    path = parts.path
    if b"%2e" in path.lower() or b"%2f" in path.lower() or b"%5c" in path.lower():
        return None
    prefix_path = prefix.rstrip(b"/")
    if path == prefix_path or path.startswith(prefix_path + b"/"):
        resolved = joined_path(b"/", path)
        if not (resolved == prefix_path or resolved.startswith(prefix_path + b"/")):
            return None
    else:
        base = target.partition(b"?")[0]
        if not path:
            path = b"/" if parts.netloc else base
        elif not path.startswith(b"/"):
            path = base.rpartition(b"/")[0] + b"/" + path
        # A path must not lead out of the backend: dots are resolved before the prefix is added.
        resolved = prefix_path + joined_path(b"/", path)
    query = b"?" + parts.query if parts.query else b""
    fragment = b"#" + parts.fragment if parts.fragment else b""
    return resolved + query + fragment


def _without_hops(fields: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields that are not hop-by-hop, by name or by C{Connection}."""
    fields = list(fields)
    named = {
        token.strip(b" \t").lower() for name, value in fields if name == b"connection" for token in value.split(b",")
    }
    return ((name, value) for name, value in fields if name not in HOP_BY_HOP_HEADERS and name not in named)


def _is_blocked_response_header(name: bytes, value: bytes) -> bool:
    """Return whether a backend may not send a field, for example a cookie that would sign the user out of the page."""
    return name in BLOCKED_RESPONSE_HEADERS or (name == b"set-cookie" and value.lower().startswith(_SERVER_COOKIES))


def _is_identity(name: bytes) -> bool:
    # Gateways treat underscores like dashes.
    return name.replace(b"_", b"-").startswith(_IDENTITY_PREFIXES)


def run_proxy(coroutine: Coroutine[Deferred[Any], Any, None], request: KubeRequest) -> None:
    """Run C{proxy_request} for a request without waiting for it."""
    task: Deferred[None] = Deferred.fromCoroutine(coroutine)

    def failed(failure: Failure) -> None:
        if not failure.check(CancelledError):
            request.handle_failure(failure)

    task.addErrback(failed)
