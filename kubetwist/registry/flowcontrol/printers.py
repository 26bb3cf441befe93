"""Table rows of FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Row
from ..generic.printers.texts import NONE, condition, name_of, spec_of, status_of


def flow_schema_order(obj: JSONObject) -> tuple[int, str]:
    """Return the sort key of a flow schema: its matching precedence."""
    return (obj.get("spec") or {}).get("matchingPrecedence") or 0, obj["metadata"].get("name") or ""


def flow_schema(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a flow schema: its priority level, and whether that exists."""
    spec = spec_of(obj)
    method = spec.get("distinguisherMethod")
    dangling = condition(status_of(obj), "Dangling")
    yield name_of(obj)
    yield (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    yield spec.get("matchingPrecedence", 0)
    yield NONE if method is None else method.get("type", "")
    yield age(obj)
    yield "?" if dangling is None else dangling.get("status", "")


def priority_level_configuration(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a priority level: its shares and queues if it is limited."""
    spec = spec_of(obj)
    limited = spec.get("limited")
    queuing = None if limited is None else (limited.get("limitResponse") or {}).get("queuing")
    yield name_of(obj)
    yield spec.get("type", "")
    if limited is None:
        yield NONE
    else:
        yield limited.get("nominalConcurrencyShares", limited.get("assuredConcurrencyShares", 0))
    for name in ("queues", "handSize", "queueLengthLimit"):
        yield NONE if queuing is None else queuing.get(name, 0)
    yield age(obj)


def _flow(kind: str, field: str) -> Field:
    return Field(f"api.flowcontrol.v1.{kind}", field)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "FlowSchema": (
        NAME,
        Column("PriorityLevel", _flow("PriorityLevelConfigurationReference", "name")),
        Column("MatchingPrecedence", _flow("FlowSchemaSpec", "matchingPrecedence")),
        Column("DistinguisherMethod", _flow("FlowSchemaSpec", "distinguisherMethod")),
        AGE,
        Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
    ),
    "PriorityLevelConfiguration": (
        NAME,
        Column("Type", _flow("PriorityLevelConfigurationSpec", "type")),
        Column("NominalConcurrencyShares", _flow("LimitedPriorityLevelConfiguration", "nominalConcurrencyShares")),
        Column("Queues", _flow("QueuingConfiguration", "queues")),
        Column("HandSize", _flow("QueuingConfiguration", "handSize")),
        Column("QueueLengthLimit", _flow("QueuingConfiguration", "queueLengthLimit")),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "FlowSchema": flow_schema,
    "PriorityLevelConfiguration": priority_level_configuration,
}
