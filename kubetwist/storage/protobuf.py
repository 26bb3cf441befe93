"""The format of stored values; and batches of values that decode without holding the reactor for long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred

from ..api.documents import CBOR_MAGIC
from ..api.storage import StoredValue
from ..schema.protobuf.codec import MAGIC

if TYPE_CHECKING:
    from ._expiry import Timer

#: Maximum cost of the values that are decoded in one turn of the reactor: a few milliseconds.
MAX_TURN_COST: Final = 8 << 10
#: Number of bytes of JSON that are decoded in the time of one byte of protobuf or CBOR.
_JSON_SPEED: Final = 64
#: The cost of a small value in JSON.
_MIN_COST: Final = 16


def is_protobuf(value: bytes) -> bool:
    """Return whether a stored value is protobuf."""
    return value[:4] == MAGIC


def decode_cost(value: bytes) -> float:
    """Return the cost of decoding a value, in the unit of L{MAX_TURN_COST}: a byte of protobuf."""
    if value[:4] == MAGIC or value.startswith(CBOR_MAGIC):
        return len(value)
    return _MIN_COST + len(value) / _JSON_SPEED


def portions(items: Sequence[StoredValue]) -> Iterator[Sequence[StoredValue]]:
    """Yield the values in batches whose cost is limited by L{MAX_TURN_COST}."""
    begin = 0
    cost = 0.0
    for index, item in enumerate(items):
        cost += decode_cost(item.value)
        if cost >= MAX_TURN_COST:
            yield items[begin : index + 1]
            begin, cost = index + 1, 0.0
    if begin < len(items):
        yield items[begin:]


def yield_to_reactor(clock: Timer) -> Deferred[None]:
    """Return a Deferred that fires after the reactor has run the other pending calls."""
    turn: Deferred[None] = Deferred()
    clock.callLater(0, turn.callback, None)
    return turn
