"""A fake authorizer and authenticator with a fixed result."""

from __future__ import annotations

from typing import Any

PODS = "/api/v1/namespaces/ns/pods"


class FixedResult:
    """Returns or raises a fixed result."""

    name = "FixedResult"

    def __init__(self, result: Any) -> None:
        self.result = result

    def authenticate(self, request: Any) -> Any:
        """Return or raise the result."""
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    authorize = authenticate
