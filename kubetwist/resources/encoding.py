"""
Encodes results: objects, lists and watch events as JSON, as PartialObjectMetadata, as Table.

Stored objects are JSON already (L{kubetwist.api.record.Record}), so the plain encoder only joins bytes. Data that
other encoders derive from an object is cached in the record's C{views}, or with a watch event, so that it is computed
once and not once per reader.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from ..api.errors import APIStatusError
from ..api.record import (
    Listing,
    Record,
    without_kind,
)
from ..api.resource import JSONObject
from ..http.negotiation import encode_yaml
from ..http.responses import Body
from .slices import Slices, joined_slices, slices

if TYPE_CHECKING:
    from .endpoint import Endpoint

#: An object, stored or created for a response.
Result = Record | JSONObject


class ObjectEncoder(Protocol):
    """Encodes objects and the events of watches."""

    def encode_object(self, result: Result) -> bytes:
        """Encode one object."""

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode the event of a watch."""

    def encode_first_event(self, event_type: str, record: Record) -> bytes:
        """Encode the first event of a watch."""

    def encode_bookmark(self, revision: int, initial_events_end: bool) -> bytes:
        """Encode a bookmark."""


class WatchEncoder(ObjectEncoder, Protocol):
    """Encodes the events of watches."""

    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the event with the reason for the end of a watch."""


class ListEncoder(Protocol):
    """
    Encodes lists.

    @ivar stored: Whether answers consist of the stored bytes of records.
    """

    stored: bool

    def items(self, listing: Listing) -> Slices:
        """Encode the items of a list, in slices."""

    def encode_list(self, listing: Listing, token: str, items: list[bytes] | None = None) -> Body:
        """Encode a list; C{items} are the result of L{items}, and not needed if answers are C{stored} bytes."""


class Encoder(ObjectEncoder, ListEncoder, Protocol):
    """Encodes objects, lists and the events of watches."""


#: Go's encoder ends a JSON document with a line feed, unless the document is indented.
LIST_END: Final = b"]}\n"


def list_body(start: bytes, items: list[bytes], end: bytes) -> Body:
    """Return the parts of a list document; empties C{items}."""
    parts = [start]
    if items:
        with_commas = [b","] * (2 * len(items) - 1)
        with_commas[::2] = items
        parts += with_commas
    parts.append(end)
    return Body(parts)


#: Maximum average size of items, in bytes, that are joined in advance; longer ones are not copied.
MAX_JOINED_ITEM: Final = 8 * 1024
#: Maximum bytes of the items of a list that are joined in advance, in one turn of the reactor.
MAX_JOINED_PER_LIST: Final = 2 << 20


def separated(head: bytes, items: list[bytes]) -> list[Any]:
    """
    Return the parts of the items of a list, each after a comma; the items are not copied.

    @param head: Replaces the first byte of every item, such as C{b'{"kind":"Pod","apiVersion":"v1",'}; C{b""} for none.
    @param items: The items, each beginning with a brace.
    """
    parts: list[Any] = [b"," + head] * (2 * len(items))
    parts[1::2] = [memoryview(item)[1:] for item in items] if head else items
    return parts


class StoredItems:
    """
    The items of lists that consist of the stored bytes of records.

    The items of a block are joined when the block is listed for the second time, and the block keeps the result.
    """

    def __init__(self, head: bytes) -> None:
        """@param head: Replaces the first byte of every item; C{b""} if items do not repeat their kind."""
        self._head = head
        self._form = ("items", head)

    def parts(self, listing: Listing) -> list[Any]:
        """Return the parts of the items, each after a comma."""
        parts: list[Any] = []
        joinable = MAX_JOINED_PER_LIST
        for block in listing.in_blocks():
            joined = block.get(self._form)
            if joined is None:
                items = [record.item for record in block.records]
                size = sum(map(len, items))
                if size > joinable or size > MAX_JOINED_ITEM * len(items) or not block.admits(self._form, size):
                    parts += separated(self._head, items)
                    continue
                joinable -= size
                joined = b"".join(separated(self._head, items))
                block.keep(self._form, joined, len(joined))
            parts.append(joined)
        return parts


def list_meta(listing: Listing, token: str) -> JSONObject:
    """Return the C{metadata} of a list."""
    # Objects that are not stored have no revision.
    meta: JSONObject = {"resourceVersion": str(listing.revision)} if listing.revision else {}
    if token:
        meta["continue"] = token
        if listing.remaining is not None:
            meta["remainingItemCount"] = listing.remaining
    return meta


#: Cost of an encoded item, in the bytes that L{kubetwist.resources.slices} counts.
CACHED_ITEM_COST: Final = 16


class JSONEncoder:
    """
    Encodes complete objects.

    @ivar head: The beginning of an object: C{b'{"kind":"Pod","apiVersion":"v1",'}.
    @ivar stored: Whether answers consist of the stored bytes of records.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.codec = endpoint.codec
        self.stored = not endpoint.codec.converts
        gvk = endpoint.gvk
        self.head = b'{"kind":%b,"apiVersion":%b,' % (orjson.dumps(gvk.kind), orjson.dumps(gvk.api_version))
        self.list_head = b'{"kind":%b,"apiVersion":%b,"metadata":' % (
            orjson.dumps(endpoint.list_kind or f"{gvk.kind}List"),
            orjson.dumps(gvk.api_version),
        )
        self._item_head = self.head if endpoint.list_items_have_kind else b""
        self._stored_items = StoredItems(self._item_head)
        self._zero: bytes | None = None

    @property
    def cheap(self) -> bool:
        """Return whether a record is encoded by joining bytes."""
        return type(self) is JSONEncoder and not self.codec.converts

    def item(self, record: Record) -> bytes:
        """Encode a record without kind and apiVersion, in this version."""
        return self.codec.item(record) if self.codec.converts else record.item

    def value(self, record: Record) -> JSONObject:
        """Return a record as L{item} does, decoded."""
        value: JSONObject = orjson.loads(self.item(record))
        return value

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object."""
        if isinstance(result, Record):
            return self.head + self.item(result)[1:]
        if "kind" in result and not self.codec.converts:
            return orjson.dumps(result)
        return self.head + without_kind(self.codec.from_storage(result))[1:]

    def cost(self, record: Record) -> int:
        """Return the cost of L{item}, in bytes of JSON that it reads."""
        return CACHED_ITEM_COST if self.codec.has_item(record) else len(record.item)

    def items(self, listing: Listing) -> Slices:
        """Return the items of a list, in slices."""
        return slices(listing.records, self.item, self.cost)

    def encode_list(self, listing: Listing, token: str, items: list[bytes] | None = None) -> Body:
        """
        Encode a list; items of built-in kinds do not repeat their kind.

        @param items: The result of L{items}; not needed if answers are L{stored} bytes.
        """
        meta = list_meta(listing, token)
        if self.endpoint.list_items_have_kind:
            meta.setdefault("continue", "")
        start = self.list_head + orjson.dumps(meta) + b',"items":['
        if items is None and self.stored:
            parts = self._stored_items.parts(listing)
        else:
            parts = separated(self._item_head, list(map(self.item, listing.records)) if items is None else items)
        if parts:
            # Without the comma before the first item.
            parts[0] = memoryview(parts[0])[1:]
        return Body([start, *parts, LIST_END])

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode a watch event, with its newline."""
        return b'{"type":"%b","object":%b%b}\n' % (event_type.encode(), self.head, self.item(record)[1:])

    def encode_first_event(self, event_type: str, record: Record) -> bytes:
        """Encode the first event of a watch; it equals L{encode_event} for complete objects."""
        return self.encode_event(event_type, record)

    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return error_event(status)

    def encode_bookmark(self, revision: int, initial_events_end: bool) -> bytes:
        """Encode a bookmark: the zero value of the kind."""
        return b'{"type":"BOOKMARK","object":%b}\n' % orjson.dumps(self.bookmark_object(revision, initial_events_end))

    def bookmark_object(self, revision: int, initial_events_end: bool) -> JSONObject:
        """Return the object in a bookmark."""
        if self._zero is None:
            self._zero = orjson.dumps(self.codec.zero())
        zero = orjson.loads(self._zero)
        annotations = (zero.get("metadata") or {}).get("annotations")
        return {
            "kind": self.endpoint.gvk.kind,
            "apiVersion": self.endpoint.gvk.api_version,
            **zero,
            "metadata": bookmark_meta(revision, initial_events_end, annotations),
        }


def error_event(status: JSONObject) -> bytes:
    """Return the last event of a failed watch, with its newline."""
    return b'{"type":"ERROR","object":%b}\n' % orjson.dumps(status)


def bookmark_meta(revision: int, initial_events_end: bool, annotations: JSONObject | None = None) -> JSONObject:
    """
    Return the metadata of a bookmark.

    @param revision: The resourceVersion.
    @param initial_events_end: Whether the bookmark marks the end of the initial events.
    @param annotations: The annotations in the zero value of the kind.
    """
    meta: JSONObject = {"resourceVersion": str(revision)}
    annotations = {**(annotations or {})}
    if initial_events_end:
        annotations["k8s.io/initial-events-end"] = "true"
    if annotations:
        meta["annotations"] = annotations
    return meta


class PartialEncoder(JSONEncoder):
    """Encodes objects as C{PartialObjectMetadata}: their metadata only."""

    def __init__(self, endpoint: Endpoint, version: str) -> None:
        super().__init__(endpoint)
        self.stored = False
        #: The key of the joined items that a block keeps.
        self._form = object()
        api_version = orjson.dumps(f"meta.k8s.io/{version}")
        self.api_version = f"meta.k8s.io/{version}"
        self.head = b'{"kind":"PartialObjectMetadata","apiVersion":%b,' % api_version
        self.list_head = b'{"kind":"PartialObjectMetadataList","apiVersion":%b,"metadata":' % api_version

    def item(self, record: Record) -> bytes:
        """Encode the record's metadata."""
        return orjson.dumps(self.value(record))

    def value(self, record: Record) -> JSONObject:
        """Return the decoded metadata of a record."""
        # Only custom resources convert metadata.
        item = record.item if self.codec.protobuf else self.codec.item(record)
        return {"metadata": self.codec.metadata(orjson.loads(item))}

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object's metadata."""
        if isinstance(result, Record):
            return self.head + self.item(result)[1:]
        return self.head + orjson.dumps({"metadata": self.codec.metadata(result)})[1:]

    def cost(self, record: Record) -> int:
        """Return the size of the whole record, which is read."""
        return len(record.item)

    def items(self, listing: Listing) -> Slices:
        """Return the items of a list, which repeat their kind, in slices."""
        return joined_slices(listing.in_blocks(), self._form, self._headed, self.cost)

    def _headed(self, record: Record) -> bytes:
        return self.head + self.item(record)[1:]

    def encode_list(self, listing: Listing, token: str, items: list[bytes] | None = None) -> Body:
        """Encode a list; an empty list is null, as in the reference."""
        if not listing.records:
            return Body([self.list_head + orjson.dumps(list_meta(listing, token)) + b',"items":null}\n'])
        start = self.list_head + orjson.dumps(list_meta(listing, token)) + b',"items":['
        return list_body(start, list(map(self._headed, listing.records)) if items is None else items, LIST_END)

    def bookmark_object(self, revision: int, initial_events_end: bool) -> JSONObject:
        """Return the object in a bookmark."""
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": self.api_version,
            "metadata": bookmark_meta(revision, initial_events_end),
        }


class ConvertingEncoder(ABC):
    """Converts another encoder's documents. Callers convert lists themselves, as that may take long."""

    def __init__(self, inner: Encoder) -> None:
        self.inner = inner

    @abstractmethod
    def convert(self, document: bytes) -> bytes:
        """Convert a JSON document."""

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object."""
        return self.convert(self.inner.encode_object(result))


class YAMLEncoder(ConvertingEncoder):
    """Converts another encoder's documents to YAML."""

    def convert(self, document: bytes) -> bytes:
        """Convert a JSON document."""
        return to_yaml(document)

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode a watch event; dashes separate the documents of a stream."""
        return b"---\n" + to_yaml(self.inner.encode_event(event_type, record))

    def encode_first_event(self, event_type: str, record: Record) -> bytes:
        """Encode the first event of a watch."""
        return b"---\n" + to_yaml(self.inner.encode_first_event(event_type, record))

    def encode_bookmark(self, revision: int, initial_events_end: bool) -> bytes:
        """Encode a bookmark."""
        return b"---\n" + to_yaml(self.inner.encode_bookmark(revision, initial_events_end))


def to_yaml(document: bytes) -> bytes:
    """Convert a JSON document to YAML."""
    return encode_yaml(orjson.loads(document))


def not_a_list(transform: str, kind: str, group: str) -> APIStatusError:
    """Return the 406 for a list's view of a single object."""
    internal = group.partition(".")[0] or "core"
    return APIStatusError(
        406,
        "NotAcceptable",
        f"you requested {transform}, but the requested object is not a list (*{internal}.{kind})",
    )
