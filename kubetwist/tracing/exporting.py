"""
Where spans go: to a collector, as OpenTelemetry's SDK sends them. Nothing else imports that.

The SDK's thread encodes and sends them, a batch at a time. What it can not get rid of it drops; nobody waits for it.
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
#: Seconds between two lines of the log about a collector that does not take what is sent.
TOLD_EVERY: Final = 60.0

_KINDS: Final = (SpanKind.INTERNAL, SpanKind.SERVER, SpanKind.CLIENT)
_FLAGS: Final = TraceFlags(TraceFlags.SAMPLED)
_FAILED: Final = Status(StatusCode.ERROR)
_UNSET: Final = Status(StatusCode.UNSET)
_SCOPE: Final = InstrumentationScope("kubetwist")
_NO_STATE: Final = TraceState()


class Exporting:
    """Hands spans over to the SDK."""

    _log = Logger()

    def __init__(self, exporter: SpanExporter, instance: str) -> None:
        """
        @param exporter: Sends them; used in a thread of the SDK.
        @param instance: Tells this server from others like it.
        """
        self._exporter = exporter
        self._resource = Resource.create({SERVICE_NAME: SERVICE, SERVICE_INSTANCE_ID: instance})
        self._processor = BatchSpanProcessor(exporter)
        self._complaints = _Complaints(self._log.warn)
        logging.getLogger("opentelemetry").addHandler(self._complaints)
        # What takes spans, on the event loop, is not to write a line for each one that it has no room for.
        logging.getLogger("opentelemetry.sdk._shared_internal").setLevel(logging.ERROR)

    def deliver(self, span: Span) -> None:
        """Take a span that is over."""
        self._processor.on_end(readable(span, self._resource))

    def close(self, patience: float) -> None:
        """
        Send what is left, and stop. This blocks: it belongs in a thread.

        @param patience: Seconds that the collector is given.
        """
        # The SDK waits for half a minute, and can be told otherwise only by ending its exporter.
        flushing = Thread(target=self._processor.shutdown, name="end-of-traces", daemon=True)
        flushing.start()
        flushing.join(patience)
        if flushing.is_alive():
            self._exporter.shutdown()
            flushing.join(patience)
        logging.getLogger("opentelemetry").removeHandler(self._complaints)


def exporting_to(endpoint: str, instance: str) -> Exporting:
    """
    Export over gRPC, in the clear, as the reference does; what else there is to be set is the environment's.

    @param endpoint: As L{TracingConfiguration.endpoint<kubetwist.tracing.configuration.TracingConfiguration.endpoint>}.
    """
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    return Exporting(OTLPSpanExporter(endpoint=_target(endpoint), insecure=True), instance)


def _target(endpoint: str) -> str | None:
    """
    A target of gRPC that the exporter takes as it is.

    It takes what is between two slashes and the next for the host, which in C{dns://8.8.8.8/collector:4317} is the
    server to ask for the address.
    """
    if not endpoint:
        return None
    if endpoint.startswith("dns://"):
        authority, slash, name = endpoint.removeprefix("dns://").partition("/")
        return name if slash and name else authority
    return endpoint


def readable(span: Span, resource: Resource) -> ReadableSpan:
    """A span as the SDK knows it."""
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
        events=[Event(name, dict(more), int(when * 1e9) + anchor) for when, name, more in span.events],
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


class _Complaints(logging.Handler):
    """What the SDK has to say, in our log, and not more often than that is of use."""

    def __init__(self, tell: Callable[..., object], now: Callable[[], float] = monotonic) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._now = now
        self._told: float | None = None
        self._more = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Tell, or count."""
        now = self._now()
        if self._told is not None and now - self._told < TOLD_EVERY:
            self._more += 1
            return
        more, self._more, self._told = self._more, 0, now
        text = record.getMessage()
        self._tell("traces: {text} ({more} more like this before)", text=text, more=more)
