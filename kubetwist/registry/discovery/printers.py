"""Table rows of EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Row
from ..generic.printers.texts import first_few, name_of


def endpoint_slice(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an EndpointSlice: its address type, first ports and addresses."""
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


def _slice(field: str) -> Field:
    return Field("api.discovery.v1.EndpointSlice", field)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "EndpointSlice": (
        NAME,
        Column("AddressType", _slice("addressType")),
        Column("Ports", _slice("ports")),
        Column("Endpoints", _slice("endpoints")),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "EndpointSlice": endpoint_slice,
}
