"""Requests with credentials for tests of authenticators."""

from __future__ import annotations


class Request:
    """The part of a request that authenticators use."""

    def __init__(self, authorization: str | None = None) -> None:
        self.fields = {} if authorization is None else {b"authorization": [authorization.encode("latin-1")]}
        self.warnings: list[str] = []
        self.path = b"/"

    def warn(self, text: str) -> None:
        """Record a warning."""
        self.warnings.append(text)
