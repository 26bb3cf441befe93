"""Table rows of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Row, integer
from ..generic.printers.texts import name_of, spec_of, status_of


def pod_disruption_budget(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a PodDisruptionBudget: its limits and allowed disruptions."""
    spec = spec_of(obj)
    yield name_of(obj)
    for bound in ("minAvailable", "maxUnavailable"):
        value = spec.get(bound)
        yield "N/A" if value is None else str(value)
    yield status_of(obj).get("disruptionsAllowed", 0)
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "PodDisruptionBudget": (
        NAME,
        Column("Min Available", "The minimum number of pods that must be available."),
        Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
        integer("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "PodDisruptionBudget": pod_disruption_budget,
}
