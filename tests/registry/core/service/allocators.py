"""Services for tests of allocators."""

from __future__ import annotations

from typing import Any


def service(**spec: Any) -> dict[str, Any]:
    """Return a service as it is before the allocation."""
    return {
        "metadata": {"name": "s"},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}], **spec},
    }
