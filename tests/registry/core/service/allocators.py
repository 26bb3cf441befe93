"""Services that get addresses and ports."""

from __future__ import annotations

from typing import Any


def service(**spec: Any) -> dict[str, Any]:
    """A service as it is when numbers are given out."""
    return {
        "metadata": {"name": "s"},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}], **spec},
    }
