"""Forwarding of streaming requests (exec, attach, port-forward) to kubelets: proxied, translated or tunneled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..http.request import KubeRequest

if TYPE_CHECKING:
    from ..api.featuregates import FeatureGates
    from ..client.streaming import StreamingClient
    from ..metrics.streams import StreamMetrics
    from .commands import Command
    from .handshakes import HandshakeError
    from .tunnel import Tunnel

#: The declared feature of nodes whose kubelet supports the WebSocket protocols of clients.
NODE_WEBSOCKETS_FEATURE: Final = "ExtendWebSocketsToKubelet"


class StreamMode(Enum):
    """How a request is forwarded to its kubelet."""

    #: Proxy the upgrade unchanged, to any protocol.
    PROXY = "proxy"
    #: Translate a command over WebSocket to SPDY (Go: StreamTranslatorHandler).
    TRANSLATE = "translate"
    #: Forward the SPDY bytes inside a WebSocket (Go: TunnelingHandler).
    TUNNEL = "tunnel"


class StreamHandlers:
    """
    Handles the streaming requests of one server.

    @ivar metrics: The metrics of streaming requests.
    """

    def __init__(self, metrics: StreamMetrics, features: FeatureGates) -> None:
        """
        @param metrics: The metrics of streaming requests.
        @param features: The feature gates of the server.
        """
        self.metrics = metrics
        self._translates = features.enabled("TranslateStreamCloseWebsocketRequests")
        self._tunnels = features.enabled("PortForwardWebsockets")
        self._kubelet_websockets = features.enabled(NODE_WEBSOCKETS_FEATURE)

    def select_mode(self, request: KubeRequest, subresource: str, node_features: Collection[str]) -> StreamMode:
        """
        Return how to forward a request, and count it.

        @param request: The request of the client.
        @param subresource: C{exec}, C{attach} or C{portforward}.
        @param node_features: The declared features of the pod's node.
        """
        # As below, imported with the first streaming request.
        from .channels import V5
        from .handshakes import is_websocket, subprotocols
        from .tunnel import tunneled_protocols

        kubelet = self._kubelet_websockets and NODE_WEBSOCKETS_FEATURE in node_features
        self.metrics.routed(subresource, kubelet)
        if kubelet or not is_websocket(request.fields):
            return StreamMode.PROXY
        if subresource == "portforward":
            return StreamMode.TUNNEL if self._tunnels and tunneled_protocols(request.fields) else StreamMode.PROXY
        return StreamMode.TRANSLATE if self._translates and V5 in subprotocols(request.fields) else StreamMode.PROXY

    async def translate(
        self,
        request: KubeRequest,
        client: StreamingClient,
        target: bytes,
        command: Command,
        fields: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """
        Handle a request with L{StreamMode.TRANSLATE}: accept the WebSocket and run the command, or answer an error.

        @param request: The request of the client.
        @param client: Client of the kubelet.
        @param target: Path and query at the kubelet.
        @param command: Streams of the command.
        @param fields: Further header fields for the kubelet.
        """
        from .channels import V5
        from .handshakes import HandshakeError, check_handshake
        from .translator import StreamTranslator

        try:
            handshake = check_handshake(request.method, request.fields)
        except HandshakeError as error:
            self.metrics.translated(400)
            _respond_error(request, error)
            return
        translator = StreamTranslator(request.site.reactor, command)
        if request.switch_protocols(handshake.fields(V5), translator.websocket, translator.stop):
            self.metrics.translated(await translator.run(client, target, fields))
        else:
            translator.stop()

    def tunnel(self, request: KubeRequest) -> Tunnel | None:
        """
        Return the tunnel of a request with L{StreamMode.TUNNEL}, for the proxy.

        @return: L{None} after an invalid handshake; the request has been answered then.
        """
        from .handshakes import HandshakeError, check_handshake
        from .tunnel import Tunnel

        try:
            handshake = check_handshake(request.method, request.fields)
        except HandshakeError as error:
            self.metrics.tunneled(400)
            _respond_error(request, error)
            return None
        return Tunnel(request, handshake, self.metrics.tunneled)


def _respond_error(request: KubeRequest, error: HandshakeError) -> None:
    for name, value in error.fields:
        request.setHeader(name, value)
    request.respond_text(error.code, str(error))
