"""Which way a request for streams goes to its kubelet, and the ways that are not those of any proxy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from .channels import V5
from .commands import Command
from .websocket import NoWebSocket, check_handshake, is_websocket, subprotocols

if TYPE_CHECKING:
    from ..outgoing.streaming import StreamingClient
    from ..server.site import KubeRequest
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


def way(request: KubeRequest, subresource: str, node_features: Collection[str]) -> Way:
    """
    Decide.

    @param subresource: C{exec}, C{attach} or C{portforward}.
    @param node_features: What the pod's node declares to be able to do.
    """
    from .tunnel import tunnelled

    if not is_websocket(request.fields) or NODE_WEBSOCKETS in node_features:
        return Way.PASS_ON
    if subresource == "portforward":
        return Way.TUNNEL if tunnelled(request.fields) else Way.PASS_ON
    return Way.TRANSLATE if V5 in subprotocols(request.fields) else Way.PASS_ON


async def translate(
    request: KubeRequest,
    client: StreamingClient,
    target: bytes,
    command: Command,
    fields: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """
    Answer a request that goes the way of L{Way.TRANSLATE}: with what is wrong with it, or with its command's streams.

    @param client: Of the kubelet.
    @param target: Path and query of the command there.
    @param fields: What else the kubelet is told.
    """
    from .translator import Translator

    try:
        handshake = check_handshake(request.method, request.fields)
    except NoWebSocket as error:
        _refuse(request, error)
        return
    translator = Translator(request.site.reactor, command)
    if request.switch_protocols(handshake.fields(V5), translator.websocket, translator.stop):
        await translator.run(client, target, fields)
    else:
        translator.stop()


def tunnel(request: KubeRequest) -> Tunnel | None:
    """
    The tunnel of a request that goes the way of L{Way.TUNNEL}, for the proxy.

    @return: L{None} if there can be none; then the request is answered.
    """
    from .tunnel import Tunnel

    try:
        return Tunnel(request, check_handshake(request.method, request.fields))
    except NoWebSocket as error:
        _refuse(request, error)
        return None


def _refuse(request: KubeRequest, error: NoWebSocket) -> None:
    for name, value in error.fields:
        request.setHeader(name, value)
    request.respond_text(error.code, str(error))
