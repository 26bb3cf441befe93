"""Rules of webhooks."""

from __future__ import annotations

from typing import Any

MAPS = "/api/v1/namespaces/default/configmaps"


def rule(*resources: str, operations: tuple[str, ...] = ("*",), **fields: Any) -> dict[str, Any]:
    """Return a rule for all operations on some resources."""
    return {
        "rules": [
            {
                "operations": list(operations),
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "resources": list(resources),
                **fields,
            }
        ]
    }
