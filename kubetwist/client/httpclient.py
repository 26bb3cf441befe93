"""
A client of one server, for calls that wait for a complete response.

It uses Twisted's Agent without its wrappers: redirects are not followed, cookies are not kept, and responses are not
decompressed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from attrs import frozen

from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IConsumer, IStreamClientEndpoint
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.iweb import IBodyProducer
from zope.interface import implementer

from ..api.go.durations import format_duration
from ..interfaces import IServerReactor
from .dialing import (
    AddressOverrides,
    Closable,
    SSRFCheckedEndpoint,
    WatchedEndpoint,
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

#: Default maximum size of a response in bytes: the size limit of an API object.
MAX_RESPONSE_SIZE: Final = 3 * 1024 * 1024
#: Maximum number of idle connections, and their timeout in seconds.
_MAX_IDLE_CONNECTIONS: Final = 25
_IDLE_TIMEOUT: Final = 90
#: The characters that need no escape in a path.
_SAFE_IN_PATH: Final = "/%!$&'()*+,;=:@~"
_USER_AGENT: Final = b"kubetwist"


if TYPE_CHECKING:
    from twisted.web.client import URI, Agent, HTTPConnectionPool

    from .tls import ClientTLS


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
        address_overrides: AddressOverrides | None = None,
        connected: set[Closable] | None = None,
        metrics: CallMetrics | None = None,
    ) -> None:
        """
        @param limit: Maximum size of a response in bytes.
        @param metrics: Counts the calls.
        @param connected: Contains this client while it has connections.
        @raise InvalidRESTConfig: The settings are invalid.
        """
        parts, self._host, self._port = split_url(settings.url)
        self.settings = settings
        # Unusual characters are escaped, as Go prints URLs.
        self._url = urlunsplit((parts.scheme, parts.netloc, quote(parts.path, safe=_SAFE_IN_PATH) or "/", "", ""))
        if not self._url.isascii():
            raise InvalidRESTConfig(f"no URL of a server: {settings.url}")
        self._reactor = reactor
        self._limit = limit
        self._metrics = metrics
        self._address_overrides = address_overrides
        self._secure = parts.scheme == "https"
        self._agent: Agent | None = None
        self._pool: HTTPConnectionPool | None = None
        self._connections: WatchedEndpoint | None = None
        self._target: tuple[str, int] | None = None
        self._pending: set[Deferred[Any]] = set()
        self._closed = False
        self._retired = False
        self._connected: set[Closable] = set() if connected is None else connected
        self._fields = self._default_headers()
        self._tls: ClientTLS | None = None
        if self._secure:
            from .tls import ClientTLS

            self._tls = ClientTLS(settings, self._host)

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
            broken = _unreachable(error)
            if broken is None:
                raise
            raise CallError(method, url, str(broken), retriable=broken.retriable) from None
        finally:
            self._pending.discard(waiting)
            if self._retired and not self._pending:
                self.close()
            if timer.active():
                timer.cancel()

    async def _answer(
        self, method: str, url: str, fields: dict[bytes, list[bytes]], body: bytes, redirects: bool
    ) -> Response:
        from twisted.web.http_headers import Headers

        agent = self._agent or self._make_agent()
        self._check_target()
        response = await agent.request(method.encode(), url.encode(), Headers(fields), _Body(body) if body else None)
        collected = _Collected(self._limit)
        response.deliverBody(collected)
        content = await collected.done
        if 300 <= response.code < 400 and not redirects:
            raise CallError(method, url, f"the answer is a redirect ({response.code}), which is not followed")
        headers = {
            name.decode("latin-1").lower(): values[-1].decode("latin-1")
            for name, values in response.headers.getAllRawHeaders()
        }
        return Response(response.code, headers, content)

    def _check_target(self) -> None:
        """Use the current address of a service; fail if the service is deleted."""
        resolve_address = self.settings.resolve_address
        if resolve_address is None:
            return
        target = resolve_address()
        if self._target is not None and target != self._target:
            self._close_idle()
        self._target = target

    def _make_agent(self) -> Agent:
        from twisted.internet.endpoints import wrapClientTLS
        from twisted.web.client import Agent, HTTPConnectionPool

        self._pool = pool = HTTPConnectionPool(self._reactor, persistent=True)
        pool.retryAutomatically = False
        pool.maxPersistentPerHost = _MAX_IDLE_CONNECTIONS
        pool.cachedConnectionTimeout = _IDLE_TIMEOUT
        pool._factory.noisy = False
        endpoint: IStreamClientEndpoint = SSRFCheckedEndpoint(
            self._reactor,
            self.settings.resolve_address or (lambda: (self._host, self._port)),
            deny_internal=self.settings.deny_internal,
            allow_loopback=self.settings.allow_loopback,
            interfaces_are_loopback=self.settings.interfaces_are_loopback,
            denied_networks=self.settings.denied_networks,
            dial_timeout=self.settings.dial_timeout,
            address_overrides=self._address_overrides,
        )
        if self._tls is not None:
            endpoint = wrapClientTLS(self._tls, endpoint)
        self._connections = WatchedEndpoint(endpoint, self._limit, self._count)
        self._agent = Agent.usingEndpointFactory(self._reactor, _Always(self._connections), pool)
        return self._agent

    def _count(self, connections: int) -> None:
        if connections:
            self._connected.add(self)
        else:
            self._connected.discard(self)

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
        if self._connections is None:
            return succeed(None)
        # The TLS shutdown of the peer is not awaited. A connection whose response is being read comes to
        # the pool after this.
        self._close_idle()
        return self._connections.abort().addCallback(self._forget)

    def _forget(self, _: None) -> None:
        """Cancel the timers of closed connections."""
        self._close_idle()

    def _close_idle(self) -> None:
        if self._pool is not None:
            self._pool.closeCachedConnections()


class _Always:
    """Factory that returns one endpoint for all URLs."""

    def __init__(self, endpoint: IStreamClientEndpoint) -> None:
        self._endpoint = endpoint

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        return self._endpoint


@implementer(IBodyProducer)
class _Body:
    """A body in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.length = len(content)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self._content)
        done: Deferred[None] = Deferred()
        done.callback(None)
        return done

    def pauseProducing(self) -> None:
        pass

    def resumeProducing(self) -> None:
        pass

    def stopProducing(self) -> None:
        pass


class _Collected(Protocol):
    """The collected body of a response, with a size limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self.done: Deferred[bytes] = Deferred(self._stop_reading)

    def _stop_reading(self, done: object) -> None:
        if self.transport is not None:
            self.transport.stopProducing()  # type: ignore[attr-defined]

    def dataReceived(self, data: bytes) -> None:
        previous_size, self._size = self._size, self._size + len(data)
        if self._size <= self._limit:
            self._pieces.append(data)
        elif previous_size <= self._limit:
            self._pieces.clear()
            self._stop_reading(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        from twisted.web.client import ResponseDone
        from twisted.web.http import PotentialDataLoss

        if self.done.called:
            return
        if self._size > self._limit:
            self.done.errback(Unreachable(f"the answer is longer than {self._limit} bytes"))
        elif reason.check(ResponseDone, PotentialDataLoss):
            self.done.callback(b"".join(self._pieces))
        else:
            broken = _unreachable(reason.value)
            text = "unexpected EOF" if broken is None or str(broken) == "EOF" else str(broken)
            self.done.errback(Unreachable(text, retriable=broken is not None and broken.retriable))


def _unreachable(error: BaseException | None) -> Unreachable | None:
    """Return the error with its reported text; L{None} for an error that is not about the connection."""
    from twisted.web._newclient import BadHeaders, ParseError, RequestNotSent
    from twisted.web.client import RequestTransmissionFailed, ResponseFailed

    if isinstance(error, Unreachable):
        return error
    if isinstance(error, ResponseFailed | RequestTransmissionFailed):
        reasons = getattr(error, "reasons", None) or error.args[0]
        errors = [one for one in (_unreachable(reason.value) for reason in reasons) if one is not None]
        return errors[0] if errors else Unreachable("EOF")
    if isinstance(error, ParseError | BadHeaders | ValueError):
        # The received data is not quoted: it may be confidential, and the peer may be the wrong one.
        return Unreachable("net/http: HTTP/1.x transport connection broken: malformed HTTP response")
    if isinstance(error, ConnectionDone | RequestNotSent):
        return Unreachable("EOF")
    return None


def _field(text: str) -> bytes:
    return text.encode("utf-8")
