"""Objects whose rows are looked at."""

from __future__ import annotations

from typing import Any

#: 2026-01-01T00:00:00Z.
BORN = 1767225600.0
NOW = BORN + 3 * 60
#: Of pods with two containers.
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}}


def made(obj: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """An object called x, three minutes old."""
    return {"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}, **(obj or {})}
