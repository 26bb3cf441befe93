"""
Events that nobody waits for: collected, and handed on in batches.

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
    How events are collected.

    @ivar buffer_size: How many events are held at most, those included that are being written.
    @ivar max_batch_size: How many there are in a batch.
    @ivar max_batch_wait: Seconds that a batch waits to become full.
    @ivar throttle_qps: Batches per second, on average; 0 for any number.
    @ivar throttle_burst: Batches that may come at once where none came before.
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
        """Take a token, and return 0; or return the seconds until there is one."""
        if not self._rate:
            return 0.0
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        # Sums of fractions of a token may stay below a whole one by a rounding error.
        if self._tokens >= 1 - 1e-9:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate


@implementer(IAuditBackend)
class BufferedBackend:
    """Hands events to an output in batches; nobody waits, and what does not fit into the buffer is lost."""

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
        """Hand on the batches that are full; and with C{everything} the one that is not."""
        least = 1 if everything else self._settings.max_batch_size
        while len(self._events) >= least:
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
    Hands every event on at once, and has whoever made it wait.

    @ivar strict: Who waits is told of failure.
    """

    def __init__(self, output: IAuditOutput, strict: bool) -> None:
        self._output = output
        self.strict = strict

    def start(self) -> None:
        """@see: L{IAuditBackend.start}."""
        self._output.start()

    def process(self, event: Event) -> Deferred[bool]:
        """@see: L{IAuditBackend.process}."""
        # That a request has come nobody waits for, but those who insist; its end brings it along.
        written = self._output.send([event], urgent=self.strict or event.stage != REQUEST_RECEIVED)
        return written if self.strict else written.addCallback(_ignore_result)

    async def stop(self) -> None:
        """@see: L{IAuditBackend.stop}."""
        await self._output.flush()
        await self._output.stop()


def _ignore_result(_: bool) -> bool:
    return True
