"""Devices, and claims of some."""

from __future__ import annotations

from typing import Any


def fields(causes: Any) -> list[str]:
    """Which fields are wrong."""
    return [cause.field for cause in causes]
