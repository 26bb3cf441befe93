"""
Encodes objects as Tables: the rows that C{kubectl get} prints.

A row is computed once per object and cached in its record, except for its ages, which depend on the time of the
request: the JSON around them is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import orjson

from ..api.errors import APIStatusError
from ..api.jsonpath import MAX_VISITED, Budget
from ..api.jsontypes import JSONValue
from ..api.record import (
    Listing,
    PlainBlock,
    Record,
    RecordBlock,
    without_kind,
)
from ..api.resource import JSONObject
from ..api.times import posix_now
from ..http.responses import Body
from ..registry.generic.printers.ages import AgeCell, human_age
from . import slices
from .capabilities import table_of
from .encoding import CACHED_ITEM_COST, JSONEncoder, Result, bookmark_meta, error_event, list_body, list_meta
from .slices import Slices, encode_at_once

if TYPE_CHECKING:
    from .endpoint import Endpoint

#: The part of the object that a row contains besides the cells.
INCLUDE_OBJECT_VALUES = ("None", "Metadata", "Object")
#: Maximum number of values that the columns of a custom resource visit in all rows of a response; later cells are null.
MAX_VALUES_PER_REQUEST: Final = 100 * MAX_VISITED
#: Cost of a row besides the JSON that is parsed for it.
ROW_COST: Final = 256
#: Cost of a row that its block keeps.
KEPT_ROW_COST: Final = 2
#: The JSON of a row before its first age, that age, the JSON up to the next one, and all further ages with the JSON
#: after them; then the JSON after the cells, and the end of the metadata in the object's JSON.
_Pieces = tuple[bytes, float | None, bytes, list[tuple[float, bytes]], bytes, int]
#: Maximum size of the cached cells of a row, in bytes; columns may show whole objects.
MAX_CACHED_ROW_SIZE: Final = 16 * 1024


def check_include(text: str) -> str:
    """
    Return the C{includeObject} of a query.

    @raise APIStatusError: The value is invalid (400).
    """
    if not text:
        return "Metadata"
    if text not in INCLUDE_OBJECT_VALUES:
        quoted = orjson.dumps(text).decode()
        raise APIStatusError.bad_request(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"{quoted}: must be 'Metadata', 'Object', 'None', or empty"
        )
    return text


class KeptRows:
    """The joined rows of a block of records, cut at their ages."""

    __slots__ = ("_parts", "_stamps")

    def __init__(self) -> None:
        #: The JSON around the ages, at even places.
        self._parts: list[bytes] = [b""]
        self._stamps: list[float] = []

    def append(self, pieces: _Pieces, end: bytes) -> None:
        """
        Append a row.

        @param pieces: The parts of the row.
        @param end: The JSON of the row from the object on.
        """
        before, stamp, after, other_ages, rest, _ = pieces
        parts = self._parts
        parts[-1] += (b',{"cells":[' if parts[-1] else b'{"cells":[') + before
        if stamp is not None:
            self._cut(stamp, after)
        for stamp, text in other_ages:
            self._cut(stamp, text)
        parts[-1] += rest + end

    def _cut(self, stamp: float, after: bytes) -> None:
        self._stamps.append(stamp)
        self._parts += (b"", after)

    def joined(self, ages: dict[float | None, bytes], now: float) -> bytes:
        """
        Return the rows with their ages.

        @param ages: Texts of ages in this response, by timestamp; missing ones are added.
        @param now: The time, for texts of ages.
        """
        for stamp in self._stamps:
            if stamp not in ages:
                ages[stamp] = human_age(stamp, now).encode()
        parts = self._parts[:]
        parts[1::2] = [ages[stamp] for stamp in self._stamps]
        return b"".join(parts)


class TableEncoder:
    """
    Encodes objects as rows of a C{Table}.

    @ivar version: The version in the group meta.k8s.io.
    @ivar include: One of L{INCLUDE_OBJECT_VALUES}.
    @cvar first_differs: Whether the first event of a watch differs from later ones.
    """

    first_differs: ClassVar[bool] = True

    def __init__(self, endpoint: Endpoint, version: str, include: str) -> None:
        self.endpoint = endpoint
        self.version = version
        self.include = include
        self.plain = JSONEncoder(endpoint)
        table = table_of(endpoint.storage, endpoint.gvk, endpoint.codec.describe)
        self._internal = table.from_stored
        self._row = table.cells
        self._order = table.sort_key
        self._conditions = table.conditions
        # The reference's default converter leaves the slice of rows nil if it is empty.
        self._empty = b"null" if table.null_if_empty else b"[]"
        self._view = ("row", endpoint.gvk)
        #: The key of the rows that a block keeps.
        self._form = object()
        #: Tables never consist of stored bytes alone.
        self.stored = False
        self._columns = orjson.dumps(list(table.columns))
        self._table_head = b'{"kind":"Table","apiVersion":"meta.k8s.io/%b","metadata":' % version.encode()
        self._partial = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b",' % version.encode()

    def _pieces(self, record: Record, budget: Budget | None) -> _Pieces:
        """Return the cached parts of a record: the JSON of its cells around its ages, and the end of its metadata."""
        views = record.views
        if views is None:
            views = record.views = {}
        pieces = views.get(self._view)
        if pieces is None:
            codec = self.plain.codec
            gvk, item = (codec.storage, record.item) if self._internal else (codec.gvk, codec.item(record))
            obj = {"kind": gvk.kind, "apiVersion": gvk.api_version, **orjson.loads(item)}
            cells, complete = self._cells(obj, budget)
            cell_texts = cell_pieces(cells)
            conditions = self._conditions(obj)
            rest = b'],"conditions":%b,"object":' % orjson.dumps(conditions) if conditions else b'],"object":'
            stored = codec.plain_metadata and (self._internal or not codec.converts)
            meta_end = len(b'{"metadata":') + len(orjson.dumps(obj["metadata"])) if stored else 0
            pieces = (*cell_texts, rest, meta_end)
            if complete and len(cell_texts[0]) + len(cell_texts[2]) <= MAX_CACHED_ROW_SIZE:
                views[self._view] = pieces
        return pieces

    def _cells(self, obj: JSONObject, budget: Budget | None) -> tuple[tuple[JSONValue, ...], bool]:
        """
        Return the cells of a row, and whether they are complete and can be cached.

        @param budget: Number of values that the columns of all rows of this response may visit.
        """
        if budget is None or self._internal:
            return tuple(self._row(obj, Budget())), True
        row_budget = Budget(min(MAX_VISITED, max(budget.remaining, 0)))
        granted = row_budget.remaining
        cells = tuple(self._row(obj, row_budget))
        budget.remaining -= granted - max(row_budget.remaining, 0)
        return cells, granted == MAX_VISITED or row_budget.remaining >= 0

    def row(self, record: Record, ages: dict[float | None, bytes], now: float, budget: Budget | None = None) -> bytes:
        """
        Return one row.

        @param ages: Texts of ages in this response, by timestamp.
        @param budget: Number of values that the columns of all rows of this response may visit; L{None} for one row.
        """
        return self._joined(record, self._pieces(record, budget), ages, now)

    def _joined(self, record: Record, pieces: _Pieces, ages: dict[float | None, bytes], now: float) -> bytes:
        """
        Return a row.

        @param record: The record of the row.
        @param pieces: The result of L{_pieces}.
        @param ages: Texts of ages in this response, by timestamp.
        @param now: The time, for texts of ages.
        """
        before, stamp, after, other_ages, rest, meta_end = pieces
        age = ages.get(stamp)
        if age is None:
            age = ages[stamp] = b"" if stamp is None else human_age(stamp, now).encode()
        cells = before + age + after
        for stamp, text in other_ages:
            cells += human_age(stamp, now).encode() + text
        return b'{"cells":[%b%b%b' % (cells, rest, self._row_end(record, meta_end))

    def _row_end(self, record: Record, meta_end: int) -> bytes:
        """Return the JSON of a row from the object on; C{meta_end} is the last of L{_pieces}."""
        if self.include == "None":
            return b"null}"
        if self.include == "Object":
            return self.plain.encode_object(record) + b"}"
        if meta_end:
            meta = record.item[:meta_end][1:]
        else:
            item = record.item if self._internal else self.plain.item(record)
            meta = b'"metadata":' + orjson.dumps(self.plain.codec.metadata(orjson.loads(item)))
        return b"%b%b}}" % (self._partial, meta)

    def table(self, meta: bytes, rows: list[bytes], *, with_columns: bool = True, end: bytes = b"") -> Body:
        """
        Return the document.

        @param end: The text after the rows.
        """
        columns = self._columns if with_columns else b"null"
        head = self._table_head + meta + b',"columnDefinitions":' + columns + b',"rows":'
        if not rows:
            return Body([head + self._empty + b"}" + end])
        return list_body(head + b"[", rows, b"]}" + end)

    def encode_object(self, result: Result) -> bytes:
        """Encode a single object, as a table of one row."""
        record = result if isinstance(result, Record) else self._unstored_record(result)
        meta = b"{}" if not record.revision else b'{"resourceVersion":"%d"}' % record.revision
        return self.table(meta, [self.row(record, {}, posix_now())]).joined()

    def _unstored_record(self, obj: JSONObject) -> Record:
        """Return a record for an object that is not stored, such as the result of a dry run or a subresource."""
        codec = self.plain.codec
        meta = obj.get("metadata") or {}
        key = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
        version = int(meta.get("resourceVersion") or 0)
        if self._internal:
            return Record(key, version, without_kind(obj), {}, {})
        record = Record(key, version, without_kind(codec.from_storage(obj)), {}, {})
        record.views = {codec.gvk: record.item}
        return record

    def _blocks(self, listing: Listing) -> Sequence[RecordBlock]:
        """Return the records in the order of the rows."""
        order = self._order
        if order is None:
            return listing.in_blocks()
        return [PlainBlock(sorted(listing.records, key=lambda record: order(orjson.loads(record.item))))]

    def items(self, listing: Listing) -> Slices:
        """Return the rows of a list, in slices; the rows that a block keeps are one item."""
        join, view, without_metadata = self._joined, self._view, self.include != "Metadata"
        ages: dict[float | None, bytes] = {}
        now, budget = posix_now(), Budget(MAX_VALUES_PER_REQUEST)
        rows: list[bytes] = []
        cost = 0
        for block in self._blocks(listing):
            kept: KeptRows | None = block.get(self._form)
            if kept is not None:
                rows.append(kept.joined(ages, now))
                cost += KEPT_ROW_COST * len(block.records)
                if cost >= slices.MAX_SLICE_COST:
                    yield
                    cost = 0
                continue
            first = len(rows)
            # As L{slices.slices}, inlined: most rows are cached and take a microsecond.
            for record in block.records:
                if cost >= slices.MAX_SLICE_COST:
                    yield
                    cost = 0
                pieces = record.views.get(view) if record.views is not None else None
                if pieces is None:
                    cost += ROW_COST + len(record.item)
                    pieces = self._pieces(record, budget)
                else:
                    cost += CACHED_ITEM_COST if without_metadata or pieces[-1] else len(record.item)
                rows.append(join(record, pieces, ages, now))
            size = sum(map(len, rows[first:]))
            # Rows with objects would be copies of most of the cache.
            if self.include != "Object" and block.admits(self._form, size):
                cost += self._keep(block, size)
        return rows

    def _keep(self, block: RecordBlock, size: int) -> int:
        """
        Let a block keep its rows, unless one of them is not cached.

        @param block: The block.
        @param size: The bytes of the rows.
        @return: The cost, as in L{items}.
        """
        rows = KeptRows()
        for record in block.records:
            pieces = record.views.get(self._view) if record.views is not None else None
            if pieces is None or not (pieces[-1] or self.include == "None"):
                return 0
            rows.append(pieces, self._row_end(record, pieces[-1]))
        block.keep(self._form, rows, size)
        return CACHED_ITEM_COST * len(block.records)

    def encode_list(self, listing: Listing, token: str, items: list[bytes] | None = None) -> Body:
        """
        Encode a list.

        @param items: The result of L{items}.
        """
        rows = encode_at_once(self.items(listing)) if items is None else items
        return self.table(orjson.dumps(list_meta(listing, token)), rows, end=b"\n")

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode a watch event; only the first of a watch has the columns."""
        return self._event(event_type, record, with_columns=False)

    def encode_first_event(self, event_type: str, record: Record) -> bytes:
        """Encode the first event of a watch."""
        return self._event(event_type, record, with_columns=True)

    def _event(self, event_type: str, record: Record, *, with_columns: bool) -> bytes:
        meta = b'{"resourceVersion":"%d"}' % record.revision
        rows = [self.row(record, {}, posix_now())]
        return b'{"type":"%b","object":%b}\n' % (
            event_type.encode(),
            self.table(meta, rows, with_columns=with_columns).joined(),
        )

    def encode_error_event(self, status: JSONObject) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return error_event(status)

    def encode_bookmark(self, revision: int, initial_events_end: bool) -> bytes:
        """Encode a bookmark: a row of blanks."""
        zero = self.plain.bookmark_object(revision, initial_events_end)
        cells = cell_pieces(tuple(self._row(zero, Budget())))
        cell_text = cells[0]
        meta = orjson.dumps(bookmark_meta(revision, initial_events_end))
        if self.include == "None":
            obj = b"null"
        elif self.include == "Object":
            obj = orjson.dumps(zero)
        else:
            obj = b'%b"metadata":%b}' % (self._partial, meta)
        line = b'{"cells":[%b],"object":%b}' % (cell_text, obj)
        head = b'{"resourceVersion":"%d"}' % revision
        return b'{"type":"BOOKMARK","object":%b}\n' % self.table(head, [line], with_columns=False).joined()


def cell_pieces(cells: tuple[JSONValue, ...]) -> tuple[bytes, float | None, bytes, list[tuple[float, bytes]]]:
    """
    Return the JSON of a row's cells, cut at its ages.

    @return: The JSON before the first age, the first age's timestamp (L{None} without an age), the JSON up to the next
        age, and the other ages with the JSON after each.
    """
    texts: list[bytes] = [b""]
    stamps: list[float] = []
    for index, cell in enumerate(cells):
        if index:
            texts[-1] += b","
        if not isinstance(cell, AgeCell):
            texts[-1] += orjson.dumps(cell)
        else:
            texts[-1] += b'"' + cell.before.encode()
            stamps.append(cell.timestamp)
            texts.append(cell.after.encode() + b'"')
    if not stamps:
        return texts[0], None, b"", []
    return texts[0], stamps[0], texts[1], list(zip(stamps[1:], texts[2:], strict=True))
