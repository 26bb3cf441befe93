"""
Audit backends: buffered (events are sent in batches) and blocking (requests wait for their events).

@see: kubernetes/apiserver, C{plugin/pkg/audit/buffered}.
"""

from __future__ import annotations

from collections import deque

from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface import implementer

from ..interfaces import (
    IAuditBackend,
    IAuditOutput,
)
from .errors import PluginErrors
from .event import Event
from .policy import REQUEST_RECEIVED


@frozen
class BatchConfig:
    """
    Limits of a buffered backend (C{buffered.BatchConfig}).

    @ivar buffer_size: Maximum number of events in memory, including those in flight.
    @ivar max_batch_size: Maximum number of events in a batch.
    @ivar max_batch_wait: Seconds after which a batch is sent even if it is not full.
    @ivar throttle_qps: Average number of batches per second; 0 for no limit.
    @ivar throttle_burst: Maximum number of batches that are sent immediately one after the other.
    """

    buffer_size: int = 10_000
    max_batch_size: int = 400
    max_batch_wait: float = 30.0
    throttle_qps: float = 0.0
    throttle_burst: int = 1


class TokenBucket:
    """A token bucket."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled = now

    def try_acquire(self, now: float) -> float:
        """Take a token and return 0; if there is none, return the seconds until the next one."""
        if not self._rate:
            return 0.0
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        # A sum of fractions of a token may be less than a whole token by a rounding error.
        if self._tokens >= 1 - 1e-9:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate


@implementer(IAuditBackend)
class BufferedBackend:
    """Sends events to an output in batches. Requests do not wait; events that exceed the buffer are dropped."""

    def __init__(
        self, output: IAuditOutput, settings: BatchConfig, reactor: IReactorTime, failures: PluginErrors
    ) -> None:
        self._output = output
        self._settings = settings
        self._reactor = reactor
        self._failures = failures
        self._events: deque[Event] = deque()
        self._in_flight = 0
        self._throttle = TokenBucket(settings.throttle_qps, settings.throttle_burst, reactor.seconds())
        self._timer: IDelayedCall | None = None
        self._throttled = False
        self._stopping = False
        self._idle: list[Deferred[None]] = []

    def start(self) -> None:
        """@see: L{IAuditBackend.start}."""
        self._output.start()

    def process(self, event: Event) -> None:
        """@see: L{IAuditBackend.process}."""
        settings, events = self._settings, self._events
        if len(events) + self._in_flight >= settings.buffer_size:
            self._failures.record(1, "audit buffer queue blocked")
            return
        events.append(event)
        if self._throttled:
            return
        if len(events) >= settings.max_batch_size:
            self._send()
        elif self._timer is None:
            self._timer = self._reactor.callLater(settings.max_batch_wait, self._waited)

    async def stop(self) -> None:
        """@see: L{IAuditBackend.stop}."""
        self._stopping = True
        self._cancel()
        while self._events:
            self._send_batch()
        flushed = Deferred.fromCoroutine(self._output.flush())
        if self._in_flight:
            idle: Deferred[None] = Deferred()
            self._idle.append(idle)
            await idle
        await flushed
        await self._output.stop()

    def _waited(self) -> None:
        self._timer = None
        self._throttled = False
        self._send(everything=True)

    def _send(self, everything: bool = False) -> None:
        """Send the full batches; with C{everything} also the last one, which is not full."""
        min_size = 1 if everything else self._settings.max_batch_size
        while len(self._events) >= min_size:
            wait = self._throttle.try_acquire(self._reactor.seconds())
            if wait:
                self._cancel()
                self._throttled = True
                self._timer = self._reactor.callLater(wait, self._waited)
                return
            self._send_batch()
        if not self._events:
            self._cancel()

    def _send_batch(self) -> None:
        events = self._events
        batch = [events.popleft() for _ in range(min(len(events), self._settings.max_batch_size))]
        self._in_flight += len(batch)
        self._output.send(batch, urgent=False).addBoth(self._done, len(batch))

    def _done(self, _: object, number: int) -> None:
        self._in_flight -= number
        if not self._in_flight and self._idle:
            idle, self._idle = self._idle, []
            for waiting in idle:
                waiting.callback(None)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@implementer(IAuditBackend)
class BlockingBackend:
    """
    Sends every event immediately; the request waits until it is written.

    @ivar strict: Whether a failed write rejects the request (mode C{blocking-strict}).
    """

    def __init__(self, output: IAuditOutput, strict: bool) -> None:
        self._output = output
        self.strict = strict

    def start(self) -> None:
        """@see: L{IAuditBackend.start}."""
        self._output.start()

    def process(self, event: Event) -> Deferred[bool]:
        """@see: L{IAuditBackend.process}."""
        # RequestReceived is urgent in blocking-strict mode only. Otherwise it is written with the next urgent event, or
        # after FLUSH_DELAY.
        written = self._output.send([event], urgent=self.strict or event.stage != REQUEST_RECEIVED)
        return written if self.strict else written.addCallback(_ignore_result)

    async def stop(self) -> None:
        """@see: L{IAuditBackend.stop}."""
        await self._output.flush()
        await self._output.stop()


def _ignore_result(_: bool) -> bool:
    return True
