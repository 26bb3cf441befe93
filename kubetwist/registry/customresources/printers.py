"""Table columns of custom resources: the name, and C{additionalPrinterColumns}."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from ...api.go.text import go_text
from ...api.jsonpath import MISSING, Budget, JSONPath, JSONPathError
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...api.tables import TableDefinition
from ..generic.printers.ages import AgeCell, parse_time

#: The column of CRDs without C{additionalPrinterColumns}.
AGE: Final[JSONObject] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "CreationTimestamp is a timestamp representing the server time when this object was created. It is "
    "not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. "
    "It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More "
    "info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
}
NAME_DESCRIPTION: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)


class Printer:
    """
    Makes the table rows of one version.

    @ivar definitions: The C{columnDefinitions}.
    """

    def __init__(self, columns: Iterable[JSONObject]) -> None:
        self.definitions: list[JSONObject] = [
            {"name": "Name", "type": "string", "format": "name", "description": NAME_DESCRIPTION, "priority": 0}
        ]
        self._columns: list[tuple[JSONPath, str]] = []
        for column in columns or (AGE,):
            try:
                path = JSONPath(column["jsonPath"])
            except JSONPathError:
                # As in the reference, the first column that cannot be decoded and all after it are left out.
                break
            self._columns.append((path, column["type"]))
            described = column.get("description")
            self.definitions.append(
                {
                    "name": column["name"],
                    "type": column["type"],
                    "format": column.get("format", ""),
                    "description": described
                    or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
                    "priority": column.get("priority", 0),
                }
            )

    def table(self) -> TableDefinition:
        """Return the Table of the version."""
        return TableDefinition(self.definitions, self.row)

    def row(self, obj: JSONObject, budget: Budget | None = None) -> tuple[JSONValue, ...]:
        """
        Return the cells of an object.

        @param budget: Budget of all columns together, by default one of L{kubetwist.api.jsonpath.MAX_VISITED} values; a
            value that is not found within it is shown as missing.
        """
        cells: list[Any] = [obj["metadata"].get("name", "")]
        budget = budget or Budget()
        for path, kind in self._columns:
            value = path.first(obj, budget)
            cells.append(None if value is MISSING else _cell(kind, value))
        return tuple(cells)


def _cell(kind: str, value: JSONValue) -> JSONValue:
    if kind == "string":
        # Strings are shown unquoted, other values as JSON or as Go prints them.
        return orjson.dumps(value).decode() if isinstance(value, dict | list) else go_text(value)
    if value is None:
        return None
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return int(value) if numeric else None
    if kind == "number":
        return value if numeric else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date" and isinstance(value, str):
        if not value:
            return "<unknown>"
        seconds = parse_time(value) if "T" in value else None
        return "<invalid>" if seconds is None else AgeCell(seconds)
    return None
