"""Table rows of EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Row, described_before
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


#: Descriptions before 1.36, of the type of discovery.k8s.io/v1beta1.
_ADDRESS_TYPE: Final = (
    "addressType specifies the type of address carried by this EndpointSlice. All addresses in this slice must be the "
    "same type. This field is immutable after creation. The following address types are currently supported: * IPv4: "
    "Represents an IPv4 Address. * IPv6: Represents an IPv6 Address. * FQDN: Represents a Fully Qualified Domain Name."
)
_PORTS: Final = (
    "ports specifies the list of network ports exposed by each endpoint in this slice. Each port must have a unique "
    "name. When ports is empty, it indicates that there are no defined ports. When a port is defined with a nil port "
    'value, it indicates "all ports". Each slice may include a maximum of 100 ports.'
)

#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "EndpointSlice": (
        NAME,
        *described_before("1.36", _ADDRESS_TYPE, Column("AddressType", _slice("addressType"))),
        *described_before("1.36", _PORTS, Column("Ports", _slice("ports"))),
        Column("Endpoints", _slice("endpoints")),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "EndpointSlice": endpoint_slice,
}
