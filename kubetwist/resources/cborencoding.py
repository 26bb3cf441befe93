"""
Encodes objects, lists and watch events as CBOR (RFC 8949); watches are CBOR sequences (RFC 8742).

L{kubetwist.resources.binaryencoding} keeps encoded objects. Rows of Tables depend on the time of the request, so Tables
are converted as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..api.cbor import ARRAY, MAP, base64_later, collection_head, encode_cbor, encode_item, split_map
from ..api.documents import CBOR_MAGIC
from ..http.responses import Body
from .binaryencoding import BinaryEncoder
from .encoding import ConvertingEncoder, JSONEncoder, PartialEncoder, list_meta

if TYPE_CHECKING:
    from ..api.record import Listing, Record
    from ..api.resource import JSONObject
    from .endpoint import Endpoint


class CBOREncoder(BinaryEncoder):
    """
    Encodes another encoder's documents as CBOR.

    Records keep their map as an item of a list: without C{kind} and C{apiVersion}, unless items repeat them.
    """

    inner: JSONEncoder

    def __init__(self, inner: JSONEncoder, endpoint: Endpoint) -> None:
        head = orjson.loads(inner.head[:-1] + b"}")
        super().__init__(inner, endpoint, ("cbor", endpoint.codec.gvk, head["apiVersion"], head["kind"]))
        self._codec = endpoint.codec
        self._type_entries = split_map(encode_item(head))[1]
        head = orjson.loads(inner.list_head + b"null}")
        self._list_entries = split_map(encode_item({"kind": head["kind"], "apiVersion": head["apiVersion"]}))[1]
        self._is_partial = isinstance(inner, PartialEncoder)
        self._items_have_kind = self._is_partial or endpoint.list_items_have_kind
        self._sets_continue = endpoint.list_items_have_kind and not self._is_partial

    def encode_record(self, record: Record) -> bytes:
        """Encode a record as an item of a list."""
        item = encode_item(self._codec.wrap_byte_fields(self.inner.value(record), base64_later))
        return self._with_kind(item) if self._items_have_kind else item

    def encode_document(self, document: bytes) -> bytes:
        """Encode an object from its JSON."""
        return encode_cbor(self._codec.wrap_byte_fields(orjson.loads(document), base64_later))

    def _with_kind(self, item: bytes) -> bytes:
        size, entries = split_map(item)
        return collection_head(MAP, size + 2) + self._type_entries + entries

    def encode_encoded(self, encoded: bytes) -> bytes:
        """Return the document of an object from the result of L{encode_record}."""
        return CBOR_MAGIC + (encoded if self._items_have_kind else self._with_kind(encoded))

    def encode_list(self, listing: Listing, token: str, items: list[bytes]) -> Body:
        """Encode a list; items of built-in kinds do not repeat their kind."""
        meta = list_meta(listing, token)
        if self._sets_continue:
            meta.setdefault("continue", "")
        start = CBOR_MAGIC + collection_head(MAP, 4) + self._list_entries
        start += encode_item("metadata") + encode_item(meta) + encode_item("items")
        if not items and self._is_partial:
            return Body([start + encode_item(None)])
        return Body([start + collection_head(ARRAY, len(listing.records)), *items])

    def frame(self, event_type: str, document: bytes) -> bytes:
        """Return a watch event with the document of its object."""
        return _event(event_type, document)

    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return error_item(status)


class CBORTableEncoder(ConvertingEncoder):
    """Converts Tables to CBOR."""

    def convert(self, document: bytes) -> bytes:
        """Convert a JSON document."""
        return encode_cbor(orjson.loads(document))

    def _convert_event(self, event: bytes) -> bytes:
        value = orjson.loads(event)
        return _event(value["type"], encode_cbor(value["object"]))

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode a watch event."""
        return self._convert_event(self.inner.encode_event(event_type, record))

    def encode_first_event(self, event_type: str, record: Record) -> bytes:
        """Encode the first event of a watch."""
        return self._convert_event(self.inner.encode_first_event(event_type, record))

    def encode_bookmark(self, revision: int, initial_events_end: bool) -> bytes:
        """Encode a bookmark."""
        return self._convert_event(self.inner.encode_bookmark(revision, initial_events_end))

    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return error_item(status)


def error_item(status: JSONObject) -> bytes:
    """Return the event with the reason for the end of a watch."""
    return _event("ERROR", encode_cbor(status))


_EVENT_START = CBOR_MAGIC + collection_head(MAP, 2) + encode_item("type")


def _event(event_type: str, document: bytes) -> bytes:
    """Return a C{WatchEvent}; the object in it is tagged as CBOR, too."""
    return b"%b%b%b%b" % (_EVENT_START, encode_item(event_type), encode_item("object"), document)
