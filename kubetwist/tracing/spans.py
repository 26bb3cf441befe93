"""
Spans, as this server makes them: what began when, within what, and how it ended.

Nothing here knows where they go (L{kubetwist.tracing.exporting}), so that nobody imports OpenTelemetry who does not
want traces. A place in a trace is a L{Span}, or an L{Unrecorded} one of a request that is not traced: it has a name all
the same, which those are told who are called, and they decide alike.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar
from functools import partial
from random import getrandbits
from time import perf_counter, time_ns
from types import TracebackType
from typing import Any, Final

from .propagation import Remote, traceparent

Value = str | int
Attributes = Mapping[str, Value]

INTERNAL: Final = 0
SERVER: Final = 1
CLIENT: Final = 2

#: Spans of one trace, and events of one span, that are recorded; a request may delete, or call, without an end.
MOST_SPANS: Final = 1000
MOST_EVENTS: Final = 32

_LOW_BITS: Final = (1 << 64) - 1
_HALF: Final = 1 << 63

#: Where the work that is going on belongs to; L{None} where nothing is traced, or nobody has asked for it.
current: ContextVar[Span | Unrecorded | None] = ContextVar("current", default=None)


def here() -> Span | Unrecorded:
    """Where the work that is going on belongs to, if only to nothing."""
    return current.get() or _NOWHERE


class Trace:
    """
    What all spans of one request have in common.

    @ivar state: C{tracestate}, to be passed on.
    @ivar baggage: Likewise.
    @ivar audit_id: Names the request in logs.
    @ivar anchor: Nanoseconds between the epoch and the zero of L{perf_counter<time.perf_counter>}.
    @ivar deliver: Takes each span that is over.
    @ivar left: How many spans more are recorded.
    """

    __slots__ = ("anchor", "audit_id", "baggage", "deliver", "id", "left", "state")

    def __init__(self, number: int, state: bytes, baggage: bytes, deliver: Callable[[Span], object]) -> None:
        self.id = number
        self.state = state
        self.baggage = baggage
        self.audit_id = ""
        self.anchor = time_ns() - int(perf_counter() * 1e9)
        self.deliver = deliver
        self.left = MOST_SPANS


class Span:
    """
    Something that takes a while. In a C{with} it is what the work within belongs to, and ends with it.

    @ivar parent_id: 0 for the first of a trace.
    @ivar remote_parent: The parent is a caller's.
    @ivar link: The caller's span, where that is not the parent.
    @ivar began: In seconds of L{perf_counter<time.perf_counter>}.
    @ivar ended: Likewise; 0 as long as it is not over.
    @ivar failed: It did not come to what it was for.
    @ivar events: What happened meanwhile: when, what, attributes.
    """

    __slots__ = (
        *("_before", "attributes", "began", "ended", "events", "failed", "kind", "link", "name", "parent_id"),
        *("remote_parent", "span_id", "trace"),
    )

    recording: Final = True

    def __init__(
        self,
        trace: Trace,
        name: str,
        parent_id: int = 0,
        attributes: Attributes | None = None,
        kind: int = INTERNAL,
        began: float | None = None,
    ) -> None:
        self.trace = trace
        self.name = name
        self.span_id = getrandbits(64) or 1
        self.parent_id = parent_id
        self.remote_parent = False
        self.link: Remote | None = None
        self.kind = kind
        self.attributes: dict[str, Value] = {} if attributes is None else dict(attributes)
        self.events: list[tuple[float, str, Attributes]] = []
        self.failed = False
        self.began = perf_counter() if began is None else began
        self.ended = 0.0
        self._before: Span | Unrecorded | None = None

    def child(self, name: str, attributes: Attributes | None = None, kind: int = INTERNAL) -> Span | Unrecorded:
        """Begin something within this."""
        trace = self.trace
        if trace.left <= 0:
            return Unrecorded(trace.id, trace.state, trace.baggage, sampled=True, span_id=self.span_id)
        trace.left -= 1
        return Span(trace, name, self.span_id, attributes, kind)

    def past(self, name: str, began: float, ended: float) -> None:
        """Note something within this that is over already."""
        trace = self.trace
        if trace.left > 0:
            trace.left -= 1
            Span(trace, name, self.span_id, began=began).end(ended)

    def put(self, name: str, value: Value) -> None:
        """Give an attribute a value."""
        self.attributes[name] = value

    def event(self, name: str, attributes: Attributes | None = None) -> None:
        """Note that something happens now."""
        if len(self.events) < MOST_EVENTS:
            self.events.append((perf_counter(), name, attributes or {}))

    def fail(self, kind: str) -> None:
        """
        Note that it did not come to what it was for.

        @param kind: What went wrong, from a list that has an end; texts of errors may quote what is nobody's business.
        """
        self.failed = True
        self.attributes["error.type"] = kind

    def end(self, at: float | None = None) -> None:
        """It is over; only the first time counts."""
        if not self.ended:
            self.ended = perf_counter() if at is None else at
            self.trace.deliver(self)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The fields by which those who are called learn of it."""
        trace = self.trace
        return _fields(trace.id, self.span_id, True, trace.state, trace.baggage)

    def __enter__(self) -> Span:
        self._before = current.get()
        current.set(self)
        return self

    def leave(self) -> None:
        """What comes does not belong to it, for now."""
        current.set(self._before)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # No token: a coroutine may end in another context than it began in.
        current.set(self._before)
        if error is not None:
            code = getattr(error, "code", 500)
            if isinstance(code, int) and code < 500:
                # Somebody was refused something, as it should be.
                self.attributes["error.type"] = str(getattr(error, "reason", code) or code)
            else:
                self.fail(type(error).__name__)
        self.end()


class Unrecorded:
    """
    The place of what is not recorded; everything within it is at the same place.

    @ivar sampled: Whether those who are called are to record.
    """

    __slots__ = ("baggage", "id", "sampled", "span_id", "state")

    recording: Final = False

    def __init__(self, number: int, state: bytes, baggage: bytes, *, sampled: bool = False, span_id: int = 0) -> None:
        self.id = number
        self.state = state
        self.baggage = baggage
        self.sampled = sampled
        self.span_id = span_id

    def child(self, name: str, attributes: Attributes | None = None, kind: int = INTERNAL) -> Unrecorded:
        """The same."""
        return self

    def put(self, name: str, value: Value) -> None:
        """Nothing."""

    def event(self, name: str, attributes: Attributes | None = None) -> None:
        """Nothing."""

    def fail(self, kind: str) -> None:
        """Nothing."""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The fields by which those who are called learn that they are not to record anything, either."""
        if not self.span_id:
            self.span_id = getrandbits(64) or 1
        return _fields(self.id, self.span_id, self.sampled, self.state, self.baggage)

    def __enter__(self) -> Unrecorded:
        return self

    def leave(self) -> None:
        """Nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


_NOWHERE: Final = Unrecorded(0, b"", b"")


def _fields(trace_id: int, span_id: int, sampled: bool, state: bytes, baggage: bytes) -> list[tuple[bytes, bytes]]:
    fields = [(b"traceparent", traceparent(trace_id, span_id, sampled))]
    if state:
        fields.append((b"tracestate", state))
    if baggage:
        fields.append((b"baggage", baggage))
    return fields


class Tracer:
    """Begins traces, or goes on with those of callers."""

    def __init__(self, rate: int, deliver: Callable[[Span], object]) -> None:
        """
        @param rate: How many of a million traces that begin here are recorded.
        @param deliver: Takes each span that is over.
        """
        self._bound = rate * _HALF // 1_000_000
        self._deliver = deliver

    def samples(self, trace_id: int) -> bool:
        """Whether a trace that begins here is recorded: servers with the same rate agree on that."""
        return (trace_id & _LOW_BITS) >> 1 < self._bound

    def begin(self, remote: Remote | None, trusted: bool, baggage: bytes, began: float) -> Span | Unrecorded:
        """
        Begin with a request; its span is to be named, and its trace to be told the audit id.

        @param remote: The span of its caller.
        @param trusted: Whether that one decides; otherwise a new trace begins, with a link to it.
        @param began: When it came, in seconds of L{perf_counter<time.perf_counter>}.
        """
        if remote is not None and trusted:
            number, state, sampled = remote.trace_id, remote.state, remote.sampled
        else:
            number, state = getrandbits(128) or 1, b""
            sampled = self.samples(number)
        if not sampled:
            return Unrecorded(number, state, baggage)
        span = Span(Trace(number, state, baggage, self._deliver), "", kind=SERVER, began=began)
        if remote is not None and trusted:
            span.parent_id, span.remote_parent = remote.span_id, True
        else:
            span.link = remote
        return span


def within(span: Span | Unrecorded, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """
    Call a function within a span, which ends when what it returns is there.

    @return: What it returns; an awaitable of that where it returns one.
    """
    span.__enter__()
    try:
        result = function(*arguments, **named)
    except BaseException as error:
        span.__exit__(type(error), error, None)
        raise
    if hasattr(result, "__await__"):
        span.leave()
        return _awaited(span, result)
    span.__exit__(None, None, None)
    return result


async def _awaited(span: Span | Unrecorded, result: Any) -> Any:
    return await _Within(span, result)


class _Within:
    """
    What is awaited within a span.

    Its parts may run in different contexts: each finds the place that the one before has left, and leaves that of the
    context as it was.
    """

    __slots__ = ("_result", "_span")

    def __init__(self, span: Span | Unrecorded, result: Any) -> None:
        self._span = span
        self._result = result

    def __await__(self) -> Generator[Any, Any, Any]:
        async def all_of_it() -> Any:
            with self._span:
                return await self._result

        coroutine, inside = all_of_it(), current.get()
        go_on: Callable[[], Any] = partial(coroutine.send, None)
        while True:
            outside = current.get()
            current.set(inside)
            try:
                waits = go_on()
            except StopIteration as stop:
                return stop.value
            finally:
                inside = current.get()
                current.set(outside)
            try:
                go_on = partial(coroutine.send, (yield waits))
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:
                go_on = partial(coroutine.throw, error)
