"""Strategy of ComponentStatuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...generic.strategy import Strategy

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ComponentStatus": Strategy(),
}
