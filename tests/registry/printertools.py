"""Objects for tests of printers."""

from __future__ import annotations

from typing import Any

#: 2026-01-01T00:00:00Z.
CREATED = 1767225600.0
NOW = CREATED + 3 * 60
#: A template of pods with two containers.
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}}


def made(obj: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """Return an object with the name x that is three minutes old."""
    return {"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}, **(obj or {})}
