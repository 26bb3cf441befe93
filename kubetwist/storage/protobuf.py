"""Stored values in protobuf or CBOR: they decode far more slowly than JSON, so that many are decoded in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred

from ..api.documents import CBOR_MAGIC
from ..api.storage import StoredValue
from ..schema.protobuf.codec import MAGIC

if TYPE_CHECKING:
    from ._expiry import Timer

#: Bytes of protobuf that are decoded in one turn of the reactor: a few milliseconds.
DECODE_BATCH_BYTES: Final = 8 << 10


def is_protobuf(value: bytes) -> bool:
    """Return whether a stored value is protobuf."""
    return value[:4] == MAGIC


def portions(items: Sequence[StoredValue]) -> Iterator[Sequence[StoredValue]]:
    """Yield the values in batches that decode without blocking for long: JSON at once, protobuf and CBOR by size."""
    begin = size = 0
    for index, item in enumerate(items):
        if item.value[:4] == MAGIC or item.value.startswith(CBOR_MAGIC):
            size += len(item.value)
            if size >= DECODE_BATCH_BYTES:
                yield items[begin : index + 1]
                begin, size = index + 1, 0
    if begin < len(items):
        yield items[begin:]


def yield_to_reactor(clock: Timer) -> Deferred[None]:
    """Return a Deferred that fires after the reactor has run the other pending calls."""
    turn: Deferred[None] = Deferred()
    clock.callLater(0, turn.callback, None)
    return turn
