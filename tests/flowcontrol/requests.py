"""A clock whose calls without delay are made at once."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock


class Impatient(Clock):
    """A clock that has not got for ever: who is called again and again at the same time fails."""

    soon = 0

    def callLater(self, when: float, callable: Any, *args: object, **kw: object) -> Any:
        """As L{Clock.callLater}."""
        if not when:
            self.soon += 1
            assert self.soon < 1000, "nobody rests"
        return super().callLater(when, callable, *args, **kw)
