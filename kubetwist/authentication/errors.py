"""Exceptions of authenticators."""

from __future__ import annotations

from collections.abc import Sequence


class AuthenticationFailed(Exception):
    """
    Credentials are invalid. The text is for the log, not for the client.

    @ivar texts: The single texts of an aggregated error.
    """

    def __init__(self, text: str, texts: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.texts = texts


class RequestRefused(AuthenticationFailed):
    """The request itself is invalid; authentication fails without calling further authenticators."""
