"""
Budgets of one connection for what costs the client less than the server: resets and control frames.

A budget is a token bucket. Frames that a client must send when it reads responses are earned by the sent data.

@see: CVE-2019-9511 to CVE-2019-9518, CVE-2023-44487, CVE-2025-8671.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .frames import ENHANCE_YOUR_CALM, Http2ConnectionError

#: Control frames (SETTINGS, PING, PRIORITY, WINDOW_UPDATE, RST_STREAM, empty DATA, unknown types) at once, per second,
#: and per sent DATA frame.
MAX_CONTROL_FRAMES: Final = 2000
CONTROL_FRAMES_PER_SECOND: Final = 100.0
CONTROL_FRAMES_PER_DATA: Final = 6
#: Requests whose streams are reset before their responses are complete, at once and per second; nghttp2's limits.
MAX_RESETS: Final = 1000
RESETS_PER_SECOND: Final = 33.0


class Budget:
    """A token bucket."""

    __slots__ = ("_limit", "_now", "_rate", "_since", "_text", "_tokens")

    def __init__(self, limit: int, rate: float, now: Callable[[], float], text: str) -> None:
        """
        @param limit: Number of tokens at first, and at most.
        @param rate: Tokens per second.
        @param now: Returns the time.
        @param text: What the client sent too much of.
        """
        self._limit = limit
        self._rate = rate
        self._now = now
        self._text = text
        self._tokens = limit
        self._since = now()

    def earn(self, tokens: int) -> None:
        """Add tokens."""
        self._tokens = min(self._limit, self._tokens + tokens)

    def spend(self, tokens: int = 1, *, refill: bool = True) -> None:
        """
        Take tokens.

        @param refill: Whether the tokens of the elapsed time count.
        @raise Http2ConnectionError: There are not enough.
        """
        if self._tokens < tokens and refill:
            now = self._now()
            self.earn(int((now - self._since) * self._rate))
            self._since = now
        self._tokens -= tokens
        if self._tokens < 0:
            raise Http2ConnectionError(ENHANCE_YOUR_CALM, f"too many {self._text}")


class ControlBudget(Budget):
    """
    The budget of control frames.

    @ivar sent_frames: Number of sent DATA frames, which earn tokens when the next control frame arrives.
    """

    __slots__ = ("sent_frames",)

    def __init__(self, now: Callable[[], float]) -> None:
        """@param now: Returns the time."""
        super().__init__(MAX_CONTROL_FRAMES, CONTROL_FRAMES_PER_SECOND, now, "control frames")
        self.sent_frames = 0

    def spend(self, tokens: int = 1, *, refill: bool = True) -> None:
        """
        Take tokens.

        @param refill: Whether the tokens of the elapsed time count.
        @raise Http2ConnectionError: There are not enough.
        """
        if self.sent_frames:
            self.earn(CONTROL_FRAMES_PER_DATA * self.sent_frames)
            self.sent_frames = 0
        super().spend(tokens, refill=refill)


def reset_budget(now: Callable[[], float]) -> Budget:
    """Return the budget of requests whose streams are reset, or that are malformed."""
    return Budget(MAX_RESETS, RESETS_PER_SECOND, now, "reset streams")
