"""Tables of kinds without columns of their kind: the name and the creation time."""

from __future__ import annotations

from collections.abc import Iterator

from ....api.jsonpath import Budget
from ....api.resource import JSONObject
from ....api.tables import Describe, TableDefinition
from .ages import Cell
from .columns import DEFAULT


def default_table(describe: Describe) -> TableDefinition:
    """
    Return the Table of objects whose storage has no L{ITableConvertor<kubetwist.interfaces.ITableConvertor>}.

    @param describe: Returns the description of a field.
    @see: kubernetes/apiserver, C{pkg/registry/rest/table.go}.
    """
    return TableDefinition([column.definition(describe) for column in DEFAULT], _cells, null_if_empty=True)


def default_row(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of the default columns."""
    metadata = obj.get("metadata") or {}
    yield metadata.get("name", "")
    yield metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"


def _cells(obj: JSONObject, budget: Budget) -> Iterator[Cell]:
    return default_row(obj)
