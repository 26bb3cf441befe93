"""Events and fakes for the tests of the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from twisted.internet.defer import Deferred
from zope.interface import implementer

from kubetwist.api.resource import UserInfo
from kubetwist.audit.event import Event, RequestMetadata
from kubetwist.interfaces import IAuditBackend, IAuditOutput

ABOUT = RequestMetadata(
    1,
    "id",
    b"/api/v1/namespaces/ns/pods?limit=1",
    "list",
    UserInfo("jane", "7", ("a", "b"), {"scopes": ("x",)}),
    (None, None),
    "10.0.0.9",
    b"kubectl/v1",
    1_000_000_000.25,
)


def event(stage: str = "ResponseComplete", level: int = 1, **values: Any) -> Event:
    """An event; C{values} of its own."""
    return Event(evolve(ABOUT, level=level), stage, 1_000_000_000.5, **values)


@implementer(IAuditBackend)
class Kept:
    """Keeps events; those that wait for them wait until C{answer} is given."""

    def __init__(self, waits: bool = False) -> None:
        self.events: list[Event] = []
        self.waiting: list[Deferred[bool]] = []
        self.stopped = False
        self._waits = waits

    def start(self) -> None:
        """Nothing to do."""

    def process(self, event: Event) -> Deferred[bool] | None:
        """Keep it."""
        self.events.append(event)
        if not self._waits:
            return None
        done: Deferred[bool] = Deferred()
        self.waiting.append(done)
        return done

    def answer(self, fine: bool = True) -> None:
        """Let everybody go on who waits."""
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done.callback(fine)

    async def stop(self) -> None:
        """Note it."""
        self.stopped = True


@implementer(IAuditOutput)
class Sent:
    """Keeps batches; each is written when the test says so."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Event]] = []
        self.open: list[Deferred[bool]] = []
        self.calls: list[str] = []

    def start(self) -> None:
        """Note it."""
        self.calls.append("start")

    def send(self, events: Sequence[Event], urgent: bool = True) -> Deferred[bool]:
        """Keep them."""
        self.batches.append(events)
        done: Deferred[bool] = Deferred()
        self.open.append(done)
        return done

    async def flush(self) -> None:
        """Note it."""
        self.calls.append("flush")

    async def stop(self) -> None:
        """Note it."""
        self.calls.append("stop")
