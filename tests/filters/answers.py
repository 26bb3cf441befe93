"""An authorizer, or authenticator, that has one answer."""

from __future__ import annotations

from typing import Any

PODS = "/api/v1/namespaces/ns/pods"


class Says:
    """An authorizer, or authenticator, that returns or raises one thing."""

    name = "Says"

    def __init__(self, result: Any) -> None:
        self.result = result

    def authenticate(self, request: Any) -> Any:
        """Give it."""
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    authorize = authenticate
