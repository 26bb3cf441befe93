"""Requests with credentials for tests of authenticators."""

from __future__ import annotations

from typing import Any


class Connection:
    """The part of a connection that authenticators use."""

    def __init__(self) -> None:
        self.remembered: dict[object, Any] = {}


class Request:
    """The part of a request that authenticators use."""

    def __init__(self, authorization: str | None = None) -> None:
        self.fields = {} if authorization is None else {b"authorization": [authorization.encode("latin-1")]}
        self.warnings: list[str] = []
        self.path = b"/"
        self.connection = Connection()

    def warn(self, text: str) -> None:
        """Record a warning."""
        self.warnings.append(text)
