"""Rows of Tables for ServiceAccounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...generic.printers.columns import AGE, NAME, Column, Row
from ...generic.printers.rows import name_and_age

#: The columns of Tables, by kind.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ServiceAccount": (NAME, AGE),
}

#: The functions that return the cells of a row, by kind.
ROWS: Final[Mapping[str, Row]] = {
    "ServiceAccount": name_and_age,
}
