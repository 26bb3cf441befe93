"""Rows of services, and of what leads to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...api.resource import JSONObject
from ..generic.printers.ages import age
from ..generic.printers.texts import (
    NONE,
    first_few,
    join_host_port,
    labels_cell,
    name_of,
    selector_cell,
    spec_of,
    status_of,
)


def service(obj: JSONObject) -> Iterator[Any]:
    """Type, addresses and ports."""
    spec = spec_of(obj)
    addresses = spec.get("clusterIPs") or ()
    yield name_of(obj)
    yield spec.get("type", "")
    yield addresses[0] if addresses else NONE
    yield _external_ip(spec, status_of(obj))
    yield ",".join(_service_port(port) for port in spec.get("ports") or ()) or NONE
    yield age(obj)
    yield labels_cell(spec.get("selector"))


def _external_ip(spec: JSONObject, status: JSONObject) -> str:
    external = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            balancer = _load_balancer(status)
            return ",".join([*([balancer] if balancer else []), *external]) or "<pending>"
        case "ExternalName":
            name: str = spec.get("externalName", "")
            return name
    return "<unknown>"


def _load_balancer(status: JSONObject) -> str:
    points = (status.get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({point.get("ip") or point.get("hostname") or "" for point in points} - {""}))


def _service_port(port: JSONObject) -> str:
    number, protocol = port.get("port", 0), port.get("protocol", "")
    return f"{number}:{port['nodePort']}/{protocol}" if port.get("nodePort") else f"{number}/{protocol}"


def endpoints(obj: JSONObject) -> Iterator[Any]:
    """The first addresses."""
    yield name_of(obj)
    subsets = obj.get("subsets") or ()
    shown = []
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        shown += [join_host_port(address, port.get("port", 0)) for port in ports for address in addresses]
        if not ports:
            shown += addresses
    yield first_few(shown, 3, empty="") if subsets else NONE
    yield age(obj)


def endpoint_slice(obj: JSONObject) -> Iterator[Any]:
    """The first ports and addresses."""
    yield name_of(obj)
    yield obj.get("addressType", "")
    yield first_few([_slice_port(port) for port in obj.get("ports") or ()], 3)
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    yield first_few(addresses, 3)
    yield age(obj)


def _slice_port(port: JSONObject) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return "*" if port.get("name") is None else str(port["name"])


def ingress(obj: JSONObject) -> Iterator[Any]:
    """Hosts and addresses."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("ingressClassName", NONE)
    yield _hosts(spec.get("rules") or ())
    yield _load_balancer(status_of(obj))
    yield "80, 443" if spec.get("tls") else "80"
    yield age(obj)


def _hosts(rules: Any) -> str:
    # What remains counts rules, not hosts, and starts with the rule behind the third host.
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def ingress_class(obj: JSONObject) -> Iterator[Any]:
    """Who cares for it, and its parameters."""
    spec = spec_of(obj)
    parameters = spec.get("parameters")
    yield name_of(obj)
    yield spec.get("controller", "")
    if parameters is None:
        yield NONE
    else:
        kind = parameters.get("kind", "")
        if parameters.get("apiGroup") is not None:
            kind = f"{kind}.{parameters['apiGroup']}"
        yield f"{kind}/{parameters.get('name', '')}"
    yield age(obj)


def network_policy(obj: JSONObject) -> Iterator[Any]:
    """Which pods it is about."""
    yield name_of(obj)
    yield selector_cell(spec_of(obj).get("podSelector"))
    yield age(obj)


def service_cidr(obj: JSONObject) -> Iterator[Any]:
    """The ranges."""
    yield name_of(obj)
    yield ",".join(spec_of(obj).get("cidrs") or ())
    yield age(obj)


def ip_address(obj: JSONObject) -> Iterator[Any]:
    """Whose address it is; the reference prints an age for which it has no column."""
    parent = spec_of(obj).get("parentRef")
    yield name_of(obj)
    if parent is None:
        yield NONE
    else:
        group, resource = parent.get("group", ""), parent.get("resource", "")
        parts = [(f"{resource}.{group}" if group else resource).lower()]
        if parent.get("namespace"):
            parts.append(parent["namespace"])
        yield "/".join([*parts, parent.get("name", "")])
    yield age(obj)


def cluster_cidr(obj: JSONObject) -> Iterator[Any]:
    """Ranges for the pods of nodes, as releases before 1.29 had them."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield str(spec.get("perNodeHostBits", 0))
    yield spec.get("ipv4") or NONE
    yield spec.get("ipv6") or NONE
    yield age(obj)
    yield "MatchAll" if spec.get("nodeSelector") is None else "<set>"
