"""The audit log: one line per event, written by a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from zope.interface import implementer

from ..interfaces import IAuditOutput
from .errors import PluginErrors
from .event import Event
from .logfile import LogFile, PartlyWritten, StandardOutput
from .truncation import TOO_LARGE, TruncateConfig, truncate

if TYPE_CHECKING:
    from ..interfaces import IServerReactor

#: Seconds after which events that are not urgent are written.
FLUSH_DELAY: Final = 0.02

_Job = tuple[Sequence[Event], "Deferred[bool]"]


@implementer(IAuditOutput)
class LogOutput:
    """
    Writes events to a file in a thread.

    Events are passed to the thread in batches. While one batch is in flight, new events are collected for the next one:
    waking the thread costs more than writing an event. Events that are not urgent wait up to L{FLUSH_DELAY} for further
    events.
    """

    def __init__(
        self,
        file: LogFile | StandardOutput,
        reactor: IServerReactor,
        failures: PluginErrors,
        truncated: PluginErrors,
        *,
        legacy: bool = False,
        limits: TruncateConfig | None = None,
    ) -> None:
        """
        @param file: The destination.
        @param reactor: The clock, and the calls from the thread.
        @param failures: Counts events that could not be written.
        @param truncated: Counts events that are too large.
        @param legacy: Whether lines have the legacy format instead of JSON.
        @param limits: Size limits; L{None} for none.
        """
        self._file = file
        self._reactor = reactor
        self._failures = failures
        self._truncated = truncated
        self._encode: Callable[[Event], bytes] = legacy_line if legacy else json_line
        self._limits = limits
        self._waiting: list[_Job] = []
        self._working = False
        self._flush_requested = False
        self._call: IDelayedCall | None = None
        self._batches: SimpleQueue[Sequence[_Job] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="audit log", daemon=True)

    def start(self) -> None:
        """@see: L{IAuditOutput.start}."""
        self._thread.start()

    def send(self, events: Sequence[Event], urgent: bool = True) -> Deferred[bool]:
        """@see: L{IAuditOutput.send}."""
        done: Deferred[bool] = Deferred()
        self._waiting.append((events, done))
        if self._working:
            self._flush_requested |= urgent
        elif self._call is None:
            self._flush_requested = urgent
            # Not immediately: most requests emit two events in one reactor iteration.
            self._call = self._reactor.callLater(0 if urgent else FLUSH_DELAY, self._start_batch)
        elif urgent and not self._flush_requested:
            self._flush_requested = True
            self._call.reset(0)
        return done

    def _start_batch(self) -> None:
        self._call = None
        self._working, self._flush_requested = True, False
        batch, self._waiting = self._waiting, []
        self._batches.put(batch)

    async def flush(self) -> None:
        """@see: L{IAuditOutput.flush}."""
        if self._thread.is_alive():
            await self.send(())

    async def stop(self) -> None:
        """@see: L{IAuditOutput.stop}."""
        if self._thread.is_alive():
            self._batches.put(None)
            self._thread.join()

    # In the thread.

    def _work(self) -> None:
        while True:
            batch = self._batches.get()
            if batch is None:
                self._file.close()
                return
            self._write_jobs(batch)

    def _write_jobs(self, jobs: Sequence[_Job]) -> None:
        """Write the events of several jobs and report the results in the reactor's thread."""
        lines: list[bytes] = []
        ends: list[int] = []
        errors: list[tuple[PluginErrors, int, object]] = []
        for events, _ in jobs:
            for event in events:
                try:
                    fitting = truncate(event, self._limits)
                    if fitting is not None:
                        lines.append(self._encode(fitting))
                    else:
                        errors.append((self._truncated, 1, TOO_LARGE))
                except Exception as error:
                    errors.append((self._failures, 1, repr(error)))
            ends.append(len(lines))
        lost, reason = self._write(lines)
        if lost:
            errors.append((self._failures, len(lost), reason))
        begins = [0, *ends]
        results = [
            (done, lost.isdisjoint(range(begin, end)))
            for (_, done), begin, end in zip(jobs, begins[:-1], ends, strict=True)
        ]
        self._reactor.callFromThread(self._done, results, errors)

    def _write(self, lines: Sequence[bytes]) -> tuple[set[int], object]:
        """Write as many lines as possible; return the indexes of lost lines, and the last error."""
        lost: set[int] = set()
        reason: object = None
        begin = 0
        while begin < len(lines):
            try:
                self._file.write(lines[begin:])
                break
            except PartlyWritten as error:
                reason = error
                begin += error.written
                lost.update([begin] if error.alone else range(begin, len(lines)))
                begin = begin + 1 if error.alone else len(lines)
        return lost, reason

    def _done(
        self, results: Sequence[tuple[Deferred[bool], bool]], errors: Sequence[tuple[PluginErrors, int, object]]
    ) -> None:
        for failures, number, reason in errors:
            failures.record(number, reason)
        self._working = False
        if self._waiting and self._flush_requested:
            self._start_batch()
        elif self._waiting:
            self._call = self._reactor.callLater(FLUSH_DELAY, self._start_batch)
        for done, succeeded in results:
            done.callback(succeeded)


def json_line(event: Event) -> bytes:
    """Encode an event as a line of JSON."""
    return event.json() + b"\n"


def legacy_line(event: Event) -> bytes:
    """Encode an event as a line of the legacy format."""
    return event.line().encode("utf-8", "replace") + b"\n"
