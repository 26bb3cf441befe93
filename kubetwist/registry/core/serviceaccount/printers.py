"""Rows of Tables for ServiceAccounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Rows, core_field
from ...generic.printers.rows import name_and_age
from ...generic.printers.texts import name_of


def service_account(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ServiceAccount before 1.35: the number of its secrets."""
    yield name_of(obj)
    yield len(obj.get("secrets") or ())
    yield age(obj)


#: The columns of Tables, by kind.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ServiceAccount": (NAME, Column("Secrets", core_field("ServiceAccount", "secrets"), when="<1.35"), AGE),
}

#: The functions that return the cells of a row, by kind.
ROWS: Final[Mapping[str, Rows]] = {
    "ServiceAccount": {"<1.35": service_account, "": name_and_age},
}
