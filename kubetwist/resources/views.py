"""Selects the encoder of a response: by the media types that the client accepts, and for Tables by its query."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..api.errors import APIStatusError
from ..api.latency import SERIALIZATION, LatencyTracker, add_latency
from ..api.record import Record
from ..api.resource import JSONObject
from ..http.negotiation import HUMANS, Negotiated, wants_pretty
from ..http.request import KubeRequest
from ..http.responses import PROTOBUF, pretty
from .binaryencoding import BinaryEncoder
from .encoding import JSONEncoder, PartialEncoder, YAMLEncoder, error_event, not_a_list
from .protobufencoding import ProtobufEncoder, error_frame
from .tables import TableEncoder, check_include
from .traced import TracedEncoder

if TYPE_CHECKING:
    from ..api.requestscope import RequestScope
    from .encoding import Result
    from .endpoint import Endpoint

_WITH_BODY = (b"POST", b"PUT", b"PATCH")
#: Maximum number of formats that are kept per endpoint, and maximum length of their C{Accept} headers.
_MAX_KEPT = 64
_MAX_KEPT_LENGTH = 256
JSON_TYPE = b"application/json"
_CUSTOM_LIST = "*unstructured.UnstructuredList"


class OutputFormat(NamedTuple):
    """The negotiated format of a response."""

    encoder: Any
    content_type: bytes
    pretty: bool

    @property
    def protobuf(self) -> bool:
        """Return whether the format is protobuf."""
        return False

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object."""
        began = perf_counter()
        try:
            body: bytes = self.encoder.encode_object(result)
            if self.pretty:
                return pretty(body)
            return body + b"\n" if self.content_type == JSON_TYPE else body
        finally:
            add_latency(SERIALIZATION, perf_counter() - began)

    async def encode_async(self, result: Result, scope: RequestScope) -> bytes:
        """Encode a single object, in the computation thread if it is large and not only stored bytes."""
        size = len(result.item) if isinstance(result, Record) else 0
        if not scope.is_large(size) or (size and not self.pretty and getattr(self.encoder, "stored", False)):
            return self.encode_object(result)
        body: bytes = await scope.compute(size, self.encode_object, result)
        return body


class BinaryOutputFormat(NamedTuple):
    """
    The format of a response in a binary media type.

    @ivar request: The request whose audit event gets the object of the response.
    """

    encoder: BinaryEncoder
    content_type: bytes
    request: KubeRequest
    pretty: bool = False

    @property
    def protobuf(self) -> bool:
        """Return whether the format is protobuf."""
        return self.content_type.startswith(PROTOBUF)

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object."""
        with LatencyTracker(SERIALIZATION):
            if self.audits_response:
                self.audit_response(self.encoder.inner.encode_object(result))
            return self.encoder.encode_object(result)

    async def encode_async(self, result: Result, scope: RequestScope) -> bytes:
        """Encode a single object, in the computation thread if it is large and not encoded yet."""
        size = len(result.item) if isinstance(result, Record) and not self.encoder.is_encoded(result) else 0
        body: bytes = await scope.compute(size, self.encode_object, result)
        return body

    @property
    def audits_response(self) -> bool:
        """Return whether the audit event of the request contains the object of the response."""
        audit = self.request.audit
        return audit is not None and audit.wants_response_object

    def audit_response(self, document: bytes) -> None:
        """Log an object in JSON to the audit event."""
        audit = self.request.audit
        if audit is not None:
            audit.log_response_object(document)


AnyOutputFormat = OutputFormat | BinaryOutputFormat


def negotiate_output(endpoint: Endpoint, request: KubeRequest, *, collection: bool) -> AnyOutputFormat:
    """
    Find the encoder for a request.

    @param endpoint: The endpoint of the request.
    @param request: The request.
    @param collection: Whether the response is a list, or a watch, instead of a single object.
    @return: The encoder may be L{NotAcceptableEncoder}, which raises an error at the first object.
    @raise APIStatusError: No accepted media type is available (406), or a watch requests an unknown part (400).
    """
    accept, agent = request.header(b"accept"), request.header(b"user-agent")
    known = (accept, collection, request.info.verb, request.site.serves_cbor)
    plain = b"pretty" not in request.uri and not (agent is not None and agent.startswith(HUMANS))
    if plain:
        output: AnyOutputFormat | None = endpoint.formats.get(known)
        if output is not None:
            return output
    negotiated = _negotiate(endpoint, request, collection)
    transform = negotiated.transform
    include = ""
    if transform:
        is_watch = request.info.verb == "watch"
        error = _transform_error(endpoint, transform, collection, is_watch)
        if transform == "Table":
            try:
                include = check_include(first_query_value(request, "includeObject"))
            except APIStatusError as invalid:
                if is_watch:
                    raise
                error = invalid
        if error is not None:
            return OutputFormat(NotAcceptableEncoder(error, negotiated.media), negotiated.content_type, False)
    key = (negotiated.media, transform, negotiated.version, include)
    encoder = endpoint.encoders.get(key)
    if encoder is None:
        encoder = endpoint.encoders[key] = _make_encoder(endpoint, *key)
    if negotiated.media == "protobuf" or (negotiated.media == "cbor" and transform != "Table"):
        return BinaryOutputFormat(encoder, negotiated.content_type, request)
    indented = wants_pretty(negotiated, request.uri, agent)
    output = OutputFormat(encoder, negotiated.content_type, indented and negotiated.media == "json")
    if plain and not transform and len(accept or b"") <= _MAX_KEPT_LENGTH:
        if len(endpoint.formats) >= _MAX_KEPT:
            endpoint.formats.clear()
        endpoint.formats[known] = output
    return output


def _transform_error(endpoint: Endpoint, transform: str, collection: bool, is_watch: bool) -> APIStatusError | None:
    """Return the error for a format that the endpoint lacks; kube-apiserver reports it at the first object."""
    kind, group = endpoint.gvk.kind, endpoint.gvk.group
    if transform == "PartialObjectMetadataList" and (is_watch or not collection):
        if not endpoint.codec.protobuf:
            # The reference treats any custom resource as a list until it looks for items.
            return APIStatusError.unknown("content is not a list")
        return not_a_list(transform, kind, group)
    if transform == "PartialObjectMetadata" and collection and not is_watch:
        list_type = f"*{group.partition('.')[0] or 'core'}.{kind}List" if endpoint.codec.protobuf else _CUSTOM_LIST
        return APIStatusError(
            406, "NotAcceptable", f"you requested {transform}, but the requested object is a list ({list_type})"
        )
    return None


def _negotiate(endpoint: Endpoint, request: KubeRequest, collection: bool) -> Negotiated:
    accept = request.getHeader(b"accept")
    negotiators = endpoint.negotiators(request)
    if request.method == b"DELETE":
        return negotiators.object(accept)
    if not collection:
        negotiate = negotiators.object if endpoint.tables else negotiators.object_without_table
        if endpoint.old_router:
            return negotiate(accept, request.method in _WITH_BODY and not request.getHeader(b"content-length"))
        return negotiate(accept)
    negotiated = negotiators.list(accept)
    return negotiators.watch(accept) if request.info.verb == "watch" else negotiated


def _error_event_encoder(media: str) -> Callable[[JSONObject], bytes]:
    """Return the encoder of ERROR events in a media type."""
    if media == "cbor":
        from .cborencoding import error_item

        return error_item
    return error_frame if media == "protobuf" else error_event


class NotAcceptableEncoder:
    """Encoder of a format that is not available for the objects; raises the error at the first object."""

    def __init__(self, error: APIStatusError, media: str) -> None:
        self._error = error
        self._error_event = _error_event_encoder(media)

    def _raise(self, *_: object) -> NoReturn:
        raise self._error

    #: No encoding is needed.
    stored = True
    encode_object = encode_list = _raise

    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return self._error_event(status)


def _make_encoder(endpoint: Endpoint, media: str, transform: str, version: str, include: str) -> Any:
    encoder: Any
    if transform == "Table":
        encoder = TableEncoder(endpoint, version, include)
    elif transform:
        encoder = PartialEncoder(endpoint, version)
    else:
        encoder = JSONEncoder(endpoint)
    convert: Callable[[Any], Any] | None = YAMLEncoder if media == "yaml" else None
    if media == "cbor":
        # Imported lazily: few servers enable CBOR.
        from .cborencoding import CBOREncoder, CBORTableEncoder

        if transform == "Table":
            convert = CBORTableEncoder
        else:
            encoder = CBOREncoder(encoder, endpoint)
    elif media == "protobuf":
        encoder = ProtobufEncoder(encoder, endpoint, partial=bool(transform))
    if endpoint.traced:
        encoder = TracedEncoder(encoder, "vnd.kubernetes.protobuf" if media == "protobuf" else media)
    return encoder if convert is None else convert(encoder)


def first_query_value(request: KubeRequest, name: str) -> str:
    """Return the first value of a query parameter; C{""} without one."""
    values = request.query.get(name)
    return values[0] if values else ""
