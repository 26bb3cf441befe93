"""The network of simulated nodes and pods: connections in memory, instead of the addresses in their status."""

from __future__ import annotations

from functools import partial

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IProtocol, IProtocolFactory, IReactorTime, IStreamClientEndpoint
from zope.interface import implementer

from ...api.resource import JSONObject
from ...client.errors import Unreachable
from ...client.memorytransport import connect_in_memory
from ...http.site import KubeSite
from ...registry.core.node.kubelets import PORT
from ...registry.stores import Stores, decoded_object
from ..fakeimages import FakeImages
from .kubelet import SimulatedKubelet
from .nodefaults import faults_of
from .ports import make_answer


class SimulatedNetwork:
    """Connects clients of this server to simulated kubelets and pods."""

    def __init__(self, reactor: IReactorTime, stores: Stores, images: FakeImages) -> None:
        """
        @param reactor: The server's reactor and clock.
        @param stores: The stores of the server.
        @param images: The behavior of images.
        """
        self._reactor = reactor
        self._stores = stores
        self._kubelet = SimulatedKubelet(reactor, stores, images)
        #: The sites of kubelets, by node, made at their first connection.
        self._sites: dict[str, KubeSite] = {}

    def endpoint(self, host: str, port: int) -> IStreamClientEndpoint:
        """Return the endpoint of a kubelet or of a port of a pod."""
        return _Endpoint(self, host, port)

    def server(self, host: str, port: int) -> IProtocol:
        """
        Return the protocol that accepts a connection.

        @param host: The name or address of a node, or the address of a pod.
        @raise Unreachable: Nothing listens there.
        """
        node = self._node_at(host)
        if node is not None and faults_of(node).lost:
            raise Unreachable(f"dial tcp {host}:{port}: connect: no route to host")
        if port == PORT and node is not None:
            return self._site(node["metadata"]["name"]).buildProtocol(None)  # type: ignore[arg-type] # it is ignored
        for pod in self._pods_at(host):
            if self._is_on_lost_node(pod):
                raise Unreachable(f"dial tcp {host}:{port}: connect: no route to host")
            answer = self._kubelet.port_answer(pod, port)
            if answer is not None:
                return make_answer(self._reactor, answer)
        raise Unreachable(f"dial tcp {host}:{port}: connect: connection refused")

    def connect(self, factory: IProtocolFactory, host: str, port: int) -> IProtocol:
        """
        Connect a client.

        @param factory: Makes the client's protocol.
        @raise Unreachable: Nothing listens there.
        """
        server = self.server(host, port)
        client = factory.buildProtocol(None)  # type: ignore[arg-type] # no protocol here needs the address
        assert client is not None, "clients do not refuse connections"
        connect_in_memory(self._reactor, client, server, (host, port))
        return client

    def _site(self, node: str) -> KubeSite:
        """Return the site of the kubelet of a node."""
        site = self._sites.get(node)
        if site is None:
            site = self._sites[node] = KubeSite(partial(self._kubelet.handle, node=node), self._reactor)
        return site

    def _node_at(self, host: str) -> JSONObject | None:
        """Return the node with a name or address."""
        named = self._stores.get_decoded("", "nodes", "", host)
        if named is not None:
            return named
        for node in self._stores.list_decoded("", "nodes"):
            if any(one["address"] == host for one in (node.get("status") or {}).get("addresses") or ()):
                return node
        return None

    def _is_on_lost_node(self, pod: JSONObject) -> bool:
        node = self._stores.get_decoded("", "nodes", "", pod["spec"].get("nodeName") or "")
        return node is not None and faults_of(node).lost

    def _pods_at(self, address: str) -> list[JSONObject]:
        return [
            decoded_object(record)
            for record in self._stores.records("", "pods")
            if record.fields.get("status.podIP") == address
        ]


@implementer(IStreamClientEndpoint)
class _Endpoint:
    """An endpoint of the simulated network."""

    def __init__(self, network: SimulatedNetwork, host: str, port: int) -> None:
        self._network = network
        self._host = host
        self._port = port

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """See L{IStreamClientEndpoint.connect}."""
        try:
            return succeed(self._network.connect(protocolFactory, self._host, self._port))
        except Unreachable as error:
            return fail(error)
