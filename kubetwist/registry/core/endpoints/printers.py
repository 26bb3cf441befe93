"""Rows of Tables for Endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Row, core_field
from ...generic.printers.texts import NONE, first_few, join_host_port, name_of


def endpoints(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of Endpoints: the first addresses."""
    yield name_of(obj)
    subsets = obj.get("subsets") or ()
    texts = []
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        texts += [join_host_port(address, port.get("port", 0)) for port in ports for address in addresses]
        if not ports:
            texts += addresses
    yield first_few(texts, 3, empty="") if subsets else NONE
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Endpoints": (NAME, Column("Endpoints", core_field("Endpoints", "subsets")), AGE),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "Endpoints": endpoints,
}
