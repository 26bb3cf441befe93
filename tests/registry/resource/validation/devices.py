"""Helpers of tests of devices and claims."""

from __future__ import annotations

from typing import Any


def fields(causes: Any) -> list[str]:
    """Return the fields of errors."""
    return [cause.field for cause in causes]
