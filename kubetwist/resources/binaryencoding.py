"""
What the encoders of binary media types have in common.

They encode objects from the stored JSON. A record keeps the encoded form of an object once a client has asked for it
(L{Record.encodings<kubetwist.api.record.Record.encodings>}), so that the next response only joins bytes, as in JSON.
The cache drops these forms with the version of the object, and when no client has used them for some time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from ..api.errors import APIStatusError
from ..api.record import Record
from ..storage.cache.metrics import KeptEncodings
from ..storage.cache.watchcache import WatchCache
from .encoding import CACHED_ITEM_COST, MAX_JOINED_ITEM, MAX_JOINED_PER_LIST, Encoder, Result

if TYPE_CHECKING:
    from ..api.record import Listing
    from ..api.resource import JSONObject
    from ..http.collaborators import DeferToThread, WorkScheduler
    from ..http.responses import Body
    from .endpoint import Endpoint

#: Maximum bytes of a list's JSON that are encoded per slice, in a few hundred microseconds.
MAX_SLICE_SIZE: Final = 4 * 1024
#: Items of more bytes of JSON are encoded in the computation thread.
LARGE_ITEM: Final = 64 * 1024


class BinaryEncoder(ABC):
    """
    Encodes another encoder's documents in a binary media type.

    @ivar inner: Encodes them in JSON.
    @ivar key: The key of the encoded form in L{Record.encodings}.
    """

    #: Answers never consist of stored bytes.
    stored = False
    #: Most records have an encoded form, so that a watch writes many events at a time.
    cheap = True

    def __init__(self, inner: Encoder, endpoint: Endpoint, key: object) -> None:
        """
        @param inner: The encoder in JSON.
        @param endpoint: The endpoint of the objects.
        @param key: Identifies the form of an object among all forms; endpoints of one kind share it.
        """
        self.inner = inner
        self.key = key
        self._cache = _find_cache(endpoint.storage)

    @abstractmethod
    def encode_record(self, record: Record) -> bytes:
        """
        Encode a record for L{Record.encodings}.

        @raise APIStatusError: It cannot be encoded (500).
        """

    @abstractmethod
    def encode_document(self, document: bytes) -> bytes:
        """
        Encode an object from its JSON.

        @raise APIStatusError: It cannot be encoded (500).
        """

    @abstractmethod
    def encode_encoded(self, encoded: bytes) -> bytes:
        """Return the document of an object from the result of L{encode_record}."""

    @abstractmethod
    def encode_list(self, listing: Listing, token: str, items: list[bytes]) -> Body:
        """
        Encode a list.

        @param items: The encoded items; some of them may be joined.
        """

    @abstractmethod
    def frame(self, event_type: str, document: bytes) -> bytes:
        """Return a watch event with the document of its object."""

    @abstractmethod
    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the ERROR event that ends a watch."""

    def item(self, record: Record) -> bytes:
        """Return the encoded form of a record, which the record keeps if it is in a cache."""
        if self._cache is None:
            return self.encode_record(record)
        encodings = record.encodings
        if encodings is None:
            encodings = record.encodings = KeptEncodings(self._cache.metrics)
        encoded = encodings.get(self.key)
        if encoded is None:
            encoded = encodings[self.key] = self.encode_record(record)
        return encoded

    def _mark_used(self) -> None:
        if self._cache is not None:
            self._cache.encodings.mark_used()

    def is_encoded(self, record: Record) -> bool:
        """Return whether the record has the encoded form already."""
        return record.encodings is not None and self.key in record.encodings

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object."""
        if isinstance(result, Record):
            self._mark_used()
            return self.encode_encoded(self.item(result))
        return self.encode_document(self.inner.encode_object(result))

    def encoded_items(self, listing: Listing) -> list[bytes] | None:
        """
        Return the encoded forms of the records of a list; L{None} unless all of them have one.

        If a block keeps its forms, they are joined.
        """
        self._mark_used()
        key = self.key
        encoded: list[bytes] = []
        joinable = MAX_JOINED_PER_LIST
        for block in listing.in_blocks():
            joined = block.get(key)
            if joined is None:
                try:
                    items = [record.encodings[key] for record in block.records]  # type: ignore[index] # else TypeError
                except (TypeError, KeyError):
                    return None
                size = sum(map(len, items))
                if size > joinable or size > MAX_JOINED_ITEM * len(items) or not block.admits(key, size):
                    encoded += items
                    continue
                joinable -= size
                joined = b"".join(items)
                block.keep(key, joined, size)
            encoded.append(joined)
        return encoded

    async def encode_items(
        self, records: Sequence[Record], scheduler: WorkScheduler | None, defer_to_thread: DeferToThread
    ) -> list[bytes]:
        """
        Encode the items of a list.

        @param records: The items.
        @param scheduler: Schedules slices of the work; L{None} encodes all at once.
        @param defer_to_thread: Runs a function in the computation thread, for large items.
        @raise APIStatusError: An item cannot be encoded (500).
        """
        items: list[bytes] = []
        while (position := len(items)) < len(records):
            record = records[position]
            if len(record.item) > LARGE_ITEM and not self.is_encoded(record):
                items.append(await defer_to_thread(self.item, record))
                continue
            if scheduler is not None and position:
                await scheduler.wait_for_slot()
            self._encode_slice(records, items)
        return items

    def _encode_slice(self, records: Sequence[Record], items: list[bytes]) -> None:
        """Encode the next slice of items, and append them to C{items}."""
        cost, item, is_encoded = 0, self.item, self.is_encoded
        while len(items) < len(records) and cost < MAX_SLICE_SIZE:
            record = records[len(items)]
            if is_encoded(record):
                cost += CACHED_ITEM_COST
            elif cost and len(record.item) > LARGE_ITEM:
                return
            else:
                cost += len(record.item)
            items.append(item(record))

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode a watch event; an ERROR event if the object cannot be encoded."""
        self._mark_used()
        try:
            return self.frame(event_type, self.encode_encoded(self.item(record)))
        except APIStatusError as error:
            return self.encode_error_event(error.status())

    def encode_first_event(self, event_type: str, record: Record) -> bytes:
        """Encode the first event of a watch; it equals L{encode_event}."""
        return self.encode_event(event_type, record)

    def encode_bookmark(self, revision: int, initial_events_end: bool) -> bytes:
        """Encode a bookmark."""
        inner: Any = self.inner
        bookmark = orjson.dumps(inner.bookmark_object(revision, initial_events_end))
        return self.frame("BOOKMARK", self.encode_document(bookmark))


def _find_cache(storage: object) -> WatchCache | None:
    """
    Return the cache of the objects of a storage object, which drops unused forms.

    Without it forms are not kept: storage objects of third parties return records that they may keep.
    """
    for store in (storage, getattr(storage, "store", None)):
        cache = getattr(store, "cache", None)
        if isinstance(cache, WatchCache):
            return cache
    return None
