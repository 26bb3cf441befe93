"""
A client of one server, for calls that wait for a complete response.

Calls use treq, with the agent of L{kubetwist.client.agent}: redirects are not followed, cookies are not kept, and
responses are not decompressed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from attrs import evolve, frozen

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from ..api.go.durations import format_duration
from ..interfaces import IServerReactor
from .dialing import (
    AddressOverrides,
    Closable,
)
from .errors import (
    COMMON_NAME_ONLY,
    CallError,
    InvalidRESTConfig,
    Unreachable,
)
from .metrics import CallMetrics
from .restconfig import (
    RESTConfig,
    split_url,
)
from .streaming import StreamingClient

#: Default maximum size of a response in bytes: the size limit of an API object.
MAX_RESPONSE_SIZE: Final = 3 * 1024 * 1024
#: Maximum number of idle connections, and their timeout in seconds.
_MAX_IDLE_CONNECTIONS: Final = 25
_IDLE_TIMEOUT: Final = 90.0
#: The characters that need no escape in a path.
_SAFE_IN_PATH: Final = "/%!$&'()*+,;=:@~"
_USER_AGENT: Final = b"kubetwist"


if TYPE_CHECKING:
    from http.cookiejar import CookieJar

    from treq.client import HTTPClient


@frozen
class Response:
    """
    A complete response.

    @ivar headers: By lower-case name; the last value of each.
    """

    code: int
    headers: Mapping[str, str]
    body: bytes


class WebhookClient:
    """
    Client of the server in its settings, with persistent connections.

    @ivar settings: The settings, unchanged.
    """

    def __init__(
        self,
        reactor: IServerReactor,
        settings: RESTConfig,
        *,
        limit: int = MAX_RESPONSE_SIZE,
        idle_timeout: float = _IDLE_TIMEOUT,
        address_overrides: AddressOverrides | None = None,
        connected: set[Closable] | None = None,
        metrics: CallMetrics | None = None,
    ) -> None:
        """
        @param limit: Maximum size of a response in bytes.
        @param idle_timeout: Seconds until an idle connection is closed.
        @param metrics: Counts the calls.
        @param connected: Contains this client while it has connections.
        @raise InvalidRESTConfig: The settings are invalid.
        """
        parts, _, _ = split_url(settings.url)
        self.settings = settings
        # Unusual characters are escaped, as Go prints URLs.
        self._url = urlunsplit((parts.scheme, parts.netloc, quote(parts.path, safe=_SAFE_IN_PATH) or "/", "", ""))
        if not self._url.isascii():
            raise InvalidRESTConfig(f"no URL of a server: {settings.url}")
        self._reactor = reactor
        self._limit = limit
        self._metrics = metrics
        self._http: HTTPClient | None = None
        self._cookies: CookieJar | None = None
        self._target: tuple[str, int] | None = None
        self._pending: set[Deferred[Any]] = set()
        self._closed = False
        self._retired = False
        self._fields = self._default_headers()
        self._client = StreamingClient(
            reactor,
            evolve(
                settings,
                # The header fields of each call include the ones of the settings.
                headers={},
                token="",
                basic_auth=None,
                resolve_address=None if settings.resolve_address is None else self._resolve_address,
            ),
            address_overrides=address_overrides,
            connected=connected,
            owner=self,
            max_idle_connections=_MAX_IDLE_CONNECTIONS,
            idle_timeout=idle_timeout,
        )

    def _default_headers(self) -> dict[bytes, list[bytes]]:
        settings = self.settings
        netloc = urlsplit(self._url).netloc.rpartition("@")[2]
        fields = {b"Host": [_field(netloc)], b"User-Agent": [_USER_AGENT]}
        for name, value in settings.headers.items():
            fields[_field(name)] = [_field(value)]
        if settings.token:
            fields[b"Authorization"] = [b"Bearer " + _field(settings.token)]
        elif settings.basic_auth is not None:
            fields[b"Authorization"] = [b"Basic " + b64encode(":".join(settings.basic_auth).encode())]
        return fields

    async def post(
        self,
        body: bytes,
        *,
        timeout: float,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        show_timeout: bool = True,
    ) -> Response:
        """
        Send C{body} and return the response.

        @param timeout: Seconds until the last byte of the response.
        @param show_timeout: Whether the query carries the timeout for the server.
        @return: The response, with any status code except a redirect.
        @raise CallError: The response is incomplete, too long, or a redirect.
        """
        fields = {
            **self._fields,
            b"Content-Type": [_field(content_type)],
            b"Accept": [_field(accept)],
            **{_field(name): [_field(value)] for name, value in (headers or {}).items()},
        }
        arguments = dict(query or {})
        if show_timeout:
            arguments["timeout"] = format_duration(round(timeout * 1_000_000_000))
        url = self._url
        if arguments:
            url += "?" + urlencode(sorted(arguments.items()))
        if self._metrics is None:
            return await self._call("POST", url, fields, body, timeout)
        host, began = self._fields[b"Host"][0].decode("latin-1"), perf_counter()
        try:
            response = await self._call("POST", url, fields, body, timeout)
        except CallError as error:
            self._metrics.failed(host, perf_counter() - began, len(body), nameless=COMMON_NAME_ONLY in str(error))
            raise
        self._metrics.answered(host, response.code, perf_counter() - began, len(body), len(response.body))
        return response

    async def get(self, *, timeout: float, accept: str = "application/json", query: str = "") -> Response:
        """Send a GET request, as L{post}; the query is C{query} alone, which is escaped already."""
        url = f"{self._url}?{query}" if query else self._url
        return await self._call("GET", url, {**self._fields, b"Accept": [_field(accept)]}, b"", timeout)

    async def fetch(
        self,
        path: str,
        *,
        timeout: float,
        method: str = "GET",
        body: bytes = b"",
        origin: str = "",
        query: str = "",
        headers: Mapping[str, Sequence[str]] | None = None,
    ) -> Response:
        """
        Request another path than the one in the settings; every status code is a result, including redirects.

        @param path: The path, escaped; likewise C{query}.
        @param origin: The origin for the C{Host} header, C{"https://10.0.0.7:443"}; by default the settings' origin.
        """
        parts = urlsplit(origin or self._url)
        url = urlunsplit((parts.scheme, parts.netloc, path, query, ""))
        extra = {_field(name): [_field(value) for value in values] for name, values in (headers or {}).items()}
        fields = {**self._fields, b"Host": [_field(parts.netloc.rpartition("@")[2])], **extra}
        return await self._call(method, url, fields, body, timeout, redirects=True)

    async def _call(
        self,
        method: str,
        url: str,
        fields: dict[bytes, list[bytes]],
        body: bytes,
        timeout: float,
        *,
        redirects: bool = False,
    ) -> Response:
        if self._closed:
            raise CallError(method, url, "context canceled")
        waiting: Deferred[Response] = Deferred.fromCoroutine(self._answer(method, url, fields, body, redirects))
        timed_out = False

        def on_timeout() -> None:
            nonlocal timed_out
            timed_out = True
            waiting.cancel()

        timer = self._reactor.callLater(timeout, on_timeout)
        self._pending.add(waiting)
        try:
            return await waiting
        except CallError:
            raise
        except Exception as error:
            if timed_out:
                raise CallError(method, url, "context deadline exceeded", timed_out=True) from None
            if self._closed:
                raise CallError(method, url, "context canceled") from None
            if not isinstance(error, Unreachable):
                raise
            raise CallError(method, url, str(error), retriable=error.retriable, sent=error.sent) from None
        finally:
            self._pending.discard(waiting)
            if self._retired and not self._pending:
                self.close()
            if timer.active():
                timer.cancel()

    async def _answer(
        self, method: str, url: str, fields: dict[bytes, list[bytes]], body: bytes, redirects: bool
    ) -> Response:
        # Imported at the first call: most servers call no webhook.
        from twisted.web.http_headers import Headers

        from .agent import AgentResponse, BytesProducer, request_url

        try:
            headers = Headers(fields)
        except ValueError:
            raise Unreachable("net/http: invalid header field name") from None
        answer = await (self._http or self._make_http()).request(
            method,
            request_url(url),
            headers=headers,
            data=BytesProducer(body) if body else None,
            cookies=self._cookies,
            allow_redirects=False,
            unbuffered=True,
            reactor=self._reactor,  # type: ignore[arg-type] # treq uses it for timeouts only
        )
        collected = _Collected(self._limit)
        answer.deliverBody(collected)
        content = await collected.done
        response = answer.original
        assert isinstance(response, AgentResponse), "responses are not decoded"
        if 300 <= response.code < 400 and not redirects:
            raise CallError(method, url, f"the answer is a redirect ({response.code}), which is not followed")
        values = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.fields}
        return Response(response.code, values, content)

    def _make_http(self) -> HTTPClient:
        from treq.client import HTTPClient

        from .agent import NoCookies, StreamingAgent

        self._cookies = NoCookies()
        self._http = HTTPClient(StreamingAgent(self._client), self._cookies)  # type: ignore[arg-type] # not indexed
        return self._http

    def _resolve_address(self) -> tuple[str, int]:
        """Return the current address of a service; fail if the service is deleted."""
        assert self.settings.resolve_address is not None, "the settings have it"
        target = self.settings.resolve_address()
        if self._target is not None and target != self._target:
            self._client.drop_idle()
        self._target = target
        return target

    def retire(self) -> None:
        """Close after the last pending call; the caller has replaced this client."""
        self._retired = True
        if not self._pending:
            self.close()

    def close(self) -> Deferred[None]:
        """Abort calls and connections; fires when all are closed. Idempotent."""
        self._closed = True
        for waiting in list(self._pending):
            waiting.cancel()
        # The TLS shutdown of the peer is not awaited.
        return self._client.close()


class _Collected(Protocol):
    """
    The collected body of a response, with a size limit.

    @ivar done: Fires with the body; cancelling it ends the connection.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._content = bytearray()
        self._too_long = self._ended = False
        self.done: Deferred[bytes] = Deferred(self._cancelled)

    def _cancelled(self, done: object) -> None:
        self._ended = True
        self._stop_reading()

    def _stop_reading(self) -> None:
        if self.transport is not None:
            self.transport.stopProducing()  # type: ignore[attr-defined]

    def dataReceived(self, data: bytes) -> None:
        if self._too_long:
            return
        if len(self._content) + len(data) > self._limit:
            self._too_long = True
            self._content.clear()
            self._stop_reading()
        else:
            self._content += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        from twisted.web.client import ResponseDone

        if self._ended:
            return
        self._ended = True
        if self._too_long:
            self.done.errback(Unreachable(f"the answer is longer than {self._limit} bytes"))
        elif reason.check(ResponseDone):
            self.done.callback(bytes(self._content))
        else:
            self.done.errback(reason)


def _field(text: str) -> bytes:
    return text.encode("utf-8")
