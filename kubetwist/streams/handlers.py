"""Which way a request for streams goes to its kubelet, and the ways that are not those of any proxy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..http.request import KubeRequest
from .channels import V5
from .handshakes import NoWebSocket, check_handshake, is_websocket, subprotocols

if TYPE_CHECKING:
    from ..client.streaming import StreamingClient
    from ..metrics.streams import StreamMetrics
    from .commands import Command
    from .tunnel import Tunnel

#: What a node declares whose kubelet speaks WebSocket as clients do.
NODE_WEBSOCKETS: Final = "ExtendWebSocketsToKubelet"


class Way(Enum):
    """How a request goes to its kubelet."""

    #: As it is: an upgrade, whatever it is to.
    PASS_ON = "pass on"
    #: A command over WebSocket, which becomes one over SPDY.
    TRANSLATE = "translate"
    #: SPDY inside of a WebSocket, which is taken out of it.
    TUNNEL = "tunnel"


class Streams:
    """
    Handles the requests for streams of one server.

    @ivar metrics: Counts them.
    """

    def __init__(self, metrics: StreamMetrics, gates: Mapping[str, bool]) -> None:
        """
        @param gates: The feature gates that were set.
        """
        self.metrics = metrics
        self._translates = gates.get("TranslateStreamCloseWebsocketRequests", True)
        self._tunnels = gates.get("PortForwardWebsockets", True)
        self._leaves = gates.get(NODE_WEBSOCKETS, True)

    def way(self, request: KubeRequest, subresource: str, node_features: Collection[str]) -> Way:
        """
        Decide.

        @param subresource: C{exec}, C{attach} or C{portforward}.
        @param node_features: What the pod's node declares to be able to do.
        """
        from .tunnel import tunnelled

        kubelet = self._leaves and NODE_WEBSOCKETS in node_features
        self.metrics.routed(subresource, kubelet)
        if kubelet or not is_websocket(request.fields):
            return Way.PASS_ON
        if subresource == "portforward":
            return Way.TUNNEL if self._tunnels and tunnelled(request.fields) else Way.PASS_ON
        return Way.TRANSLATE if self._translates and V5 in subprotocols(request.fields) else Way.PASS_ON

    async def translate(
        self,
        request: KubeRequest,
        client: StreamingClient,
        target: bytes,
        command: Command,
        fields: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """
        Answer a request that goes the way of L{Way.TRANSLATE}: with what is wrong with it, or its command's streams.

        @param request: The request of the client.
        @param client: Client of the kubelet.
        @param target: Path and query at the kubelet.
        @param command: Streams of the command.
        @param fields: Further header fields for the kubelet.
        """
        from .translator import Translator

        try:
            handshake = check_handshake(request.method, request.fields)
        except NoWebSocket as error:
            self.metrics.translated(400)
            _refuse(request, error)
            return
        translator = Translator(request.site.reactor, command)
        if request.switch_protocols(handshake.fields(V5), translator.websocket, translator.stop):
            self.metrics.translated(await translator.run(client, target, fields))
        else:
            translator.stop()

    def tunnel(self, request: KubeRequest) -> Tunnel | None:
        """
        The tunnel of a request that goes the way of L{Way.TUNNEL}, for the proxy.

        @return: L{None} if there can be none; then the request is answered.
        """
        from .tunnel import Tunnel

        try:
            handshake = check_handshake(request.method, request.fields)
        except NoWebSocket as error:
            self.metrics.tunnelled(400)
            _refuse(request, error)
            return None
        return Tunnel(request, handshake, self.metrics.tunnelled)


def _refuse(request: KubeRequest, error: NoWebSocket) -> None:
    for name, value in error.fields:
        request.setHeader(name, value)
    request.respond_text(error.code, str(error))
