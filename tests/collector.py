"""An OpenTelemetry collector that receives spans over gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from attrs import frozen
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@frozen
class Collected:
    """A received span; numbers are hexadecimal strings, and events have a name and attributes."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    attributes: Mapping[str, Any]
    links: tuple[tuple[str, str], ...]
    failed: bool
    began: int
    ended: int
    state: str
    events: tuple[tuple[str, Mapping[str, Any]], ...]


class Collector(grpc.GenericRpcHandler):
    """
    Collector that listens on a free port of this machine, in separate threads.

    @ivar spans: The received spans.
    @ivar resources: The resource attributes of the senders.
    """

    def __init__(self) -> None:
        self.spans: list[Collected] = []
        self.resources: list[Mapping[str, Any]] = []
        self._server = grpc.server(ThreadPoolExecutor(2), handlers=[self])
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def endpoint(self) -> str:
        """Return its address."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start to listen."""
        self._server.start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.stop(None).wait()

    def service(self, details: Any) -> Any:
        """Return the handler of the one supported method."""
        if details.method != EXPORT:
            return None
        return grpc.unary_unary_rpc_method_handler(
            self._export, ExportTraceServiceRequest.FromString, ExportTraceServiceResponse.SerializeToString
        )

    def _export(self, request: Any, context: Any) -> Any:
        for sender in request.resource_spans:
            self.resources.append(_attributes(sender.resource.attributes))
            self.spans += [_collected(span) for scope in sender.scope_spans for span in scope.spans]
        return ExportTraceServiceResponse()

    def named(self, name: str) -> list[Collected]:
        """Return the spans with a name."""
        return [span for span in self.spans if span.name == name]

    def within(self, span: Collected) -> list[Collected]:
        """Return the child spans of a span, in the order of their start."""
        found = [one for one in self.spans if (one.trace_id, one.parent_id) == (span.trace_id, span.span_id)]
        return sorted(found, key=lambda one: one.began)


def _collected(span: Any) -> Collected:
    return Collected(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.kind,
        _attributes(span.attributes),
        tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        span.status.code == 2,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.trace_state,
        tuple((event.name, _attributes(event.attributes)) for event in span.events),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
