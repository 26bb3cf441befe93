"""Tests for L{kubetwist.tracing.exporting}."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from threading import Event, current_thread
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.tracing.exporting import LOG_INTERVAL, SpanExport, _RateLimitedLogHandler, _target
from kubetwist.tracing.propagation import RemoteSpanContext
from kubetwist.tracing.spans import CLIENT, Span, Tracer


class CollectingExporter(SpanExporter):
    """
    Collects exported spans.

    @ivar threads: The threads that spans were exported in.
    """

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        self.threads: set[Any] = set()
        self.ended = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Collect the spans."""
        self.threads.add(current_thread())
        self.spans += spans
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Count the shutdowns."""
        self.ended += 1


class BlockingExporter(CollectingExporter):
    """Blocks in C{export} until it is shut down."""

    def __init__(self) -> None:
        super().__init__()
        self.over = Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Block."""
        self.over.wait()
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Unblock."""
        super().shutdown()
        self.over.set()


class ExportingTests(SynchronousTestCase):
    """Tests for L{SpanExport}."""

    def exported(self, remote: RemoteSpanContext | None, *, trusted: bool) -> list[ReadableSpan]:
        """Return the exported spans of a request with an outgoing call."""
        keeper = CollectingExporter()
        exporting = SpanExport(keeper, "apiserver-x")
        request = Tracer(1_000_000, exporting.on_end).start_trace(remote, trusted, b"", 1.0)
        assert isinstance(request, Span)
        request.name = "request"
        with request:
            request.set_attribute("count", 3)
            child = request.child("call", {"key": "value"}, CLIENT)
            with child:
                child.add_event("happened", {"size": 1})
            request.set_error("500")
        exporting.close(30.0)
        self.assertNotIn(current_thread(), keeper.threads)
        self.assertEqual(keeper.ended, 1)
        return keeper.spans

    def test_spans(self) -> None:
        """Spans are exported with their names, kinds, times, attributes and events."""
        call, request = self.exported(None, trusted=False)
        assert call.context is not None and call.parent is not None and request.context is not None
        self.assertEqual((call.name, call.kind, call.attributes), ("call", SpanKind.CLIENT, {"key": "value"}))
        self.assertEqual(call.parent.span_id, request.context.span_id)
        self.assertEqual(call.context.trace_id, request.context.trace_id)
        self.assertFalse(call.parent.is_remote)
        self.assertEqual([(one.name, one.attributes) for one in call.events], [("happened", {"size": 1})])
        self.assertEqual(call.status.status_code, StatusCode.UNSET)
        self.assertEqual(request.attributes, {"count": 3, "error.type": "500"})
        self.assertEqual((request.name, request.kind, request.parent), ("request", SpanKind.SERVER, None))
        self.assertEqual(request.status.status_code, StatusCode.ERROR)
        began, ended = request.start_time, request.end_time
        assert began is not None and ended is not None and call.start_time is not None and call.end_time is not None
        self.assertTrue(began <= call.start_time <= call.events[0].timestamp <= call.end_time <= ended)

    def test_resource(self) -> None:
        """The service name is kube-apiserver's, and the instance id is unique."""
        resource = self.exported(None, trusted=False)[0].resource.attributes
        self.assertEqual((resource["service.name"], resource["service.instance.id"]), ("apiserver", "apiserver-x"))

    def test_environment(self) -> None:
        """The environment can add resource attributes, but cannot replace the service name."""
        self.addCleanup(os.environ.pop, "OTEL_RESOURCE_ATTRIBUTES", None)
        os.environ["OTEL_RESOURCE_ATTRIBUTES"] = "zone=a,service.name=other"
        resource = self.exported(None, trusted=False)[0].resource.attributes
        self.assertEqual((resource["service.name"], resource["zone"]), ("apiserver", "a"))

    def test_parent(self) -> None:
        """The caller's span is the parent, and its trace state is exported."""
        _, request = self.exported(RemoteSpanContext(0xABC, 0xDEF, True, b"a=1,b=2"), trusted=True)
        assert request.parent is not None and request.context is not None
        self.assertEqual((request.parent.span_id, request.parent.is_remote), (0xDEF, True))
        self.assertEqual(request.context.trace_state.to_header(), "a=1,b=2")
        self.assertEqual(request.links, ())

    def test_link(self) -> None:
        """The span of an untrusted caller is exported as a link."""
        _, request = self.exported(RemoteSpanContext(0xABC, 0xDEF, False, b"a=1"), trusted=False)
        (link,) = request.links
        self.assertEqual((link.context.trace_id, link.context.span_id), (0xABC, 0xDEF))
        self.assertIsNone(request.parent)

    def test_unresponsive_collector(self) -> None:
        """The shutdown does not wait longer than its timeout for a collector that does not respond."""
        stuck = BlockingExporter()
        exporting = SpanExport(stuck, "apiserver-x")
        request = Tracer(1_000_000, exporting.on_end).start_trace(None, False, b"", 1.0)
        assert isinstance(request, Span)
        request.end()
        exporting.close(0.01)
        self.assertTrue(stuck.ended)

    def test_full_queue(self) -> None:
        """Spans above the queue size are dropped without log lines."""
        stuck = BlockingExporter()
        exporting = SpanExport(stuck, "apiserver-x")
        warnings: list[Any] = []
        self.patch(exporting._log_handler, "_warn", lambda *arguments, **named: warnings.append(named))
        tracer = Tracer(1_000_000, exporting.on_end)
        for _ in range(5000):
            request = tracer.start_trace(None, False, b"", 1.0)
            assert isinstance(request, Span)
            request.end()
        exporting.close(0.01)
        self.assertEqual(warnings, [])


class LogHandlerTests(SynchronousTestCase):
    """Log lines about a failing collector."""

    def test_suppressed(self) -> None:
        """Repeated messages are suppressed and counted within the interval."""
        warnings: list[dict[str, Any]] = []
        now = [0.0]
        complaints = _RateLimitedLogHandler(lambda form, **fields: warnings.append(fields), lambda: now[0])
        for second in range(3):
            now[0] = second
            complaints.emit(logging.makeLogRecord({"msg": "no %s", "args": ("collector",)}))
        now[0] = LOG_INTERVAL
        complaints.emit(logging.makeLogRecord({"msg": "again"}))
        self.assertEqual(warnings, [{"text": "no collector", "more": 0}, {"text": "again", "more": 2}])


class TargetTests(SynchronousTestCase):
    """Targets of collectors."""

    def test_targets(self) -> None:
        """The exporter gets the gRPC target of an endpoint."""
        for endpoint, target in (
            ("", None),
            ("collector:4317", "collector:4317"),
            ("dns://collector:4317", "collector:4317"),
            ("dns:///collector:4317", "collector:4317"),
            ("dns://8.8.8.8/collector:4317", "collector:4317"),
            ("unix:///run/collector.sock", "unix:///run/collector.sock"),
        ):
            self.assertEqual(_target(endpoint), target)
