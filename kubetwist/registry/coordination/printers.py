"""Table rows of Leases and LeaseCandidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Row
from ..generic.printers.texts import name_of, spec_of


def lease(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a Lease: its holder."""
    yield name_of(obj)
    yield spec_of(obj).get("holderIdentity") or ""
    yield age(obj)


def lease_candidate(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a LeaseCandidate: its lease and versions."""
    spec = spec_of(obj)
    yield name_of(obj)
    for name in ("leaseName", "binaryVersion", "emulationVersion"):
        yield spec.get(name, "")
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Lease": (
        NAME,
        Column("Holder", Field("api.coordination.v1.LeaseSpec", "holderIdentity")),
        AGE,
    ),
    "LeaseCandidate": (
        NAME,
        Column("LeaseName", Field("api.coordination.v1alpha2.LeaseCandidateSpec", "leaseName")),
        Column("BinaryVersion", ""),
        Column("EmulationVersion", ""),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "Lease": lease,
    "LeaseCandidate": lease_candidate,
}
