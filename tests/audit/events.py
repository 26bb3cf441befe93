"""Events and fakes for the tests of the audit package."""

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
    """Return an event; C{values} replace fields."""
    return Event(evolve(ABOUT, level=level), stage, 1_000_000_000.5, **values)


@implementer(IAuditBackend)
class RecordingBackend:
    """A backend that records events; requests wait until C{answer} is called."""

    def __init__(self, waits: bool = False) -> None:
        self.events: list[Event] = []
        self.waiting: list[Deferred[bool]] = []
        self.stopped = False
        self._waits = waits

    def start(self) -> None:
        """Do nothing."""

    def process(self, event: Event) -> Deferred[bool] | None:
        """Record an event."""
        self.events.append(event)
        if not self._waits:
            return None
        done: Deferred[bool] = Deferred()
        self.waiting.append(done)
        return done

    def answer(self, fine: bool = True) -> None:
        """Fire all Deferreds that requests wait for."""
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done.callback(fine)

    async def stop(self) -> None:
        """Record the stop."""
        self.stopped = True


@implementer(IAuditOutput)
class RecordingOutput:
    """An output that records batches; each is written when the test fires its Deferred."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Event]] = []
        self.open: list[Deferred[bool]] = []
        self.calls: list[str] = []

    def start(self) -> None:
        """Record the start."""
        self.calls.append("start")

    def send(self, events: Sequence[Event], urgent: bool = True) -> Deferred[bool]:
        """Record a batch."""
        self.batches.append(events)
        done: Deferred[bool] = Deferred()
        self.open.append(done)
        return done

    async def flush(self) -> None:
        """Record the flush."""
        self.calls.append("flush")

    async def stop(self) -> None:
        """Record the stop."""
        self.calls.append("stop")
