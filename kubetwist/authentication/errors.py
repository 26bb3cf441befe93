"""What authenticators raise."""

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
    """Something is wrong with the request itself: no other credentials make up for it, and nobody else is asked."""
