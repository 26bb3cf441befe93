"""
Encodes objects, lists and watch events as protobuf.

Custom resources have a protobuf form of their metadata only. L{kubetwist.resources.binaryencoding} keeps encoded
objects.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Final

import orjson

from ..api.errors import APIStatusError
from ..http.responses import Body
from ..schema.metaprotobuf import encode_protobuf
from ..schema.protobuf.encoding import ENVELOPE_END, envelope, envelope_start
from ..schema.protobuf.wire import LENGTH, WireError, encode_length_delimited, encode_tag, encode_varint
from .binaryencoding import BinaryEncoder
from .encoding import JSONEncoder, list_meta

if TYPE_CHECKING:
    from ..api.record import (
        Listing,
        Record,
    )
    from ..api.resource import JSONObject
    from .endpoint import Endpoint

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
#: Number of bytes of the length before each event.
FRAME_LENGTH_SIZE: Final = 4
#: The tag of the message in its envelope. Items of lists have this tag, or one of equal length.
_RAW_TAG: Final = encode_tag(2, LENGTH)


class ProtobufEncoder(BinaryEncoder):
    """
    Encodes another encoder's documents as protobuf.

    Records keep their message with tag and length: as an item of a list, and as the message in an envelope.
    """

    inner: JSONEncoder

    def __init__(self, inner: JSONEncoder, endpoint: Endpoint, *, partial: bool) -> None:
        """@param partial: Whether the documents have only metadata."""
        head = orjson.loads(inner.head[:-1] + b"}")
        super().__init__(inner, endpoint, ("protobuf", endpoint.codec.gvk, head["apiVersion"], head["kind"]))
        self._codec = endpoint.codec
        self._partial = partial
        self._envelope_start = envelope_start(head["apiVersion"], head["kind"]) + _RAW_TAG
        head = orjson.loads(inner.list_head + b"null}")
        self._list_type: tuple[str, str] = head["apiVersion"], head["kind"]
        # See apimachinery, pkg/apis/meta/v1beta1/generated.proto.
        self._items_first = partial and head["apiVersion"] == "meta.k8s.io/v1beta1"
        self._item_number = 1 if self._items_first else 2

    def _message(self, value: JSONObject) -> bytes:
        """
        Return the message of an object.

        @raise APIStatusError: It nests too deep, or does not match its kind (500).
        """
        try:
            if self._partial:
                meta = self._codec.message(value.get("metadata") or {}, f"{_META}.ObjectMeta")
                return encode_length_delimited(1, meta)
            return self._codec.message(value)
        except WireError as error:
            raise APIStatusError.internal(str(error)) from None

    def encode_record(self, record: Record) -> bytes:
        """Encode a record as an item of a list."""
        return encode_length_delimited(self._item_number, self._message(self.inner.value(record)))

    def encode_document(self, document: bytes) -> bytes:
        """Encode an object from its JSON."""
        value = orjson.loads(document)
        return envelope(value["apiVersion"], value["kind"], self._message(value))

    def encode_encoded(self, encoded: bytes) -> bytes:
        """Return the envelope of an object from the result of L{encode_record}."""
        return b"".join((self._envelope_start, memoryview(encoded)[1:], ENVELOPE_END))

    def encode_list(self, listing: Listing, token: str, items: list[bytes]) -> Body:
        """Encode a list; its items do not repeat their kind."""
        meta = self._codec.message(list_meta(listing, token), f"{_META}.ListMeta")
        if self._items_first:
            parts = [*items, encode_length_delimited(2, meta)]
        else:
            parts = [encode_length_delimited(1, meta), *items]
        start = envelope_start(*self._list_type) + _RAW_TAG + encode_varint(sum(map(len, parts)))
        return Body([start, *parts, ENVELOPE_END])

    def frame(self, event_type: str, document: bytes) -> bytes:
        """Return a C{WatchEvent} behind its length; the object in it has its envelope."""
        return _frame(event_type, document)

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
