"""
Spans and their context, without OpenTelemetry.

The export is in L{kubetwist.tracing.exporting}, so that servers without tracing do not import OpenTelemetry. A request
that is not sampled has a L{NonRecordingSpan} with a trace id, which is propagated to called servers with the sampling
decision.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar
from functools import partial
from random import getrandbits
from time import perf_counter, time_ns
from types import TracebackType
from typing import Any, Final

from .propagation import RemoteSpanContext, traceparent

Value = str | int
Attributes = Mapping[str, Value]

INTERNAL: Final = 0
SERVER: Final = 1
CLIENT: Final = 2

#: Maximum numbers of spans per trace and of events per span, as one request may delete many objects.
MAX_SPANS: Final = 1000
MAX_EVENTS: Final = 32

_LOW_BITS: Final = (1 << 64) - 1
_HALF: Final = 1 << 63

#: Span of the current context; L{None} without tracing.
current: ContextVar[Span | NonRecordingSpan | None] = ContextVar("current", default=None)


def current_span() -> Span | NonRecordingSpan:
    """Return the span of the current context, or a non-recording span."""
    return current.get() or _NO_SPAN


class Trace:
    """
    State shared by all spans of a request.

    @ivar state: C{tracestate} to propagate.
    @ivar baggage: Baggage to propagate.
    @ivar audit_id: Audit id of the request.
    @ivar anchor: Nanoseconds between the epoch and the zero of L{perf_counter<time.perf_counter>}.
    @ivar on_end: Called with each span that has ended.
    @ivar remaining_spans: Number of spans that may still be recorded.
    """

    __slots__ = ("anchor", "audit_id", "baggage", "id", "on_end", "remaining_spans", "state")

    def __init__(self, number: int, state: bytes, baggage: bytes, deliver: Callable[[Span], object]) -> None:
        self.id = number
        self.state = state
        self.baggage = baggage
        self.audit_id = ""
        self.anchor = time_ns() - int(perf_counter() * 1e9)
        self.on_end = deliver
        self.remaining_spans = MAX_SPANS


class Span:
    """
    A recording span. As a context manager it is the current span, and ends with the block.

    @ivar parent_id: Id of the parent; 0 for a root span.
    @ivar remote_parent: Whether the parent is a span of the caller.
    @ivar link: The span of the caller if it is not the parent.
    @ivar began: Start time, in seconds of L{perf_counter<time.perf_counter>}.
    @ivar ended: End time, in seconds of the same clock; 0 before the end.
    @ivar failed: Whether the status is an error.
    @ivar events: Time, name and attributes of each event.
    """

    __slots__ = (
        *("_previous", "attributes", "began", "ended", "events", "failed", "kind", "link", "name", "parent_id"),
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
        self.link: RemoteSpanContext | None = None
        self.kind = kind
        self.attributes: dict[str, Value] = {} if attributes is None else dict(attributes)
        self.events: list[tuple[float, str, Attributes]] = []
        self.failed = False
        self.began = perf_counter() if began is None else began
        self.ended = 0.0
        self._previous: Span | NonRecordingSpan | None = None

    def child(self, name: str, attributes: Attributes | None = None, kind: int = INTERNAL) -> Span | NonRecordingSpan:
        """Start a child span."""
        trace = self.trace
        if trace.remaining_spans <= 0:
            return NonRecordingSpan(trace.id, trace.state, trace.baggage, sampled=True, span_id=self.span_id)
        trace.remaining_spans -= 1
        return Span(trace, name, self.span_id, attributes, kind)

    def add_completed_child(self, name: str, began: float, ended: float) -> None:
        """
        Add a child span that has already ended.

        @param began: Start time, in seconds of L{perf_counter<time.perf_counter>}.
        @param ended: End time, in seconds of the same clock.
        """
        trace = self.trace
        if trace.remaining_spans > 0:
            trace.remaining_spans -= 1
            Span(trace, name, self.span_id, began=began).end(ended)

    def set_attribute(self, name: str, value: Value) -> None:
        """Set an attribute."""
        self.attributes[name] = value

    def add_event(self, name: str, attributes: Attributes | None = None) -> None:
        """Add an event at the current time."""
        if len(self.events) < MAX_EVENTS:
            self.events.append((perf_counter(), name, attributes or {}))

    def set_error(self, kind: str) -> None:
        """
        Set the status to an error.

        @param kind: Type of the error, from a closed set. Error messages may contain confidential data.
        """
        self.failed = True
        self.attributes["error.type"] = kind

    def end(self, at: float | None = None) -> None:
        """End the span. Later calls have no effect."""
        if not self.ended:
            self.ended = perf_counter() if at is None else at
            self.trace.on_end(self)

    def propagation_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the header fields that propagate the span to called servers."""
        trace = self.trace
        return _fields(trace.id, self.span_id, True, trace.state, trace.baggage)

    def __enter__(self) -> Span:
        self._previous = current.get()
        current.set(self)
        return self

    def detach(self) -> None:
        """Make the previous span the current one."""
        current.set(self._previous)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # No token is used: a coroutine may end in another context than it began in.
        current.set(self._previous)
        if error is not None:
            code = getattr(error, "code", 500)
            if isinstance(code, int) and code < 500:
                # A client error is not an error of the server.
                self.attributes["error.type"] = str(getattr(error, "reason", code) or code)
            else:
                self.set_error(type(error).__name__)
        self.end()


class NonRecordingSpan:
    """
    A span that is not recorded. Its children are the span itself.

    @ivar sampled: The sampling decision that is propagated.
    """

    __slots__ = ("baggage", "id", "sampled", "span_id", "state")

    recording: Final = False

    def __init__(self, number: int, state: bytes, baggage: bytes, *, sampled: bool = False, span_id: int = 0) -> None:
        self.id = number
        self.state = state
        self.baggage = baggage
        self.sampled = sampled
        self.span_id = span_id

    def child(self, name: str, attributes: Attributes | None = None, kind: int = INTERNAL) -> NonRecordingSpan:
        """Return this span."""
        return self

    def set_attribute(self, name: str, value: Value) -> None:
        """Do nothing."""

    def add_event(self, name: str, attributes: Attributes | None = None) -> None:
        """Do nothing."""

    def set_error(self, kind: str) -> None:
        """Do nothing."""

    def propagation_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the header fields that propagate the sampling decision to called servers."""
        if not self.span_id:
            self.span_id = getrandbits(64) or 1
        return _fields(self.id, self.span_id, self.sampled, self.state, self.baggage)

    def __enter__(self) -> NonRecordingSpan:
        return self

    def detach(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


_NO_SPAN: Final = NonRecordingSpan(0, b"", b"")


def _fields(trace_id: int, span_id: int, sampled: bool, state: bytes, baggage: bytes) -> list[tuple[bytes, bytes]]:
    fields = [(b"traceparent", traceparent(trace_id, span_id, sampled))]
    if state:
        fields.append((b"tracestate", state))
    if baggage:
        fields.append((b"baggage", baggage))
    return fields


class Tracer:
    """Starts traces, or continues traces of callers."""

    def __init__(self, rate: int, deliver: Callable[[Span], object]) -> None:
        """
        @param rate: Sampled traces per million, of traces that start here.
        @param deliver: Called with each span that has ended.
        """
        self._bound = rate * _HALF // 1_000_000
        self._deliver = deliver

    def should_sample(self, trace_id: int) -> bool:
        """Return whether a new trace is sampled. Servers with the same rate make the same decision."""
        return (trace_id & _LOW_BITS) >> 1 < self._bound

    def start_trace(
        self, remote: RemoteSpanContext | None, trusted: bool, baggage: bytes, began: float
    ) -> Span | NonRecordingSpan:
        """
        Start the root span of a request. The caller sets its name, and the audit id of its trace.

        @param remote: The span of the caller.
        @param trusted: Whether to continue the caller's trace. Otherwise a new trace with a link to it starts.
        @param baggage: Baggage to propagate.
        @param began: Arrival of the request, in seconds of L{perf_counter<time.perf_counter>}.
        """
        if remote is not None and trusted:
            number, state, sampled = remote.trace_id, remote.state, remote.sampled
        else:
            number, state = getrandbits(128) or 1, b""
            sampled = self.should_sample(number)
        if not sampled:
            return NonRecordingSpan(number, state, baggage)
        span = Span(Trace(number, state, baggage, self._deliver), "", kind=SERVER, began=began)
        if remote is not None and trusted:
            span.parent_id, span.remote_parent = remote.span_id, True
        else:
            span.link = remote
        return span


def run_in_span(span: Span | NonRecordingSpan, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """
    Call a function with C{span} as the current span. The span ends with the result.

    @param span: The span.
    @param function: The function. It may return an awaitable.
    @param arguments: Its positional arguments.
    @param named: Its keyword arguments.
    @return: The result, or an awaitable of it.
    """
    span.__enter__()
    try:
        result = function(*arguments, **named)
    except BaseException as error:
        span.__exit__(type(error), error, None)
        raise
    if hasattr(result, "__await__"):
        span.detach()
        return _awaited(span, result)
    span.__exit__(None, None, None)
    return result


async def _awaited(span: Span | NonRecordingSpan, result: Any) -> Any:
    return await _AwaitInSpan(span, result)


class _AwaitInSpan:
    """
    Awaits a result within a span.

    The steps may run in different contexts. Each step restores the current span of the step before. After the step, the
    current span of its context is reset.
    """

    __slots__ = ("_result", "_span")

    def __init__(self, span: Span | NonRecordingSpan, result: Any) -> None:
        self._span = span
        self._result = result

    def __await__(self) -> Generator[Any, Any, Any]:
        async def await_result() -> Any:
            with self._span:
                return await self._result

        coroutine, inner = await_result(), current.get()
        resume: Callable[[], Any] = partial(coroutine.send, None)
        while True:
            outer = current.get()
            current.set(inner)
            try:
                yielded = resume()
            except StopIteration as stop:
                return stop.value
            finally:
                inner = current.get()
                current.set(outer)
            try:
                resume = partial(coroutine.send, (yield yielded))
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:
                resume = partial(coroutine.throw, error)
