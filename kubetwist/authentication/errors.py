"""What authenticators raise."""

from __future__ import annotations

from collections.abc import Sequence


class AuthenticationFailed(Exception):
    """
    There are credentials, and they are bad; the text is for the log, not for the client.

    @ivar texts: Each for itself, where several are in one.
    """

    def __init__(self, text: str, texts: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.texts = texts


class RequestRefused(AuthenticationFailed):
    """Something is wrong with the request itself: no other credentials make up for it, and nobody else is asked."""
