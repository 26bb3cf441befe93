"""Wraps handlers, storage and encoders in spans, if requests are traced."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

from twisted.web.resource import IResource

from ..api.options import GetOptions, ListOptions
from ..api.requestscope import RequestScope
from ..filters.tracing import client_of
from ..http.request import KubeRequest
from ..logs.httplog import trace_fields
from ..logs.redaction import MAX_AUDIT_ID_LENGTH
from ..tracing.spans import Span, Value, current, run_in_span
from .mux import DelegatingMux
from .routing import Route

if TYPE_CHECKING:
    from ..api.record import Listing
    from ..api.resource import GroupResource
    from ..http.responses import Body
    from ..interfaces import IWatchSink
    from .encoding import Encoder, Result

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")

#: The names of spans, by verb; a watch has none, as it does not end by itself.
_NAMES: Final = {
    "create": "Create",
    "create_named": "Create",
    "get": "Get",
    "list": "List",
    "update": "Update",
    "patch": "Patch",
    "delete": "Delete",
    "delete_collection": "Delete",
    "deletecollection": "Delete",
}


def traced_handler(handler: Callable[..., object], verb: str) -> Callable[..., object]:
    """
    Return a handler that runs in a span.

    @param handler: The handler.
    @param verb: The verb of the handler, which names the span.
    """
    name = _NAMES.get(verb)
    if name is None:
        return handler

    @wraps(handler)
    def handle(request: KubeRequest, *arguments: object, **named: object) -> object:
        parent = current.get()
        if not isinstance(parent, Span) or request.info.verb == "watch":
            return handler(request, *arguments, **named)
        return run_in_span(parent.child(name, span_attributes(request)), handler, request, *arguments, **named)

    return handle


def span_attributes(request: KubeRequest) -> dict[str, Value]:
    """Return the attributes that the reference gives the span of a request at its handler."""
    info = request.info
    scope = "resource" if info.name or info.verb == "create" else "namespace" if info.namespace else "cluster"
    return {**trace_fields(request, client_of(request) or "unknown"), "scope": scope}


class TracedMux(DelegatingMux):
    """A server of the chain that adds an event to the span of each request that it routes or delegates."""

    def getChildWithDefault(self, path: bytes, request: KubeRequest) -> IResource:
        """See L{DelegatingMux.getChildWithDefault}."""
        found = super().getChildWithDefault(path, request)
        span = current.get()
        if isinstance(span, Span):
            if isinstance(found, Route):
                if found.rule:
                    span.set_attribute("http.route", found.rule)
                span.add_event(self.name, {"code.function.name": found.handler_name})
            else:
                delegate = found.name if isinstance(found, DelegatingMux) else type(found).__name__
                span.add_event(self.name, {"delegate": delegate})
        return found


class TracedReading:
    """The reading methods of a storage object, with spans; it has no other methods."""

    def __init__(self, storage: Any, resource: GroupResource) -> None:
        self._storage = storage
        self._type = str(resource)
        self._directory = f"/{resource.resource}/"

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{kubetwist.interfaces.IGetter.get}."""
        parent = current.get()
        if not isinstance(parent, Span):
            return self._storage.get(scope, name, options)
        key = f"{self._directory}{scope.namespace}/{name}" if scope.namespace else self._directory + name
        attributes: dict[str, Value] = {
            "audit-id": parent.trace.audit_id,
            "key": key,
            "resource-version": options.resource_version[:MAX_AUDIT_ID_LENGTH],
        }
        return run_in_span(parent.child("cacher.Get", attributes), self._storage.get, scope, name, options)

    def list(self, scope: RequestScope, options: ListOptions) -> Any:
        """See L{kubetwist.interfaces.ILister.list}."""
        return self._in_span("cacher.GetList", self._storage.list, scope, options)

    def watch(self, scope: RequestScope, options: ListOptions, sink: IWatchSink) -> Any:
        """See L{kubetwist.interfaces.IWatcher.watch}."""
        return self._in_span("cacher.Watch", self._storage.watch, scope, options, sink)

    def _in_span(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        parent = current.get()
        if not isinstance(parent, Span):
            return call(*arguments)
        attributes: dict[str, Value] = {"audit-id": parent.trace.audit_id, "type": self._type}
        return run_in_span(parent.child(name, attributes), call, *arguments)


class TracedEncoder:
    """An encoder with spans, except for the events of watches."""

    def __init__(self, encoder: Encoder, media: str) -> None:
        self._encoder = encoder
        self._attributes: dict[str, Value] = {
            "mediaType": f"application/{media}",
            "encoder": type(encoder).__name__,
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object."""
        return self._in_span(self._encoder.encode_object, result)

    def encode_list(self, listing: Listing, token: str, items: list[bytes] | None = None) -> Body:
        """Encode a list."""
        return self._in_span(self._encoder.encode_list, listing, token, items)

    def _in_span(self, call: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        parent = current.get()
        if not isinstance(parent, Span):
            return call(*arguments)
        with parent.child("SerializeObject", {"audit-id": parent.trace.audit_id, **self._attributes}):
            return call(*arguments)
