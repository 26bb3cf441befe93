"""Addresses of kubelets, and addresses that connections are not proxied to."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from attrs import frozen

from ....api.errors import APIStatusError
from ....api.resource import GroupResource, JSONObject
from ....api.targets import Target

if TYPE_CHECKING:
    from ...stores import Stores

#: Kinds of addresses that a node is looked for at, best first, and the default port of kubelets.
ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
PORT: Final = 10250
#: The container runtime of nodes that are there in appearance only; what it says of itself begins so.
SIMULATED_RUNTIME_PREFIX: Final = "pretend://"


@frozen
class ConnectionRules:
    """
    What the command line says of connections to other servers.

    @ivar address_types: The kinds of a node's addresses, best first.
    @ivar port: The default port of kubelets.
    @ivar loopback: Addresses of this machine are no worse than others.
    @ivar split_streams: Whether one of a container's output streams can be asked for.
    """

    address_types: tuple[str, ...] = ADDRESS_TYPES
    port: int = PORT
    loopback: bool = False
    split_streams: bool = False


@frozen
class KubeletConnectionInfo:
    """
    A kubelet.

    @ivar features: What its node declares to be able to.
    """

    host: str
    port: int
    features: tuple[str, ...] = ()

    def target(self, path: str, query: str | None = None, *, insecure: bool = False, options: JSONObject) -> Target:
        """What it is asked for."""
        return Target(
            scheme="https",
            host=self.host,
            port=self.port,
            path=path,
            query=query,
            kubelet=True,
            insecure=insecure,
            options=options,
            features=self.features,
        )


def get_connection_info(
    stores: Stores, rules: ConnectionRules, name: str, resource: str = "nodes"
) -> KubeletConnectionInfo:
    """
    Return the kubelet of a node.

    @param rules: How kubelets are found.
    @param resource: The resource in the 404 message; the reference names a pod if a pod led to the node.
    @raise APIStatusError: There is no such node (404), nothing runs on it (503), or it has no address (500).
    """
    node = stores.get_decoded("", "nodes", "", name)
    if node is None:
        raise APIStatusError.not_found(GroupResource("", resource), name)
    status = node.get("status") or {}
    _check_node_not_simulated(name, status)
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    port = endpoint.get("Port") or 0
    host = preferred_node_address(node, rules.address_types)
    return KubeletConnectionInfo(host, port if port > 0 else rules.port, tuple(status.get("declaredFeatures") or ()))


def check_not_simulated(stores: Stores, pod: JSONObject) -> None:
    """
    Refuse pods that run in appearance only: their addresses may well be those of something else.

    @raise APIStatusError: It is on a pretend node (503).
    """
    name = (pod.get("spec") or {}).get("nodeName") or ""
    node = stores.get_decoded("", "nodes", "", name) if name else None
    if node is not None:
        _check_node_not_simulated(name, node.get("status") or {})


def _check_node_not_simulated(name: str, status: JSONObject) -> None:
    runtime = (status.get("nodeInfo") or {}).get("containerRuntimeVersion") or ""
    if runtime.startswith(SIMULATED_RUNTIME_PREFIX):
        message = f"{name} is a pretend node: it has no kubelet, and no container runs on it"
        raise APIStatusError.service_unavailable(message)


def preferred_node_address(node: JSONObject, types: tuple[str, ...]) -> str:
    """
    The address of a node, or a name that it has.

    @raise APIStatusError: The node has no address of these kinds (500).
    """
    known = (node.get("status") or {}).get("addresses") or ()
    for kind in types:
        for one in known:
            if one.get("type") == kind:
                return str(one["address"])
    shown = " ".join(f"{{{one.get('type', '')} {one.get('address', '')}}}" for one in known)
    raise APIStatusError.unknown(f"no preferred addresses found; known addresses: [{shown}]")


def check_proxyable_ip(text: str, rules: ConnectionRules) -> None:
    """
    Refuse addresses that must not be reached through this server: its own, its link's, metadata services.

    @param text: Names pass: their addresses are looked at when they are known.
    @raise APIStatusError: It is one of these, or nothing at all (400).
    """
    if not text:
        raise not_allowed()
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return
    # Servers that lead nowhere get on without what connections are made with.
    from ....client.dialing import is_internal_address

    if is_internal_address(text, allow_loopback=rules.loopback, interfaces_are_loopback=True):
        raise not_allowed()


def not_allowed() -> APIStatusError:
    """The error for such addresses."""
    return APIStatusError.bad_request("address not allowed")
