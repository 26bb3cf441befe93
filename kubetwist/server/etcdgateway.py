"""Connections to the gateway of a member of etcd for HTTP/1.1: treq for calls, and one connection for each watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IProducer
from twisted.python.failure import Failure
from zope.interface import implementer

from ..client.errors import CallError, Unreachable
from ..client.httpclient import WebhookClient
from ..client.restconfig import RESTConfig
from ..client.streaming import StreamingClient
from ..interfaces import IServerReactor
from ..storage.etcd.address import Address
from ..storage.etcd.gateway import IGatewayTransport, NoResponse, NotSent, ResponseTimeout

#: Maximum size in bytes of a response. A page of a range has at most a hundred values of unknown size.
MAX_RESPONSE_BYTES: Final = 256 << 20
#: Seconds until an idle connection is closed, less than with any usual proxy: a write on a connection that the proxy
#: closes at the same time gets no response.
IDLE_TIMEOUT: Final = 20.0
#: Maximum size in bytes of a response that refuses a watch.
MAX_REFUSAL_BYTES: Final = 64 << 10

_HEADERS: Final = {"Content-Type": ("application/json",)}
#: A member without a leader refuses and ends the watch.
_WATCH_FIELDS: Final = (
    (b"Content-Type", b"application/json"),
    (b"User-Agent", b"kubetwist"),
    (b"Grpc-Metadata-hasleader", b"true"),
)


def _call_error(error: CallError) -> Exception:
    """Return the error of a call by its known outcome."""
    if error.timed_out:
        return ResponseTimeout(error.reason)
    return NoResponse(error.reason) if error.sent else NotSent(error.reason)


@implementer(IGatewayTransport)
class GatewayTransport:
    """L{IGatewayTransport} with the server's clients: without redirects, cookies and compression."""

    def __init__(self, reactor: IServerReactor, settings: RESTConfig) -> None:
        """
        @param settings: The URL of the member without a path, and the credentials.
        @raise InvalidRESTConfig: The settings are invalid.
        """
        self._calls = WebhookClient(reactor, settings, limit=MAX_RESPONSE_BYTES, idle_timeout=IDLE_TIMEOUT)
        self._streams = StreamingClient(reactor, settings, http2=False)

    def post(self, path: str, body: bytes, timeout: float) -> Deferred[tuple[int, bytes]]:
        """See L{IGatewayTransport.post}."""
        return Deferred.fromCoroutine(self._post(path, body, timeout))

    async def _post(self, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        try:
            response = await self._calls.fetch(path, method="POST", body=body, timeout=timeout, headers=_HEADERS)
        except CallError as error:
            raise _call_error(error) from None
        return response.code, response.body

    def stream(
        self,
        path: str,
        body: bytes,
        receive: Callable[[bytes], object],
        refused: Callable[[int, bytes], Exception],
    ) -> Deferred[None]:
        """
        See L{IGatewayTransport.stream}.

        @param path: The path.
        @param body: The body of the request.
        @param receive: Called with each piece of the response.
        @param refused: Returns the error for another status than 200.
        """
        receiver = _Receiver(receive)
        receiver.begin(Deferred.fromCoroutine(self._stream(path, body, receiver, refused)))
        return receiver.done

    async def _stream(
        self, path: str, body: bytes, receiver: _Receiver, refused: Callable[[int, bytes], Exception]
    ) -> None:
        try:
            response = await self._streams.request(b"POST", path.encode("ascii"), _WATCH_FIELDS, body)
            if response.code != 200:
                raise refused(response.code, await response.collect(MAX_REFUSAL_BYTES))
            await response.deliver(receiver)
        except Unreachable as error:
            raise (NoResponse(str(error)) if error.sent else NotSent(str(error))) from None

    def close(self) -> None:
        """See L{IGatewayTransport.close}."""
        self._calls.close()
        self._streams.close()


def gateway_transports(reactor: IServerReactor, settings: RESTConfig) -> Callable[[Address], IGatewayTransport]:
    """
    Return a factory of the connections to members.

    @param settings: The credentials; the URL is not used.
    """

    def make(address: Address) -> IGatewayTransport:
        scheme = "https" if address.tls else "http"
        return GatewayTransport(reactor, evolve(settings, url=f"{scheme}://{address.authority}"))

    return make


@implementer(IConsumer)
class _Receiver:
    """
    Consumer that passes the pieces of a body to a function.

    @ivar done: Fires at the end of the body. It can be cancelled at any time, also by the function.
    """

    def __init__(self, receive: Callable[[bytes], object]) -> None:
        self._receive = receive
        self._running: Deferred[None] | None = None
        self._producer: IProducer | None = None
        self._stopped = False
        self.done: Deferred[None] = Deferred(self._cancelled)

    def begin(self, running: Deferred[None]) -> None:
        """
        Pass the result of a call to C{done}.

        @param running: The call, whose response this consumer receives.
        """
        self._running = running
        running.addBoth(self._finish)

    def _finish(self, result: Failure | None) -> None:
        if not (self._stopped or self.done.called):
            self.done.callback(result)

    def _cancelled(self, done: object) -> None:
        self._stopped = True
        # While pieces are received, the call is not waiting, and cannot be cancelled.
        if self._producer is not None:
            self._producer.stopProducing()
        elif self._running is not None:
            self._running.cancel()

    def write(self, data: bytes) -> None:
        """See L{IConsumer}."""
        if not self._stopped:
            self._receive(data)

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """See L{IConsumer}; the body is read as fast as it arrives."""
        self._producer = producer

    def unregisterProducer(self) -> None:
        """See L{IConsumer}."""
        self._producer = None
