"""Addresses of kubelets, and checks of addresses that requests are proxied to."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from attrs import frozen

from ....api.errors import APIStatusError
from ....api.resource import GroupResource, JSONObject
from ....api.targets import Target

if TYPE_CHECKING:
    from ...stores import Stores

#: The types of addresses of a node, by preference.
ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
PORT: Final = 10250
#: Prefix of the container runtime version of simulated nodes.
SIMULATED_RUNTIME_PREFIX: Final = "pretend://"


@frozen
class ConnectionRules:
    """
    Options of connections to kubelets and other servers.

    @ivar address_types: The types of addresses of nodes, by preference.
    @ivar port: The default port of kubelets.
    @ivar loopback: Whether loopback addresses are allowed.
    @ivar split_streams: Whether requests for logs may name an output stream.
    """

    address_types: tuple[str, ...] = ADDRESS_TYPES
    port: int = PORT
    loopback: bool = False
    split_streams: bool = False


@frozen
class KubeletConnectionInfo:
    """
    The address of a kubelet and the features of its node.

    @ivar features: The features that the node declares.
    @ivar simulated: Whether the node is simulated.
    """

    host: str
    port: int
    features: tuple[str, ...] = ()
    simulated: bool = False

    def target(self, path: str, query: str | None = None, *, insecure: bool = False, options: JSONObject) -> Target:
        """
        Return the target of a request to the kubelet.

        @param path: The path of the request.
        @param query: The query of the request; L{None} without one.
        @param insecure: Whether the certificate of the kubelet is not verified.
        @param options: The options object of the request; empty for logs.
        """
        return Target(
            scheme="http" if self.simulated else "https",
            host=self.host,
            port=self.port,
            path=path,
            query=query,
            kubelet=True,
            insecure=insecure,
            options=options,
            features=self.features,
            simulated=self.simulated,
        )


def get_connection_info(
    stores: Stores, rules: ConnectionRules, name: str, resource: str = "nodes"
) -> KubeletConnectionInfo:
    """
    Return the kubelet of a node.

    @param stores: The stores.
    @param rules: The options of connections.
    @param name: The name of the node.
    @param resource: The resource in the 404 error; the reference uses C{"pods"} for the node of a pod.
    @raise APIStatusError: The node does not exist (404), or has no address (500).
    """
    node = stores.get_decoded("", "nodes", "", name)
    if node is None:
        raise APIStatusError.not_found(GroupResource("", resource), name)
    status = node.get("status") or {}
    if _is_simulated(status):
        # Its addresses may belong to other hosts.
        return KubeletConnectionInfo(name, PORT, simulated=True)
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    port = endpoint.get("Port") or 0
    host = preferred_node_address(node, rules.address_types)
    return KubeletConnectionInfo(host, port if port > 0 else rules.port, tuple(status.get("declaredFeatures") or ()))


def is_on_simulated_node(stores: Stores, pod: JSONObject) -> bool:
    """Return whether a pod is on a simulated node; its addresses may belong to other hosts."""
    name = (pod.get("spec") or {}).get("nodeName") or ""
    node = stores.get_decoded("", "nodes", "", name) if name else None
    return node is not None and _is_simulated(node.get("status") or {})


def _is_simulated(status: JSONObject) -> bool:
    runtime: str = (status.get("nodeInfo") or {}).get("containerRuntimeVersion") or ""
    return runtime.startswith(SIMULATED_RUNTIME_PREFIX)


def preferred_node_address(node: JSONObject, types: tuple[str, ...]) -> str:
    """
    Return the address or host name of a node.

    @param types: The types of addresses, by preference.
    @raise APIStatusError: The node has no address of these types (500).
    """
    addresses = (node.get("status") or {}).get("addresses") or ()
    for kind in types:
        for address in addresses:
            if address.get("type") == kind:
                return str(address["address"])
    formatted = " ".join(f"{{{address.get('type', '')} {address.get('address', '')}}}" for address in addresses)
    raise APIStatusError.unknown(f"no preferred addresses found; known addresses: [{formatted}]")


def check_proxyable_ip(text: str, rules: ConnectionRules) -> None:
    """
    Reject addresses that requests must not be proxied to: loopback and link-local ones, such as metadata services.

    @param text: The address. Host names are accepted: their addresses are checked after resolution.
    @raise APIStatusError: The address is not allowed, or empty (400).
    """
    if not text:
        raise address_not_allowed()
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return
    # Imported here: servers that do not proxy do not need it.
    from ....client.dialing import is_internal_address

    if is_internal_address(text, allow_loopback=rules.loopback, interfaces_are_loopback=True):
        raise address_not_allowed()


def address_not_allowed() -> APIStatusError:
    """Return the error for an address that requests must not be proxied to."""
    return APIStatusError.bad_request("address not allowed")
