"""
The messages of etcd in every write, read and watch, converted between bytes and values.

They are parsed directly, by the numbers of their fields; rare messages use tables
(L{kubetwist.storage.etcd._descriptors}).

@see: etcd-io/etcd, C{api/etcdserverpb/rpc.proto}, C{api/mvccpb/kv.proto}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from attrs import frozen

from ...api.storage import (
    StoredValue,
    Write,
)
from ...schema.protobuf.fields import (
    count,
    number,
    octets,
)
from ...schema.protobuf.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    skip,
    varint,
)
from ._errors import ProtocolError

_UINT64: Final = (1 << 64) - 1

# Fields of responses, by number and wire type.
_REVISION: Final = 3 << 3 | VARINT
_KV_KEY: Final = 1 << 3 | LENGTH
_KV_CREATED: Final = 2 << 3 | VARINT
_KV_MODIFIED: Final = 3 << 3 | VARINT
_KV_VALUE: Final = 5 << 3 | LENGTH
_HEADER: Final = 1 << 3 | LENGTH
_RANGE_KV: Final = 2 << 3 | LENGTH
_RANGE_MORE: Final = 3 << 3 | VARINT
_TXN_SUCCEEDED: Final = 2 << 3 | VARINT
_TXN_RESPONSE: Final = 3 << 3 | LENGTH
_RESPONSE_RANGE: Final = 1 << 3 | LENGTH
_WATCH_CREATED: Final = 3 << 3 | VARINT
_WATCH_CANCELED: Final = 4 << 3 | VARINT
_WATCH_COMPACTED: Final = 5 << 3 | VARINT
_WATCH_REASON: Final = 6 << 3 | LENGTH
_WATCH_FRAGMENT: Final = 7 << 3 | VARINT
_WATCH_EVENT: Final = 11 << 3 | LENGTH
_EVENT_TYPE: Final = 1 << 3 | VARINT
_EVENT_KV: Final = 2 << 3 | LENGTH
_EVENT_FORMER: Final = 3 << 3 | LENGTH

#: The range of all keys.
FIRST_KEY: Final = b"\0"
#: The encoding in C{Compare} of "equal revisions of the last change", and of "a version greater than 0".
_EQUAL_MODIFIED: Final = b"\x10\x02"
_GREATER_VERSION: Final = b"\x08\x01"

Field = tuple[int, int, int]


def scan(data: bytes, position: int, end: int) -> list[Field]:
    """
    Yield the fields of a message, each as its number and wire type, and its value, or its begin and end.

    @raise ProtocolError: It is malformed.
    """
    found: list[Field] = []
    try:
        while position < end:
            tag = data[position]
            position += 1
            if tag > 127:
                tag, position = varint(data, position - 1)
            form = tag & 7
            if tag < 8:
                raise WireError("a field without a number")
            if form == LENGTH:
                size = data[position]
                position += 1
                if size > 127:
                    size, position = varint(data, position - 1)
                stop = position + size
                if stop > end:
                    raise IndexError
                found.append((tag, position, stop))
                position = stop
            elif form == VARINT:
                value = data[position]
                position += 1
                if value > 127:
                    value, position = varint(data, position - 1)
                found.append((tag, value, 0))
            elif form in (FIXED32, FIXED64):
                position = skip(data, position, end, form)
            else:
                raise WireError(f"a field of form {form}")
        if position > end:
            raise IndexError
    except IndexError:
        raise ProtocolError("etcd sent a message that is cut short") from None
    except WireError as error:
        raise ProtocolError(f"etcd sent what is no message: {error}") from None
    return found


def key_bytes(key: str) -> bytes:
    """Return a key in bytes; the inverse of L{key_text}, also for foreign keys."""
    return key.encode("utf-8", "surrogateescape")


def key_text(key: bytes) -> str:
    """Return a key as text."""
    return key.decode("utf-8", "surrogateescape")


# --- requests


def range_request(
    key: bytes,
    end: bytes = b"",
    *,
    limit: int = 0,
    revision: int = 0,
    keys_only: bool = False,
    serializable: bool = False,
) -> bytes:
    """
    Return a request for keys and values.

    @param end: The end of the range, exclusive; without it, the request is for one key.
    """
    return b"".join(
        (
            octets(1, key),
            octets(2, end),
            count(3, limit),
            count(4, revision),
            count(7, serializable),
            count(8, keys_only),
        )
    )


def transaction(writes: Iterable[Write], lease_of: Callable[[Write], int] = lambda write: 0) -> bytes:
    """
    Return a transaction that writes if all comparisons hold, and else reads the keys.

    The deleted key must exist.

    @param lease_of: The lease of a written key; 0 for none.
    """
    comparisons, operations, lookups = [], [], []
    for write in writes:
        name = octets(1, key_bytes(write.key))
        compared = b"\x1a" + name[1:]
        if write.expected is not None:
            # A target of 0 must be encoded, too: a comparison without a target would not be valid.
            comparisons.append(octets(1, b"%b%b\x30%b" % (_EQUAL_MODIFIED, compared, number(write.expected))))
        if write.value is None:
            if not write.expected:
                comparisons.append(octets(1, b"%b%b\x20\x00" % (_GREATER_VERSION, compared)))
            operations.append(octets(2, octets(3, name)))
        else:
            lease = lease_of(write)
            put = name + octets(2, write.value)
            operations.append(octets(2, octets(2, put + count(3, lease) if lease else put)))
        lookups.append(octets(3, octets(1, name + b"\x40\x01")))
    return b"".join(comparisons + operations + (lookups if comparisons else []))


def watch_request(revision: int, former: bool = False) -> bytes:
    """
    Return a request for all changes of all keys.

    Events of one revision are split if they are too large for one message. Progress notifications are not requested:
    each revision comes with an event, and old members send them too early.

    @param revision: The first wanted revision.
    @param former: Whether the values before each change are wanted.
    """
    options = count(3, revision) + count(6, former) + count(8, 1)
    return octets(1, octets(1, FIRST_KEY) + octets(2, FIRST_KEY) + options)


def compaction_request(revision: int) -> bytes:
    """Return a request to compact to a revision."""
    return count(1, revision)


# --- responses


def _revision(response: bytes, start: int, stop: int) -> int:
    for tag, value, _ in scan(response, start, stop):
        if tag == _REVISION:
            return value
    raise ProtocolError("etcd sent a response without a revision")


def header_revision(response: bytes) -> int:
    """
    Return the revision of the store in the header of any response.

    @raise ProtocolError: It is missing.
    """
    for tag, start, stop in scan(response, 0, len(response)):
        if tag == _HEADER:
            return _revision(response, start, stop)
    raise ProtocolError("etcd sent a response without a revision")


@frozen
class RangeResult:
    """
    The result of a range request.

    @ivar revision: The revision of the store at the read.
    @ivar more: Whether the range has more keys than the limit.
    """

    values: list[StoredValue]
    revision: int
    more: bool


def read_range(response: bytes) -> RangeResult:
    """
    Parse the response to L{range_request}.

    @raise ProtocolError: It is malformed.
    """
    revision, more = 0, 0
    values = []
    for tag, value, stop in scan(response, 0, len(response)):
        if tag == _RANGE_KV:
            key, content, _, modified = _key_value(response, value, stop)
            values.append(StoredValue(key, content, modified))
        elif tag == _HEADER:
            revision = _revision(response, value, stop)
        elif tag == _RANGE_MORE:
            more = value
    if not revision:
        raise ProtocolError("etcd sent a response without a revision")
    return RangeResult(values, revision, bool(more))


def _key_value(data: bytes, start: int, stop: int) -> tuple[str, bytes, int, int]:
    """Return the key, the value, the create revision, and the mod revision."""
    key = value = b""
    created = modified = 0
    for tag, first, last in scan(data, start, stop):
        if tag == _KV_KEY:
            key = data[first:last]
        elif tag == _KV_CREATED:
            created = first
        elif tag == _KV_MODIFIED:
            modified = first
        elif tag == _KV_VALUE:
            value = data[first:last]
    if not key or not modified:
        raise ProtocolError("etcd sent a value without a key, or without a revision")
    return key.decode("utf-8", "surrogateescape"), value, created, modified


@frozen
class TxnResult:
    """
    The result of a transaction.

    @ivar succeeded: Whether all comparisons held; then it is applied.
    @ivar revision: The revision of the store after it.
    @ivar revisions: If it was not applied: the revisions of its keys, in its order; 0 for absent ones.
    """

    succeeded: bool
    revision: int
    revisions: list[int]


def read_outcome(response: bytes) -> TxnResult:
    """
    Parse the response to L{transaction}.

    @raise ProtocolError: It is malformed.
    """
    revision, succeeded = 0, 0
    responses = []
    for tag, value, stop in scan(response, 0, len(response)):
        if tag == _HEADER:
            revision = _revision(response, value, stop)
        elif tag == _TXN_SUCCEEDED:
            succeeded = value
        elif tag == _TXN_RESPONSE:
            responses.append((value, stop))
    if not revision:
        raise ProtocolError("etcd sent a response without a revision")
    if succeeded:
        return TxnResult(True, revision, [])
    return TxnResult(False, revision, [_looked_up(response, start, stop) for start, stop in responses])


def _looked_up(response: bytes, start: int, stop: int) -> int:
    for tag, first, last in scan(response, start, stop):
        if tag == _RESPONSE_RANGE:
            for inner, begin, end in scan(response, first, last):
                if inner == _RANGE_KV:
                    return _key_value(response, begin, end)[3]
            return 0
    raise ProtocolError("etcd sent a response that does not match the request")


@frozen
class WatchEvent:
    """
    An event.

    @ivar value: L{None} for a deletion.
    @ivar created: Whether the key did not exist before.
    @ivar former: The previous value, if it was requested.
    """

    key: str
    value: bytes | None
    revision: int
    created: bool
    former: bytes | None = None


@frozen
class WatchResponse:
    """
    A message of a watch.

    @ivar changes: The events in the order of their revisions.
    @ivar partial: Whether more of these changes follow in the next message.
    @ivar compacted: The oldest revision available, if the watch ended because an older one was requested.
    """

    changes: list[WatchEvent]
    created: bool = False
    canceled: bool = False
    partial: bool = False
    compacted: int = 0
    reason: str = ""


def read_watch(message: bytes) -> WatchResponse:
    """
    Parse a message of a watch.

    @raise ProtocolError: It is malformed.
    """
    changes: list[WatchEvent] = []
    other_fields: list[Field] | None = None
    for field in scan(message, 0, len(message)):
        tag = field[0]
        if tag == _WATCH_EVENT:
            changes.append(_change(message, field[1], field[2]))
        elif tag != _HEADER:
            other_fields = [field] if other_fields is None else [*other_fields, field]
    if other_fields is None:
        return WatchResponse(changes)
    created = canceled = partial = compacted = 0
    reason = ""
    for tag, value, stop in other_fields:
        if tag == _WATCH_CREATED:
            created = value
        elif tag == _WATCH_CANCELED:
            canceled = value
        elif tag == _WATCH_COMPACTED:
            compacted = value
        elif tag == _WATCH_FRAGMENT:
            partial = value
        elif tag == _WATCH_REASON:
            reason = message[value:stop].decode("utf-8", "replace")
    return WatchResponse(changes, bool(created), bool(canceled), bool(partial), compacted, reason)


def _change(message: bytes, start: int, stop: int) -> WatchEvent:
    kind, first, last = 0, 0, 0
    former: bytes | None = None
    for tag, value, end in scan(message, start, stop):
        if tag == _EVENT_KV:
            first, last = value, end
        elif tag == _EVENT_TYPE:
            kind = value
        elif tag == _EVENT_FORMER:
            former = _key_value(message, value, end)[1]
    key, content, created, modified = _key_value(message, first, last)
    if kind == 1:
        return WatchEvent(key, None, modified, False, former)
    if kind:
        raise ProtocolError(f"etcd sent an event of kind {kind}")
    return WatchEvent(key, content, modified, created == modified, former)
