"""Tests for L{kubetwist.tracing.spans}."""

from __future__ import annotations

from contextvars import copy_context

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.tracing.propagation import RemoteSpanContext
from kubetwist.tracing.spans import (
    MAX_EVENTS,
    MAX_SPANS,
    NonRecordingSpan,
    Span,
    Tracer,
    current,
    current_span,
    run_in_span,
)

CALLER = RemoteSpanContext(0xABC, 0xDEF, True, b"a=1")


class SpanCase(SynchronousTestCase):
    """Test case that collects ended spans."""

    def setUp(self) -> None:
        """Start with no ended spans."""
        self.spans: list[Span] = []

    def start_request(
        self, remote: RemoteSpanContext | None = None, *, trusted: bool = False, rate: int = 1_000_000
    ) -> Span:
        """Return the root span of a sampled request."""
        place = Tracer(rate, self.spans.append).start_trace(remote, trusted, b"", 1.0)
        assert isinstance(place, Span)
        place.name = "request"
        return place


class TracerTests(SpanCase):
    """Tests for L{Tracer}."""

    def place(self, remote: RemoteSpanContext | None, *, trusted: bool, rate: int = 0) -> Span | NonRecordingSpan:
        """Return the root span of a request."""
        return Tracer(rate, self.spans.append).start_trace(remote, trusted, b"", 1.0)

    def test_rate(self) -> None:
        """The trace id decides about sampling, so that all servers with a rate make the same decision."""
        tracer = Tracer(250_000, self.spans.append)
        for quarter in range(4):
            number = (quarter << 62) + 5
            self.assertEqual(tracer.should_sample(number), quarter == 0)
            self.assertEqual(tracer.should_sample(number + (1 << 100)), quarter == 0)

    def test_extremes(self) -> None:
        """The rates 0 and 1000000 sample nothing and everything."""
        for number in (1, (1 << 64) - 1, (1 << 128) - 1):
            self.assertTrue(Tracer(1_000_000, self.spans.append).should_sample(number))
            self.assertFalse(Tracer(0, self.spans.append).should_sample(number))

    def test_caller_decides(self) -> None:
        """The sampling decision of a trusted caller overrides the rate."""
        place = self.place(CALLER, trusted=True)
        assert isinstance(place, Span)
        self.assertEqual((place.trace.id, place.parent_id, place.remote_parent), (0xABC, 0xDEF, True))
        self.assertEqual(place.trace.state, b"a=1")
        self.assertIsNone(place.link)
        unsampled = RemoteSpanContext(0xABC, 0xDEF, False, b"a=1")
        self.assertNotIsInstance(self.place(unsampled, trusted=True, rate=1_000_000), Span)

    def test_untrusted(self) -> None:
        """An untrusted caller's request starts a new trace with a link to the caller's span, and without its state."""
        self.assertNotIsInstance(self.place(CALLER, trusted=False), Span)
        place = self.place(CALLER, trusted=False, rate=1_000_000)
        assert isinstance(place, Span)
        self.assertNotEqual(place.trace.id, 0xABC)
        self.assertEqual((place.parent_id, place.remote_parent, place.link), (0, False, CALLER))
        self.assertEqual(place.trace.state, b"")

    def test_not_sampled_is_propagated(self) -> None:
        """A trace that is not sampled is propagated with a stable span id."""
        place = self.place(RemoteSpanContext(0xABC, 0xDEF, False, b"a=1"), trusted=True)
        fields = dict(place.propagation_headers())
        self.assertEqual(fields, dict(place.propagation_headers()))
        version, trace, span, flags = fields[b"traceparent"].split(b"-")
        self.assertEqual((version, int(trace, 16), flags), (b"00", 0xABC, b"00"))
        self.assertNotIn(int(span, 16), (0, 0xDEF))
        self.assertEqual(fields[b"tracestate"], b"a=1")


class SpanTests(SpanCase):
    """Tests for L{Span}."""

    def test_context_manager(self) -> None:
        """Spans that are started within a C{with} block are children of its span."""
        request = self.start_request()
        with request:
            with current_span().child("inner", {"key": "value"}) as inner:
                inner.add_event("happened", {"count": 1})
                self.assertIs(current_span(), inner)
            self.assertIs(current_span(), request)
        self.assertIsNone(current.get())
        inner, outer = self.spans
        self.assertEqual((inner.name, inner.parent_id, inner.attributes), ("inner", outer.span_id, {"key": "value"}))
        self.assertEqual([(name, more) for _, name, more in inner.events], [("happened", {"count": 1})])
        self.assertTrue(outer.began <= inner.began <= inner.events[0][0] <= inner.ended <= outer.ended)

    def test_headers(self) -> None:
        """Outgoing headers contain the id of the span."""
        request = self.start_request(CALLER, trusted=True)
        child = request.child("call")
        assert isinstance(child, Span)
        expected = [(b"traceparent", b"00-%032x-%016x-01" % (0xABC, child.span_id)), (b"tracestate", b"a=1")]
        self.assertEqual(child.propagation_headers(), expected)

    def test_failure(self) -> None:
        """An error has its type, and never its message."""

        def fail() -> None:
            with self.start_request():
                raise ValueError("secret")

        self.assertRaises(ValueError, fail)
        (span,) = self.spans
        self.assertTrue(span.failed)
        self.assertEqual(span.attributes, {"error.type": "ValueError"})

    def test_client_error(self) -> None:
        """A client error does not set the status to an error."""

        def refuse() -> None:
            with self.start_request():
                raise APIStatusError.bad_request("secret")

        self.assertRaises(APIStatusError, refuse)
        (span,) = self.spans
        self.assertFalse(span.failed)
        self.assertEqual(span.attributes, {"error.type": "BadRequest"})

    def test_awaitable(self) -> None:
        """A span ends when its awaitable fires. Spans that are started by it are its children."""
        waited: Deferred[int] = Deferred()
        seen = []

        async def work(number: int, *, more: int) -> int:
            seen.append(current_span())
            found = await waited
            seen.append(current_span())
            return number + more + found

        request = self.start_request()
        child = request.child("work")
        with request:
            running = Deferred.fromCoroutine(run_in_span(child, work, 1, more=2))
            self.assertIs(current_span(), request)
            self.assertEqual(self.spans, [])
            waited.callback(3)
            self.assertEqual(self.successResultOf(running), 6)
        self.assertEqual(seen, [child, child])
        self.assertEqual(self.spans, [child, request])

    def test_other_context(self) -> None:
        """A coroutine that continues in another context has its current span, and both contexts are restored."""
        first: Deferred[None] = Deferred()
        seen = []

        async def work() -> None:
            with current_span().child("inner") as inner:
                seen.append(inner)
                await first
                seen.append(current_span())
            seen.append(current_span())

        request = self.start_request()
        outer = request.child("outer")
        coroutine = run_in_span(outer, work)
        copy_context().run(coroutine.send, None)
        first.callback(None)
        other = copy_context()
        self.assertRaises(StopIteration, other.run, coroutine.send, None)
        inner, later, after = seen
        self.assertIs(inner, later)
        self.assertIs(after, outer)
        self.assertIsNone(other[current])
        self.assertEqual(self.spans, [inner, outer])

    def test_cancelled(self) -> None:
        """A cancelled coroutine ends its span with an error."""
        waited: Deferred[None] = Deferred()

        async def work() -> None:
            await waited

        running = Deferred.fromCoroutine(run_in_span(self.start_request(), work))
        running.cancel()
        self.failureResultOf(running, CancelledError)
        (span,) = self.spans
        self.assertEqual((span.failed, span.attributes["error.type"]), (True, "CancelledError"))

    def test_closed(self) -> None:
        """A coroutine that is closed ends its span with an error."""
        coroutine = run_in_span(self.start_request(), self.waiting)
        coroutine.send(None)
        coroutine.close()
        (span,) = self.spans
        self.assertEqual(span.attributes["error.type"], "GeneratorExit")

    async def waiting(self) -> None:
        """Wait forever."""
        await Deferred()

    def test_without_awaitable(self) -> None:
        """A function without an awaitable ends its span immediately, also if it fails."""
        request = self.start_request()
        self.assertEqual(run_in_span(request.child("good"), lambda: 5), 5)
        self.assertRaises(KeyError, run_in_span, request.child("bad"), {}.__getitem__, 1)
        self.assertEqual([(one.name, one.failed) for one in self.spans], [("good", False), ("bad", True)])
        self.assertIsNone(current.get())

    def test_once(self) -> None:
        """Only the first end has an effect."""
        request = self.start_request()
        request.end(2.0)
        request.end(3.0)
        self.assertEqual([span.ended for span in self.spans], [2.0])

    def test_limits(self) -> None:
        """The number of spans of a request is bounded. Propagation continues above the limit."""
        request = self.start_request()
        for _ in range(MAX_SPANS + 5):
            with request.child("one"):
                pass
        self.assertEqual(len(self.spans), MAX_SPANS)
        late = request.child("late")
        self.assertEqual(late.propagation_headers()[0][1], request.propagation_headers()[0][1])
        for _ in range(MAX_EVENTS + 5):
            request.add_event("again")
        self.assertEqual(len(request.events), MAX_EVENTS)

    def test_without_tracing(self) -> None:
        """Without tracing, all operations on spans have no effect."""
        with current_span().child("one", {"key": 1}) as span:
            span.add_event("happened")
            span.set_attribute("key", 2)
            span.set_error("why")
            self.assertFalse(span.recording)
        self.assertIsNone(current.get())
