"""The handlers that read: get, list, watch."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IReactorTime

from ...api.errors import APIStatusError
from ...api.latency import SERIALIZATION, LatencyTracker
from ...api.listoptions import parse_get_options, parse_list_options
from ...api.options import GetOptions, ListOptions
from ...api.record import (
    Listing,
    Record,
)
from ...api.requestscope import MAX_SIZE_IN_REACTOR, RequestScope
from ...api.resource import GroupResource
from ...api.selectors import parse_field_selector
from ...http.request import KubeRequest
from ...http.responses import Body, pretty, respond_body, respond_object
from ...interfaces import IWatcher
from ...registry.generic.fieldselectors import check_field_selector
from ...registry.generic.reading import continue_token
from ...streams.handshakes import is_websocket
from ..encoding import ConvertingEncoder
from ..endpoint import Endpoint
from ..slices import Slices, first_slice, remaining_slices
from ..traced import TracedReading
from ..views import AnyOutputFormat, BinaryOutputFormat, NotAcceptableEncoder, negotiate_output
from .bodies import PRETTY_IN_REACTOR, PROTOBUF_IN_REACTOR, YAML_IN_REACTOR
from .watch import NotAcceptableWatchStream, WatchFlusher, WatchStream

if TYPE_CHECKING:
    from ..encoding import ListEncoder, Result

_NEWEST = GetOptions()
#: Length of a URL up to which selectors are parsed in the reactor's thread, which takes some milliseconds.
MAX_QUERY_IN_REACTOR = 4096


def check_name(name: str) -> None:
    """
    Reject a name that could be interpreted as a part of a path.

    @raise APIStatusError: The name is empty, C{.} or C{..}, or contains a percent sign (400).
    """
    if not name:
        raise APIStatusError.bad_request("name must be provided")
    if name in (".", "..") or "%" in name:
        reason = "may not contain '%'" if "%" in name else f"may not be '{name}'"
        raise APIStatusError.bad_request(f'Name parameter invalid: "{name}": {reason}')


#: The encoded items of a list; in L{ReadHandlers} C{list} is a method.
Items = list[bytes]


class ReadHandlers:
    """Answers GETs of one endpoint."""

    def __init__(self, endpoint: Endpoint, reactor: IReactorTime, flusher: WatchFlusher) -> None:
        self.endpoint = endpoint
        self._storage = endpoint.storage
        if endpoint.traced:
            self._storage = TracedReading(endpoint.storage, GroupResource(endpoint.info.group, endpoint.info.resource))
        self._reactor = reactor
        self._flusher = flusher

    def get(self, request: KubeRequest, name: str, namespace: str = "") -> Awaitable[None] | None:
        """Handle the GET of one object."""
        endpoint = self.endpoint
        check_name(name)
        output = negotiate_output(endpoint, request, collection=False)
        options = parse_get_options(request.query) if request.query else _NEWEST
        result = self._storage.get(endpoint.scope(request, namespace), name, options)
        if hasattr(result, "__await__"):
            return self._get_async(request, output, result)
        if isinstance(output.encoder, ConvertingEncoder):
            document = output.encoder.inner.encode_object(result)
            return self._respond_converted(request, output, output.encoder, document)
        large = isinstance(result, Record) and len(result.item) > MAX_SIZE_IN_REACTOR
        if large and not isinstance(output, BinaryOutputFormat) and (output.pretty or not output.encoder.stored):
            return self._respond_encoded(request, output, result)
        if (
            isinstance(output, BinaryOutputFormat)
            and isinstance(result, Record)
            and len(result.item) > PROTOBUF_IN_REACTOR
            and not output.encoder.is_encoded(result)
        ):
            return self._respond_encoded(request, output, result)
        respond_object(request, 200, output.encode_object(result), output.content_type)
        return None

    async def _respond_encoded(self, request: KubeRequest, output: AnyOutputFormat, record: Record) -> None:
        body = await self.endpoint.defer_to_thread(output.encode_object, record)
        respond_object(request, 200, body, output.content_type)

    async def _get_async(self, request: KubeRequest, output: AnyOutputFormat, result: Awaitable[Result]) -> None:
        respond_object(request, 200, output.encode_object(await result), output.content_type)

    def list(self, request: KubeRequest, namespace: str = "") -> Awaitable[None] | None:
        """Handle the GET of a collection, or a watch if the query requests one."""
        if request.info.verb == "watch":
            return self.watch(request, namespace)
        output = self._negotiate_collection(request)
        if len(request.uri) > MAX_QUERY_IN_REACTOR:
            return self._list_long_query(request, output, namespace)
        return self._list(request, output, namespace, self.options(request))

    def _negotiate_collection(self, request: KubeRequest) -> AnyOutputFormat:
        """
        Return the format of a list or a watch.

        @raise APIStatusError: No accepted media type is available, or the list options are invalid, if that error has
            precedence.
        """
        try:
            return negotiate_output(self.endpoint, request, collection=True)
        except APIStatusError:
            if self.endpoint.options_first:
                self.options(request)
            raise

    async def _list_long_query(self, request: KubeRequest, output: AnyOutputFormat, namespace: str) -> None:
        """Respond with the list that a long query selects; the query is parsed in a thread."""
        pending = self._list(request, output, namespace, await self.options_async(request))
        if pending is not None:
            await pending

    def _list(
        self, request: KubeRequest, output: AnyOutputFormat, namespace: str, options: ListOptions
    ) -> Awaitable[None] | None:
        endpoint = self.endpoint
        scope = endpoint.scope(request, namespace)
        result = self._storage.list(scope, options)
        if hasattr(result, "__await__"):
            return self._list_async(request, scope, output, result)
        return self.respond_list(request, output, result, continue_token(result, scope, endpoint.namespaced))

    async def _list_async(
        self, request: KubeRequest, scope: RequestScope, output: AnyOutputFormat, result: Awaitable[Listing]
    ) -> None:
        listing = await result
        token = continue_token(listing, scope, self.endpoint.namespaced)
        pending = self.respond_list(request, output, listing, token)
        if pending is not None:
            await pending

    def respond_list(
        self, request: KubeRequest, output: AnyOutputFormat, listing: Listing, token: str
    ) -> Awaitable[None] | None:
        """
        Respond with a list.

        @param output: The negotiated format of the response.
        @param listing: The records.
        @param token: The continue token; C{""} for the last page.
        @return: L{None} after the response was sent; an awaitable if encoding takes longer.
        """
        if isinstance(output, BinaryOutputFormat):
            return self._respond_binary(request, output, listing, token)
        encoder = output.encoder.inner if isinstance(output.encoder, ConvertingEncoder) else output.encoder
        if encoder.stored:
            return self._respond_items(request, output, encoder, listing, token, None)
        generator = encoder.items(listing)
        with LatencyTracker(SERIALIZATION):
            items = first_slice(generator)
        if items is None:
            return self._respond_slices(request, output, encoder, listing, token, generator)
        return self._respond_items(request, output, encoder, listing, token, items)

    async def _respond_slices(
        self,
        request: KubeRequest,
        output: AnyOutputFormat,
        encoder: ListEncoder,
        listing: Listing,
        token: str,
        generator: Slices,
    ) -> None:
        """
        Respond with a list that takes more than one slice.

        @param output: The negotiated format of the response.
        @param encoder: Encodes the list.
        @param listing: The records.
        @param token: The continue token; C{""} for the last page.
        @param generator: The slices after the first.
        """
        items = await remaining_slices(generator, request.site.scheduler)
        pending = self._respond_items(request, output, encoder, listing, token, items)
        if pending is not None:
            await pending

    def _respond_items(
        self,
        request: KubeRequest,
        output: AnyOutputFormat,
        encoder: ListEncoder,
        listing: Listing,
        token: str,
        items: Items | None,
    ) -> Awaitable[None] | None:
        """
        Respond with a list.

        @param output: The negotiated format of the response.
        @param encoder: Encodes the list.
        @param listing: The records.
        @param token: The continue token; C{""} for the last page.
        @param items: The encoded items; L{None} if the response consists of stored bytes.
        """
        if isinstance(output.encoder, ConvertingEncoder):
            document = encoder.encode_list(listing, token, items).joined()
            return self._respond_converted(request, output, output.encoder, document)
        with LatencyTracker(SERIALIZATION):
            body = encoder.encode_list(listing, token, items)
        if output.pretty and body.length > PRETTY_IN_REACTOR:
            return self._respond_pretty(request, output, body.joined())
        if output.pretty:
            body = Body([pretty(body.joined())])
        respond_body(request, 200, body, output.content_type)
        return None

    async def _respond_pretty(self, request: KubeRequest, output: AnyOutputFormat, document: bytes) -> None:
        body = await self.endpoint.defer_to_thread(pretty, document)
        respond_body(request, 200, Body([body]), output.content_type)

    def _respond_binary(
        self, request: KubeRequest, output: BinaryOutputFormat, listing: Listing, token: str
    ) -> Awaitable[None] | None:
        if output.audits_response:
            output.audit_response(output.encoder.inner.encode_list(listing, token).joined())
        items = output.encoder.encoded_items(listing)
        if items is None:
            return self._respond_unencoded(request, output, listing, token)
        self._respond_encoded_items(request, output, listing, token, items)
        return None

    async def _respond_unencoded(
        self, request: KubeRequest, output: BinaryOutputFormat, listing: Listing, token: str
    ) -> None:
        items = await output.encoder.encode_items(
            listing.records, request.site.scheduler, self.endpoint.defer_to_thread
        )
        self._respond_encoded_items(request, output, listing, token, items)

    def _respond_encoded_items(
        self, request: KubeRequest, output: BinaryOutputFormat, listing: Listing, token: str, items: Items
    ) -> None:
        with LatencyTracker(SERIALIZATION):
            body = output.encoder.encode_list(listing, token, items)
        respond_body(request, 200, body, output.content_type)

    async def _respond_converted(
        self, request: KubeRequest, output: AnyOutputFormat, encoder: ConvertingEncoder, document: bytes
    ) -> None:
        small = len(document) <= YAML_IN_REACTOR
        convert = encoder.convert
        converted = convert(document) if small else await self.endpoint.defer_to_thread(convert, document)
        respond_body(request, 200, Body([converted]), output.content_type)

    def options(self, request: KubeRequest) -> ListOptions:
        """
        Return the list options, with a field selector that the kind supports.

        @raise APIStatusError: The query is invalid (400, 422).
        """
        options = parse_list_options(request.query, request.info.verb == "watch", self.endpoint.watch_list)
        if options.field_selector:
            try:
                terms = parse_field_selector(options.field_selector)
                options.fields = check_field_selector(self.endpoint.info, self.endpoint.version.version, terms)
            except ValueError as error:
                raise APIStatusError.bad_request(str(error)) from None
        return options

    async def options_async(self, request: KubeRequest) -> ListOptions:
        """Return L{options}; long queries are parsed in the computation thread."""
        if len(request.uri) <= MAX_QUERY_IN_REACTOR:
            return self.options(request)
        options: ListOptions = await self.endpoint.defer_to_thread(self.options, request)
        return options

    async def watch(self, request: KubeRequest, namespace: str = "", name: str = "") -> None:
        """Handle the watch of a collection or of one object."""
        endpoint = self.endpoint
        output = self._negotiate_collection(request)
        options = await self.options_async(request)
        if not IWatcher.providedBy(endpoint.storage):
            raise APIStatusError.method_not_supported(
                GroupResource(endpoint.info.group, endpoint.info.resource), "watch"
            )
        if name:
            check_name(name)
            options.fields = options.fields or (("metadata.name", name, True),)
            if (
                next((value for field, value, equal in options.fields if equal and field == "metadata.name"), "")
                != name
            ):
                raise APIStatusError.bad_request("fieldSelector metadata.name doesn't match requested name")
        timeout = options.timeout or WatchStream.default_timeout(endpoint.min_request_timeout)
        timeout = max(timeout, 0.0)  # A negative timeout ends the watch at once.
        make = NotAcceptableWatchStream if isinstance(output.encoder, NotAcceptableEncoder) else WatchStream
        if b"upgrade" in request.fields and is_websocket(request.fields):
            from .websocketwatch import WebSocketWatchStream

            make = WebSocketWatchStream
        stream = make(
            request,
            output.encoder,
            output.content_type,
            self._reactor,
            self._flusher,
            bookmarks=options.allow_watch_bookmarks,
            initial_events_end=bool(options.send_initial_events) and options.allow_watch_bookmarks,
            timeout=timeout,
        )
        try:
            handle = await self._storage.watch(endpoint.scope(request, namespace), options, stream)
        except APIStatusError as error:
            if error.code not in (410, 504):
                raise
            # Clients expect these errors in the stream, as an ERROR event.
            stream.open()
            stream.end(error)
            return
        stream.open()
        stream.started(handle)
        if not stream.ended:
            request.register_long_running(stream.end)
