"""
Export of spans to a collector by the OpenTelemetry SDK. No other module imports the SDK.

A thread of the SDK encodes and sends batches of spans, and drops spans that it cannot send. Requests do not wait for
it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Thread
from time import monotonic
from typing import Final

from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from twisted.logger import Logger

from .spans import Span

SERVICE: Final = "apiserver"
#: Seconds between log lines about a failing collector.
LOG_INTERVAL: Final = 60.0

_KINDS: Final = (SpanKind.INTERNAL, SpanKind.SERVER, SpanKind.CLIENT)
_FLAGS: Final = TraceFlags(TraceFlags.SAMPLED)
_FAILED: Final = Status(StatusCode.ERROR)
_UNSET: Final = Status(StatusCode.UNSET)
_SCOPE: Final = InstrumentationScope("kubetwist")
_NO_STATE: Final = TraceState()


class SpanExport:
    """Passes ended spans to the SDK."""

    _log = Logger()

    def __init__(self, exporter: SpanExporter, instance: str) -> None:
        """
        @param exporter: Sends spans; used in a thread of the SDK.
        @param instance: Unique id of this server.
        """
        self._exporter = exporter
        self._resource = Resource.create({SERVICE_NAME: SERVICE, SERVICE_INSTANCE_ID: instance})
        self._processor = BatchSpanProcessor(exporter)
        self._log_handler = _RateLimitedLogHandler(self._log.warn)
        logging.getLogger("opentelemetry").addHandler(self._log_handler)
        # The SDK would log each span that it drops, in the reactor's thread.
        logging.getLogger("opentelemetry.sdk._shared_internal").setLevel(logging.ERROR)

    def on_end(self, span: Span) -> None:
        """Accept a span that has ended."""
        self._processor.on_end(to_readable_span(span, self._resource))

    def close(self, timeout: float) -> None:
        """
        Flush the queue, and stop. This method blocks: call it in a thread.

        @param timeout: Timeout of the flush, in seconds.
        """
        # The SDK waits for 30 seconds unless its exporter is shut down.
        flushing = Thread(target=self._processor.shutdown, name="end-of-traces", daemon=True)
        flushing.start()
        flushing.join(timeout)
        if flushing.is_alive():
            self._exporter.shutdown()
            flushing.join(timeout)
        logging.getLogger("opentelemetry").removeHandler(self._log_handler)


def create_span_export(endpoint: str, instance: str) -> SpanExport:
    """
    Return an export over gRPC without TLS, as in kube-apiserver. Further settings come from the environment.

    @param endpoint: See
        L{TracingConfiguration.endpoint<kubetwist.tracing.configuration.TracingConfiguration.endpoint>}.
    @param instance: Unique id of this server.
    """
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    return SpanExport(OTLPSpanExporter(endpoint=_target(endpoint), insecure=True), instance)


def _target(endpoint: str) -> str | None:
    """
    Return a gRPC target that the exporter accepts.

    The exporter takes the authority as the host, which in C{dns://8.8.8.8/collector:4317} is the DNS server.
    """
    if not endpoint:
        return None
    if endpoint.startswith("dns://"):
        authority, slash, name = endpoint.removeprefix("dns://").partition("/")
        return name if slash and name else authority
    return endpoint


def to_readable_span(span: Span, resource: Resource) -> ReadableSpan:
    """Return a span as an object of the SDK."""
    trace, anchor = span.trace, span.trace.anchor
    state = _state(trace.state)
    parent = None
    if span.parent_id:
        parent = SpanContext(trace.id, span.parent_id, span.remote_parent, _FLAGS, state)
    link = span.link
    return ReadableSpan(
        span.name,
        SpanContext(trace.id, span.span_id, False, _FLAGS, state),
        parent,
        resource,
        span.attributes,
        events=[Event(name, dict(attributes), int(time * 1e9) + anchor) for time, name, attributes in span.events],
        links=()
        if link is None
        else (Link(SpanContext(link.trace_id, link.span_id, True, TraceFlags(link.sampled), _state(link.state))),),
        kind=_KINDS[span.kind],
        status=_FAILED if span.failed else _UNSET,
        start_time=int(span.began * 1e9) + anchor,
        end_time=int(span.ended * 1e9) + anchor,
        instrumentation_scope=_SCOPE,
    )


def _state(state: bytes) -> TraceState:
    return TraceState.from_header([state.decode("ascii")]) if state else _NO_STATE


class _RateLimitedLogHandler(logging.Handler):
    """Forwards log records of the SDK to the log of the server, within a rate limit."""

    def __init__(self, warn: Callable[..., object], now: Callable[[], float] = monotonic) -> None:
        super().__init__(logging.WARNING)
        self._warn = warn
        self._now = now
        self._logged_at: float | None = None
        self._suppressed = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record, or count it if the last one is too recent."""
        now = self._now()
        if self._logged_at is not None and now - self._logged_at < LOG_INTERVAL:
            self._suppressed += 1
            return
        suppressed, self._suppressed, self._logged_at = self._suppressed, 0, now
        text = record.getMessage()
        self._warn("traces: {text} ({more} similar messages suppressed)", text=text, more=suppressed)
