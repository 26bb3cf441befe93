"""Which way a request for streams goes to its kubelet, and the ways that are not those of any proxy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..http.request import KubeRequest
from .channels import V5
from .handshakes import HandshakeError, check_handshake, is_websocket, subprotocols

if TYPE_CHECKING:
    from ..client.streaming import StreamingClient
    from ..metrics.streams import StreamMetrics
    from .commands import Command
    from .tunnel import Tunnel

#: What a node declares whose kubelet speaks WebSocket as clients do.
NODE_WEBSOCKETS_FEATURE: Final = "ExtendWebSocketsToKubelet"


class StreamMode(Enum):
    """How a request goes to its kubelet."""

    #: As it is: an upgrade, whatever it is to.
    PROXY = "proxy"
    #: A command over WebSocket, which becomes one over SPDY.
    TRANSLATE = "translate"
    #: SPDY inside of a WebSocket, which is taken out of it.
    TUNNEL = "tunnel"


class StreamHandlers:
    """
    Handles the requests for streams of one server.

    @ivar metrics: Counts them.
    """

    def __init__(self, metrics: StreamMetrics, feature_gates: Mapping[str, bool]) -> None:
        """
        @param feature_gates: The feature gates that were set.
        """
        self.metrics = metrics
        self._translates = feature_gates.get("TranslateStreamCloseWebsocketRequests", True)
        self._tunnels = feature_gates.get("PortForwardWebsockets", True)
        self._kubelet_websockets = feature_gates.get(NODE_WEBSOCKETS_FEATURE, True)

    def select_mode(self, request: KubeRequest, subresource: str, node_features: Collection[str]) -> StreamMode:
        """
        Decide.

        @param subresource: C{exec}, C{attach} or C{portforward}.
        @param node_features: What the pod's node declares to be able to do.
        """
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
        The tunnel of a request that goes the way of L{StreamMode.TUNNEL}, for the proxy.

        @return: L{None} if there can be none; then the request is answered.
        """
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
