"""Requests with credentials, and authenticators that answer as they are told to."""

from __future__ import annotations


class Request:
    """As much of a request as authenticators look at."""

    def __init__(self, authorization: str | None = None) -> None:
        self.fields = {} if authorization is None else {b"authorization": [authorization.encode("latin-1")]}
        self.warnings: list[str] = []
        self.path = b"/"

    def warn(self, text: str) -> None:
        """Keep a warning."""
        self.warnings.append(text)
