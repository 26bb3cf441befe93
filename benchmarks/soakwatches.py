"""
Watches of F{soak.py}: whether all of them receive all events, in the same order.

L{EventLog} has no I/O. It keeps the events of a collection as the first watch received them; each other watch must
receive the same sequence, and each acknowledged write must be in it.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from attrs import define, field
from load import Target

#: Seconds after which a watch must have received an acknowledged write.
PATIENCE = 60.0
#: The range of timeoutSeconds: a watch ends and continues at its last revision.
TIMEOUTS = (120, 600)
#: The most descriptions of problems that are kept.
KEPT = 50


class Event(NamedTuple):
    """An event: its type, the object's namespace and name, and its revision."""

    type: str
    name: str
    revision: int


@define
class EventLog:
    """
    The events of one collection, in the order in which the first watch received them.

    @ivar last: The revision of the newest event.
    """

    last: int = 0
    _events: deque[tuple[Event, float]] = field(factory=deque)
    _first: int = 0
    _awaited: dict[tuple[str, int], float] = field(factory=dict)
    _early: dict[tuple[str, int], float] = field(factory=dict)

    @property
    def end(self) -> int:
        """Return the position after the newest event."""
        return self._first + len(self._events)

    def receive(self, position: int, event: Event, now: float) -> str:
        """
        Check the event that a watch received.

        @param position: The number of events before it.
        @return: The problem; C{""} if it is the event that other watches received there, or a new one.
        """
        index = position - self._first
        if index < len(self._events):
            expected = self._events[index][0]
            return "" if event == expected else f"received {event} instead of {expected}"
        if event.revision <= self.last:
            return f"received {event} after revision {self.last}"
        self.last = event.revision
        self._events.append((event, now))
        key = self._key(event.type, event.name, event.revision)
        if self._awaited.pop(key, None) is None:
            self._early[key] = now
        return ""

    def acknowledge(self, kind: str, name: str, revision: int, now: float) -> None:
        """
        Expect the event of a write.

        @param revision: The revision in the response; the response to a deletion has none, and its names are unique.
        """
        key = self._key(kind, name, revision)
        if self._early.pop(key, None) is None:
            self._awaited[key] = now

    @staticmethod
    def _key(kind: str, name: str, revision: int) -> tuple[str, int]:
        return (name, 0 if kind == "DELETED" else revision)

    def position_after(self, revision: int) -> int:
        """Return the position of the first event after a revision."""
        for index, (event, _) in enumerate(self._events):
            if event.revision > revision:
                return self._first + index
        return self.end

    def missing(self, now: float, patience: float = PATIENCE) -> list[str]:
        """Return the acknowledged writes that no watch received in time, and forget them."""
        late = [key for key, since in self._awaited.items() if since <= now - patience]
        for key in late:
            del self._awaited[key]
        # The event of a write whose response was lost is never acknowledged.
        for key in [key for key, since in self._early.items() if since <= now - patience]:
            del self._early[key]
        return [f"no event of {name} at {revision or 'its deletion'}" for name, revision in late]

    def is_behind(self, position: int, now: float, patience: float = PATIENCE) -> bool:
        """Return whether a watch has not received an event that another one received long ago."""
        index = position - self._first
        return index < len(self._events) and self._events[index][1] <= now - patience

    @property
    def is_incomplete(self) -> bool:
        """Return whether an acknowledged write has not been received."""
        return bool(self._awaited)

    def trim(self, position: int) -> None:
        """Forget the events before a position."""
        while self._first < position and self._events:
            self._events.popleft()
            self._first += 1


class Lines:
    """The lines of a response in chunks."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def read(self) -> AsyncIterator[bytes]:
        """Return the lines until the end of the response."""
        rest = b""
        while size := int(await self._reader.readline() or b"0", 16):
            rest += (await self._reader.readexactly(size + 2))[:-2]
            *complete, rest = rest.split(b"\n")
            for line in complete:
                yield line


class Watch:
    """
    One watch of a collection, which continues until it is cancelled.

    @ivar path: The path of the collection.
    @ivar log: The events of the collection.
    @ivar position: The number of events that it received, or that were before its list.
    @ivar events: The number of received events since the last sample.
    @ivar requests: The number of watch requests since the last sample.
    @ivar revision: The revision at which it continues.
    """

    def __init__(
        self,
        server: Target,
        path: str,
        log: EventLog,
        report: Callable[[str, str], None],
        context: ssl.SSLContext,
        seed: int,
    ) -> None:
        """
        @param path: The path of the collection.
        @param report: Called with a code and a description of an error or problem.
        """
        self._server, self.path, self.log, self._report = server, path, log, report
        self._context, self._chance = context, random.Random(seed)
        self.position = self.events = self.requests = 0
        self.revision = 0

    async def run(self, revision: int) -> None:
        """Watch from a revision; requests that fail are repeated."""
        self.revision = revision
        while True:
            try:
                await self._once()
            except (OSError, asyncio.IncompleteReadError, ValueError) as error:
                self._report("watch-connection", f"watch of {self.path}: {error!r}")
                await asyncio.sleep(1)

    def is_behind(self, now: float) -> bool:
        """Return whether it has not received an event that another one received long ago."""
        return self.log.is_behind(self.position, now)

    async def _once(self) -> None:
        parts = urlsplit(self._server.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=self._context, limit=1 << 22)
        try:
            self.requests += 1
            query = f"watch=1&allowWatchBookmarks=1&timeoutSeconds={self._chance.randint(*TIMEOUTS)}"
            writer.write(self._server.request("GET", f"{self.path}?{query}&resourceVersion={self.revision}"))
            head = await reader.readuntil(b"\r\n\r\n")
            if head[9:12] != b"200":
                self._report(f"watch-{head[9:12].decode()}", f"watch of {self.path} at {self.revision}")
                await asyncio.sleep(1)
                if head[9:12] == b"410":
                    await self._list()
                return
            async for line in Lines(reader).read():
                if not await self._receive(json.loads(line)):
                    return
        finally:
            writer.close()

    async def _receive(self, event: dict[str, object]) -> bool:
        """Check an event; returns whether the watch goes on."""
        obj = event["object"]
        assert isinstance(obj, dict)
        if event["type"] == "ERROR":
            self._report(f"watch-{obj.get('code')}", f"watch of {self.path} at {self.revision}: {obj.get('message')}")
            if obj.get("code") == 410:
                await self._list()
            return False
        meta = obj["metadata"]
        revision = int(meta["resourceVersion"])
        if event["type"] != "BOOKMARK":
            found = Event(str(event["type"]), f"{meta['namespace']}/{meta['name']}", revision)
            problem = self.log.receive(self.position, found, time.monotonic())
            if problem:
                self._report("event", f"watch of {self.path}: {problem}")
                await self._list()
                return False
            self.position += 1
            self.events += 1
        elif revision < self.revision:
            self._report("bookmark", f"watch of {self.path}: bookmark {revision} after {self.revision}")
        self.revision = revision
        return True

    async def _list(self) -> None:
        """Continue at the revision of a new list."""
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(None, self._server.call, "GET", f"{self.path}?limit=1")
        self.revision = int(answer["metadata"]["resourceVersion"])
        # The first watch that receives an event appends it: wait for the events before the list.
        for _ in range(100):
            if self.log.last >= self.revision:
                break
            await asyncio.sleep(0.1)
        self.position = self.log.position_after(self.revision)
