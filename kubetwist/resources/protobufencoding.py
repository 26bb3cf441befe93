"""
Encodes objects, lists and watch events as protobuf, for clients that accept nothing else.

Custom resources have a protobuf form of their metadata only. All are encoded from the stored JSON. The encoded form is
cached with a watch event, for all watches in protobuf, but not with the object, whose memory it would double for few
readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import TYPE_CHECKING, Final

import orjson

from ..api.errors import APIStatusError
from ..http.responses import Body
from ..schema.metaprotobuf import encode_protobuf
from ..schema.protobuf.encoding import ENVELOPE_END, envelope, envelope_start
from ..schema.protobuf.wire import LENGTH, WireError, encode_length_delimited, encode_tag, encode_varint
from .encoding import JSONEncoder, Result, list_meta

if TYPE_CHECKING:
    from ..api.record import (
        Listing,
        Record,
    )
    from ..api.resource import JSONObject
    from ..http.collaborators import DeferToThread, WorkScheduler
    from ..registry.generic.codec import Codec

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
#: Maximum bytes of a list's JSON that are encoded per slice, in a few hundred microseconds.
MAX_SLICE_SIZE: Final = 4 * 1024
#: Items of more bytes of JSON are encoded in the computation thread.
LARGE_ITEM: Final = 64 * 1024
#: Number of bytes of the length before each event.
FRAME_LENGTH_SIZE: Final = 4


class ProtobufEncoder:
    """
    Encodes another encoder's documents as protobuf.

    @ivar inner: Encodes them in JSON.
    """

    #: Answers never consist of stored bytes.
    stored = False

    def __init__(self, inner: JSONEncoder, codec: Codec, *, partial: bool) -> None:
        """@param partial: Whether the documents have only metadata."""
        self.inner = inner
        self._codec = codec
        self._partial = partial
        head = orjson.loads(inner.list_head + b"null}")
        self._list_type: tuple[str, str] = head["apiVersion"], head["kind"]
        # See apimachinery, pkg/apis/meta/v1beta1/generated.proto.
        self._items_first = partial and head["apiVersion"] == "meta.k8s.io/v1beta1"
        self._item_key = encode_tag(1 if self._items_first else 2, LENGTH)
        head = orjson.loads(inner.head[:-1] + b"}")
        self._type: tuple[str, str] = head["apiVersion"], head["kind"]

    def _message(self, value: JSONObject) -> bytes:
        """Return the message of an object."""
        if self._partial:
            return encode_length_delimited(1, self._codec.message(value.get("metadata") or {}, f"{_META}.ObjectMeta"))
        return self._codec.message(value)

    def encode_document(self, document: bytes) -> bytes:
        """
        Encode an object from its JSON.

        @raise APIStatusError: It nests too deep, or does not match its kind (500).
        """
        value = orjson.loads(document)
        try:
            return envelope(value["apiVersion"], value["kind"], self._message(value))
        except WireError as error:
            raise APIStatusError.internal(str(error)) from None

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object."""
        return self.encode_document(self.inner.encode_object(result))

    async def encode_list(
        self,
        listing: Listing,
        token: str,
        scheduler: WorkScheduler | None,
        defer_to_thread: DeferToThread | None = None,
    ) -> Body:
        """
        Encode a list; its items do not repeat their kind.

        @param scheduler: Schedules slices of the work; L{None} encodes all at once.
        @param defer_to_thread: Runs a function in the computation thread, for large items; L{None} encodes them in the
            reactor's thread.
        @raise APIStatusError: An item cannot be encoded (500).
        """
        meta = self._codec.message(list_meta(listing, token), f"{_META}.ListMeta")
        parts = [] if self._items_first else [encode_length_delimited(1, meta)]
        records = listing.records
        position = 0
        while position < len(records):
            if defer_to_thread is not None and len(records[position].item) > LARGE_ITEM:
                position = await defer_to_thread(self._encode_slice, records, position, parts)
                continue
            if scheduler is not None and position:
                await scheduler.wait_for_slot()
            position = self._encode_slice(records, position, parts)
        if self._items_first:
            parts.append(encode_length_delimited(2, meta))
        start = envelope_start(*self._list_type, sum(map(len, parts)))
        return Body([start, *parts, ENVELOPE_END])

    def _encode_slice(self, records: Sequence[Record], begin: int, parts: list[bytes]) -> int:
        """Encode one slice of items from index C{begin}, and append them to C{parts}; return the next index."""
        value, key, end, size = self.inner.value, self._item_key, begin, 0
        while end < len(records) and size < MAX_SLICE_SIZE and (end == begin or len(records[end].item) <= LARGE_ITEM):
            record = records[end]
            end += 1
            size += len(record.item)
            try:
                message = self._message(value(record))
            except WireError as error:
                raise APIStatusError.internal(str(error)) from None
            parts.append(b"%b%b%b" % (key, encode_varint(len(message)), message))
        return end

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode a watch event; an ERROR event if the object cannot be encoded."""
        try:
            message = self._message(self.inner.value(record))
        except WireError as error:
            return self.encode_error_event(APIStatusError.internal(str(error)).status())
        return _frame(event_type, envelope(*self._type, message))

    #: The first event of a watch has no different encoding.
    encode_first_event = encode_event

    def encode_bookmark(self, revision: int, initial_events_end: bool) -> bytes:
        """Encode a bookmark."""
        return _frame(
            "BOOKMARK", self.encode_document(orjson.dumps(self.inner.bookmark_object(revision, initial_events_end)))
        )

    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return error_frame(status)


def error_frame(status: JSONObject) -> bytes:
    """Return the event with the reason for the end of a watch."""
    return _frame("ERROR", encode_protobuf(status))


def _frame(event_type: str, obj: bytes) -> bytes:
    """Return a C{WatchEvent} behind its length; the object in it has its envelope."""
    event = encode_length_delimited(1, event_type.encode()) + encode_length_delimited(
        2, encode_length_delimited(1, obj)
    )
    return pack(">I", len(event)) + event
