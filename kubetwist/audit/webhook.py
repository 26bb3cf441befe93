"""The audit webhook: posts events to another server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from zope.interface import implementer

from ..client.responses import raise_for_status
from ..client.retrying import Backoff, with_backoff
from ..interfaces import IAuditOutput
from .errors import PluginErrors
from .event import Event, event_list
from .truncation import TOO_LARGE, TruncateConfig, split_batches, truncate

if TYPE_CHECKING:
    from ..client.httpclient import WebhookClient

#: Timeout of a call, in seconds.
TIMEOUT: Final = 30.0
#: Seconds that the shutdown of the server waits for events in flight.
SHUTDOWN_TIMEOUT: Final = 10.0
#: Up to this number of events are encoded in the reactor's thread.
MAX_EVENTS_ON_REACTOR: Final = 8

InThread = Callable[..., "Deferred[Any]"]


@implementer(IAuditOutput)
class WebhookOutput:
    """Posts events as an C{EventList}; retries after any error, with backoff and a limited number of attempts."""

    def __init__(
        self,
        client: WebhookClient,
        reactor: IReactorTime,
        in_thread: InThread,
        failures: PluginErrors,
        truncated: PluginErrors,
        *,
        initial_backoff: float = 10.0,
        limits: TruncateConfig | None = None,
    ) -> None:
        """
        @param client: L{kubetwist.client.httpclient.WebhookClient}.
        @param reactor: The clock.
        @param in_thread: Calls a function in a thread and returns a Deferred of its result.
        @param failures: Counts events that could not be sent.
        @param truncated: Counts events that are too large.
        @param initial_backoff: Seconds between the first failure and the next attempt.
        @param limits: Size limits; L{None} for none.
        """
        self._client = client
        self._reactor = reactor
        self._in_thread = in_thread
        self._failures = failures
        self._truncated = truncated
        self._backoff = Backoff(initial=initial_backoff)
        self._limits = limits
        self._in_flight: dict[Deferred[bool], Sequence[Event]] = {}
        self._stopping = False

    def start(self) -> None:
        """@see: L{IAuditOutput.start}."""

    def send(self, events: Sequence[Event], urgent: bool = True) -> Deferred[bool]:
        """@see: L{IAuditOutput.send}."""
        sending = Deferred.fromCoroutine(self._send(events))
        if not sending.called:
            self._in_flight[sending] = events
            sending.addBoth(self._sent, sending)
        return sending

    def _sent(self, result: bool | Failure, sending: Deferred[bool]) -> bool | Failure:
        del self._in_flight[sending]
        return result

    async def flush(self) -> None:
        """
        @see: L{IAuditOutput.flush}.

        Calls that wait for a retry are cancelled.
        """
        self._stopping = True
        waiting = list(self._in_flight)
        if not waiting:
            return
        timer = self._reactor.callLater(SHUTDOWN_TIMEOUT, _cancel, waiting)
        ends: list[Deferred[None]] = [Deferred() for _ in waiting]
        for sending, end in zip(waiting, ends, strict=True):
            sending.addBoth(_fire, end)
        await DeferredList(ends)
        if timer.active():
            timer.cancel()

    async def stop(self) -> None:
        """@see: L{IAuditOutput.stop}."""
        closing = self._client.close()
        if closing is not None:
            await closing

    async def _send(self, events: Sequence[Event]) -> bool:
        bodies, large = (
            self._encode(events)
            if len(events) <= MAX_EVENTS_ON_REACTOR
            else await self._in_thread(self._encode, events)
        )
        if large:
            self._truncated.record(large, TOO_LARGE)
        succeeded = True
        for number, body in bodies:
            try:
                await with_backoff(self._reactor, self._call(body), self._backoff, self._should_retry)
            except Exception as error:
                self._failures.record(number, error)
                succeeded = False
        return succeeded

    def _encode(self, events: Sequence[Event]) -> tuple[list[tuple[int, bytes]], int]:
        """Return request bodies, each with its number of events, and the number of events that are too large."""
        fitting = [one for one in (truncate(event, self._limits) for event in events) if one is not None]
        batches = split_batches([event.item() for event in fitting], self._limits)
        return [(len(batch), event_list(batch)) for batch in batches], len(events) - len(fitting)

    def _call(self, body: bytes) -> Callable[[], Awaitable[None]]:
        async def call() -> None:
            raise_for_status(await self._client.post(body, timeout=TIMEOUT), quote=False)

        return call

    def _should_retry(self, error: Exception) -> bool:
        """Return whether to retry: after every error, except during the shutdown."""
        return not self._stopping


def _cancel(waiting: Sequence[Deferred[bool]]) -> None:
    for one in waiting:
        one.cancel()


def _fire(result: bool | Failure, end: Deferred[None]) -> bool | Failure:
    end.callback(None)
    return result
