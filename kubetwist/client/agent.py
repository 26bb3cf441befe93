"""
An agent of Twisted's C{IAgent} over the connections of L{StreamingClient}, for L{treq.client.HTTPClient}.

The agent calls one server. Responses have no content coding: treq requests gzip and decodes it, but the size limit of a
response applies to the bytes that are received.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from http.cookiejar import Cookie, CookieJar
from typing import Any, Final, cast
from urllib.request import Request

from attrs import frozen
from hyperlink import EncodedURL

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IProducer, IProtocol, IPushProducer, ITransport
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgent, IBodyProducer, IClientRequest, IResponse
from zope.interface import implementer

from .connection import StreamingResponse, Upload
from .errors import Unreachable
from .responsehead import Fields
from .streaming import StreamingClient

#: An absolute URL, and in it the path and the query.
_URL: Final = re.compile(rb"https?://[^/?#\x00-\x20\x7f-\xff]+([/?][!-\"$-~]*)?")
#: Header fields of a response that describe the connection and the framing of the body.
_CONNECTION_FIELDS: Final = frozenset(
    b"connection content-length keep-alive proxy-connection te trailers transfer-encoding upgrade".split()
)
_QUERY: Final = ord("?")
_DONE: Final = Failure(ResponseDone())


class RequestURL(EncodedURL):
    """A URL with its text; C{EncodedURL} encodes and joins its parts again for each call."""

    text: str

    def to_uri(self) -> EncodedURL:
        """Return this URL: its text is ASCII."""
        return self

    def to_text(self, with_password: bool = False) -> str:
        """Return the text."""
        return self.text


@lru_cache(maxsize=256)
def request_url(text: str) -> RequestURL:
    """
    Parse a URL.

    @raise Unreachable: It is invalid.
    """
    try:
        url = cast(RequestURL, RequestURL.from_text(text))
    except ValueError:
        raise Unreachable("invalid URL") from None
    url.text = text
    return url


class NoCookies(CookieJar):
    """A cookie jar that stores and sends no cookies."""

    def add_cookie_header(self, request: Request) -> None:
        """Add nothing."""

    def extract_cookies(self, response: object, request: Request) -> None:
        """Ignore the cookies of a response."""

    def set_cookie(self, cookie: Cookie) -> None:
        """Ignore a cookie."""

    def __iter__(self) -> Iterator[Cookie]:
        """Return no cookies."""
        return iter(())


@frozen
@implementer(IBodyProducer)
class BytesProducer:
    """A request body in memory, which the agent sends together with the head."""

    content: bytes

    @property
    def length(self) -> int:
        """Return the length in bytes."""
        return len(self.content)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """@see: L{IBodyProducer}."""
        consumer.write(self.content)
        done: Deferred[None] = Deferred()
        done.callback(None)
        return done

    def pauseProducing(self) -> None:
        """@see: L{IPushProducer}."""

    def resumeProducing(self) -> None:
        """@see: L{IPushProducer}."""

    def stopProducing(self) -> None:
        """@see: L{IProducer}."""


@frozen
@implementer(IClientRequest)
class SentRequest:
    """The request of a response."""

    method: bytes
    absoluteURI: bytes
    headers: Headers


@implementer(IAgent)
class StreamingAgent:
    """Agent that sends requests with a L{StreamingClient}, to the server in its settings."""

    def __init__(self, client: StreamingClient) -> None:
        self._client = client

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,
    ) -> Deferred[IResponse]:
        """
        Send a request.

        @param method: The HTTP method.
        @param uri: The URL; its origin is ignored.
        @param headers: The header fields. C{Accept-Encoding} is not sent.
        @param bodyProducer: The body; L{None} for none.
        @return: Fires with an L{AgentResponse}; fails with L{Unreachable}. Cancelling it ends the exchange.
        """
        return Deferred.fromCoroutine(self._request(method, uri, headers or Headers(), bodyProducer))

    async def _request(
        self, method: bytes, uri: bytes, headers: Headers, body_producer: IBodyProducer | None
    ) -> IResponse:
        url = _URL.fullmatch(uri)
        if url is None:
            raise Unreachable("invalid URL")
        target = url[1] or b"/"
        if target[0] == _QUERY:
            target = b"/" + target
        fields = [
            (name, value)
            for name, values in headers.getAllRawHeaders()
            if name != b"Accept-Encoding"
            for value in values
        ]
        response = await self._client.request(method, target, fields, _body(body_producer))
        return AgentResponse(response, SentRequest(method, uri, headers))


def _body(producer: IBodyProducer | None) -> bytes | Upload | None:
    """Return a request body in the form that L{StreamingClient} sends."""
    if producer is None:
        return None
    if isinstance(producer, BytesProducer):
        return producer.content

    def deliver(consumer: IConsumer) -> Deferred[None]:
        consumer.registerProducer(producer, True)

        def unregister(result: Any) -> Any:
            consumer.unregisterProducer()
            return result

        done: Deferred[None] = producer.startProducing(consumer)
        return done.addBoth(unregister)

    return Upload(None if producer.length == UNKNOWN_LENGTH else producer.length, deliver)


@implementer(IResponse)
class AgentResponse:
    """
    A response whose head has arrived. L{deliverBody} must be called, and is called once.

    @ivar fields: The header fields, without the connection fields. Names are in lower case.
    @ivar headers: The same without C{Content-Encoding}, so that C{ContentDecoderAgent} does not decode the body.
    """

    previousResponse: IResponse | None = None

    def __init__(self, response: StreamingResponse, request: IClientRequest) -> None:
        self._response = response
        self.version = (b"HTTP", 1, response.minor)
        self.code = response.code
        self.phrase = response.phrase
        self.request = request
        length = response.length
        self.length: int | str = UNKNOWN_LENGTH if length is None or length < 0 else length
        self.fields: Fields = [field for field in response.fields if field[0] not in _CONNECTION_FIELDS]
        self.headers = Headers()
        for name, value in self.fields:
            if name != b"content-encoding":
                self.headers.addRawHeader(name, value)

    def deliverBody(self, protocol: IProtocol) -> None:
        """
        Deliver the body. At its end the protocol loses its connection with L{ResponseDone}, or with L{Unreachable} if
        the rest of the body does not arrive.
        """
        protocol.makeConnection(cast(ITransport, _BodyTransport(self._response)))
        self._response.deliver(_ProtocolConsumer(protocol)).addCallbacks(
            lambda _: protocol.connectionLost(_DONE), protocol.connectionLost
        )

    def setPreviousResponse(self, response: IResponse) -> None:
        """@see: L{IResponse}; redirects are not followed."""
        self.previousResponse = response


@implementer(IPushProducer)
class _BodyTransport:
    """The transport of the protocol that receives a body."""

    disconnecting = False

    def __init__(self, response: StreamingResponse) -> None:
        self._response = response
        self.pauseProducing = response.pauseProducing
        self.resumeProducing = response.resumeProducing

    def stopProducing(self) -> None:
        """Discard the rest of the body, and end the exchange."""
        self.disconnecting = True
        self._response.stopProducing()

    loseConnection = abortConnection = stopProducing


@implementer(IConsumer)
class _ProtocolConsumer:
    """Consumer that passes the data to a protocol."""

    def __init__(self, protocol: IProtocol) -> None:
        self.write = protocol.dataReceived

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """@see: L{IConsumer}; the protocol controls the producer by its transport."""

    def unregisterProducer(self) -> None:
        """@see: L{IConsumer}."""
