"""Table rows of ServiceAccounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...generic.printers.columns import AGE, NAME, Column, Row
from ...generic.printers.rows import name_and_age

#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ServiceAccount": (NAME, AGE),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "ServiceAccount": name_and_age,
}
