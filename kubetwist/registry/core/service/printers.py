"""Rows of Tables for Services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Row, core_field, wide
from ...generic.printers.texts import NONE, labels_cell, name_of, spec_of, status_of


def service(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a service: type, addresses and ports."""
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
            balancer = load_balancer(status)
            return ",".join([*([balancer] if balancer else []), *external]) or "<pending>"
        case "ExternalName":
            name: str = spec.get("externalName", "")
            return name
    return "<unknown>"


def load_balancer(status: JSONObject) -> str:
    """Return the addresses of a load balancer."""
    points = (status.get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({point.get("ip") or point.get("hostname") or "" for point in points} - {""}))


def _service_port(port: JSONObject) -> str:
    number, protocol = port.get("port", 0), port.get("protocol", "")
    return f"{number}:{port['nodePort']}/{protocol}" if port.get("nodePort") else f"{number}/{protocol}"


#: The columns of Tables, by kind.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Service": (
        NAME,
        Column("Type", core_field("ServiceSpec", "type")),
        Column("Cluster-IP", core_field("ServiceSpec", "clusterIP")),
        Column("External-IP", core_field("ServiceSpec", "externalIPs")),
        Column("Port(s)", core_field("ServiceSpec", "ports")),
        AGE,
        wide("Selector", core_field("ServiceSpec", "selector")),
    ),
}

#: The functions that return the cells of a row, by kind.
ROWS: Final[Mapping[str, Row]] = {
    "Service": service,
}
