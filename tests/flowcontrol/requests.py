"""A fake clock that detects busy loops."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock


class BusyLoopClock(Clock):
    """A clock that fails if calls without delay are scheduled endlessly."""

    soon = 0

    def callLater(self, when: float, callable: Any, *args: object, **kw: object) -> Any:
        """As L{Clock.callLater}."""
        if not when:
            self.soon += 1
            assert self.soon < 1000, "busy loop"
        return super().callLater(when, callable, *args, **kw)
