"""The events of a watch, received by treq."""

from __future__ import annotations

import json
from typing import Any

import treq
from twisted.internet.defer import Deferred, DeferredQueue


class Watch:
    """Queue of the events in the response to a watch request."""

    def __init__(self, response: Any) -> None:
        self._line = b""
        self._events: DeferredQueue[Any] = DeferredQueue()
        #: Fires at the end of the watch.
        self.ended: Deferred[None] = treq.collect(response, self._received)

    def _received(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._events.put(json.loads(line))

    def next_event(self) -> Deferred[Any]:
        """Return the next event."""
        return self._events.get()
