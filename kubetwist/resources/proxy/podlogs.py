"""
Sends a container's log, read from its kubelet.

@see: kubernetes/apiserver, C{pkg/registry/generic/rest/streamer.go}, C{response_checker.go}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer, IProducer
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.resource import GroupResource
from ...client.errors import AddressNotAllowed, Unreachable
from ...client.responses import generic_server_error
from ...http.request import KubeRequest
from ...registry.core.node.kubelets import address_not_allowed
from ...streams.handshakes import is_websocket

if TYPE_CHECKING:
    from ...client.streaming import StreamingClient, StreamingResponse
    from ...metrics.streams import StreamMetrics

#: Maximum bytes of a kubelet's error text in our errors.
_MAX_ERROR_LENGTH: Final = 50_000
_LOG: Final = GroupResource("", "pods/log")
_REDIRECTS: Final = (301, 302, 303, 307, 308)


async def send_log(
    request: KubeRequest, client: StreamingClient, target: bytes, name: str, metrics: StreamMetrics
) -> None:
    """
    Answer with a log until its end.

    @param client: A L{kubetwist.client.streaming.StreamingClient} of the kubelet.
    @param name: The pod's name.
    @raise APIStatusError: The kubelet is unreachable, or refuses.
    """
    request_sent: Deferred[StreamingResponse] = Deferred.fromCoroutine(client.request(b"GET", target, ()))
    request.register_long_running(request_sent.cancel)
    try:
        response = await request_sent
    except Unreachable as error:
        if isinstance(error, AddressNotAllowed):
            raise address_not_allowed() from error
        if "x509:" in str(error):
            metrics.log_tls_failed()
        raise APIStatusError.unknown(f"Get {quoted(_url(client, target))}: {error}") from error
    except CancelledError:
        if request.disconnected:
            raise
        # The server stops, and a kubelet without new log lines may not answer for long.
        request.abort()
        return
    if not 200 <= response.code <= 206:
        raise await _kubelet_error(response, _url(client, target), name)
    if is_websocket(request.fields):
        from .websocketlogs import send_by_websocket

        await send_by_websocket(request, response)
        return
    request.code = 200
    request.setHeader(b"Content-Type", b"text/plain")
    # A client that follows a log needs the response head at once.
    request.write(b"")
    request.register_long_running(response.abort)
    try:
        await response.deliver(request)
    except CancelledError:
        raise
    except Exception:
        # The kubelet was lost, or the server stops; clients detect that by the truncated response.
        request.truncate_response()
    else:
        request.finish()


async def _kubelet_error(response: StreamingResponse, url: str, name: str) -> APIStatusError:
    """Return the error for a kubelet's refusal."""
    location = response.field(b"location")
    if location is not None and response.code in _REDIRECTS:
        response.abort()
        redirect_url = urljoin(url, location.decode("latin-1"))
        return APIStatusError.unknown(f"Get {quoted(redirect_url)}: redirects forbidden")
    prefix = _PrefixConsumer()
    try:
        await response.deliver(prefix)
    except Unreachable as error:
        return APIStatusError.internal(str(error))
    except Exception:
        if not prefix.full:
            raise
    message = bytes(prefix.content).decode("utf-8", "replace")
    if response.code == 500:
        return APIStatusError.internal(message)
    if response.code == 400:
        return APIStatusError.bad_request(message)
    status_error = generic_server_error(response.code, message, _LOG, name)
    if status_error.code < 400:
        # Neither a response with a log nor an error: clients must not take the code for one of this server.
        status_error.code = 502
    return status_error


def _url(client: StreamingClient, target: bytes) -> str:
    return f"{client.settings.url}{target.decode('latin-1')}"


@implementer(IConsumer)
class _PrefixConsumer:
    """Keeps the first written bytes, and then stops its producer."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.full = False
        self._producer: Any = None

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        self._producer = producer

    def unregisterProducer(self) -> None:
        self._producer = None

    def write(self, data: bytes) -> None:
        self.content += data[: _MAX_ERROR_LENGTH - len(self.content)]
        if len(self.content) == _MAX_ERROR_LENGTH and not self.full:
            self.full = True
            if self._producer is not None:
                self._producer.stopProducing()
