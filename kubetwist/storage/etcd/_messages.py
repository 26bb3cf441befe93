"""
The messages of etcd: txaioetcd's operations encoded to protobuf, and responses decoded to txaioetcd's results.

They are encoded and parsed directly, by the numbers of their fields, without the library's JSON and base64.

@see: etcd-io/etcd, C{api/etcdserverpb/rpc.proto}, C{api/mvccpb/kv.proto}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Final

from txaioetcd import (
    Comp,
    CompCreated,
    CompModified,
    CompValue,
    CompVersion,
    Deleted,
    Failed,
    Header,
    KeySet,
    Op,
    OpDel,
    OpGet,
    OpSet,
    Range,
    Revision,
    Status,
    Success,
    Transaction,
)

from ...schema.protobuf.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    encode_varint,
    int64,
    skip,
    varint,
)
from ._errors import ProtocolError
from ._values import EtcdKeyValue, LeaseTimeToLive, WatchEvent, WatchRequest, WatchResponse, range_end

# Fields of responses, by number and wire type.
_HEADER: Final = 1 << 3 | LENGTH
_CLUSTER: Final = 1 << 3 | VARINT
_MEMBER: Final = 2 << 3 | VARINT
_REVISION: Final = 3 << 3 | VARINT
_TERM: Final = 4 << 3 | VARINT
_KV_KEY: Final = 1 << 3 | LENGTH
_KV_CREATED: Final = 2 << 3 | VARINT
_KV_MODIFIED: Final = 3 << 3 | VARINT
_KV_VERSION: Final = 4 << 3 | VARINT
_KV_VALUE: Final = 5 << 3 | LENGTH
_KV_LEASE: Final = 6 << 3 | VARINT
_RANGE_KV: Final = 2 << 3 | LENGTH
_RANGE_COUNT: Final = 4 << 3 | VARINT
_PUT_PREVIOUS: Final = 2 << 3 | LENGTH
_DELETED: Final = 2 << 3 | VARINT
_DELETED_PREVIOUS: Final = 3 << 3 | LENGTH
_TXN_SUCCEEDED: Final = 2 << 3 | VARINT
_TXN_RESPONSE: Final = 3 << 3 | LENGTH
_WATCH_CANCELED: Final = 4 << 3 | VARINT
_WATCH_COMPACTED: Final = 5 << 3 | VARINT
_WATCH_REASON: Final = 6 << 3 | LENGTH
_WATCH_FRAGMENT: Final = 7 << 3 | VARINT
_WATCH_EVENT: Final = 11 << 3 | LENGTH
_EVENT_TYPE: Final = 1 << 3 | VARINT
_EVENT_KV: Final = 2 << 3 | LENGTH
_EVENT_PREVIOUS: Final = 3 << 3 | LENGTH
_LEASE_ID: Final = 2 << 3 | VARINT
_LEASE_TTL: Final = 3 << 3 | VARINT
_LEASE_KEY: Final = 5 << 3 | LENGTH
_STATUS_VERSION: Final = 2 << 3 | LENGTH
_STATUS_SIZE: Final = 3 << 3 | VARINT
_STATUS_LEADER: Final = 4 << 3 | VARINT
_STATUS_INDEX: Final = 5 << 3 | VARINT
_STATUS_TERM: Final = 6 << 3 | VARINT

#: The fields with the ids of cluster and member, at the begin of a header.
_IDS: Final = re.compile(rb"\x08[\x80-\xff]{0,9}[\0-\x7f]\x10[\x80-\xff]{0,9}[\0-\x7f]")

# The values of enumerations.
_RESULTS: Final = {"==": 0, ">": 1, "<": 2, "!=": 3}
_FILTERS: Final = {"NOPUT": 0, "NODELETE": 1}

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


# --- requests


#: The tags of fields of bytes or messages, and of numbers, by the number of the field.
_BYTES_TAGS: Final = [bytes((number << 3 | LENGTH,)) for number in range(16)]
_NUMBER_TAGS: Final = [bytes((number << 3 | VARINT,)) for number in range(16)]


def _bytes_field(number: int, content: bytes) -> bytes:
    """Encode a field of bytes or a message; an empty one, too."""
    return _BYTES_TAGS[number] + encode_varint(len(content)) + content


def _octets(number: int, content: bytes | None) -> bytes:
    """Encode a field of bytes; an empty one is omitted."""
    return _bytes_field(number, content) if content else b""


def _count(number: int, value: int | None) -> bytes:
    """Encode a field with a number or a boolean; zero is omitted."""
    return _NUMBER_TAGS[number] + encode_varint(value) if value else b""


def _encode_keys(keys: KeySet) -> bytes:
    if keys.type == KeySet._SINGLE:
        return _octets(1, keys.key)
    return _octets(1, keys.key) + _octets(2, range_end(keys))


#: The options of C{OpGet} that are numbers or booleans, with their fields in C{RangeRequest}.
_OPTIONS: Final = (
    ("limit", 3),
    ("revision", 4),
    ("serializable", 7),
    ("count_only", 9),
    ("min_mod_revision", 10),
    ("min_create_revision", 12),
    ("max_create_revision", 13),
)


def encode_get(op: OpGet) -> bytes:
    """Encode a request for keys and values."""
    request = _encode_keys(op.key)
    options = vars(op)
    for name, number in _OPTIONS:
        if options[name]:
            request += _count(number, options[name])
    if op.keys_only:
        request += b"\x40\x01"
    if op.sort_order:
        request += _count(5, OpGet.SORT_ORDERS.index(op.sort_order))
    if op.sort_target:
        request += _count(6, OpGet.SORT_TARGETS.index(op.sort_target))
    return request


def encode_set(op: OpSet) -> bytes:
    """Encode a request to write a key."""
    request = _octets(1, op.key) + _octets(2, op.value)
    if op.lease is not None:
        request += _count(3, op.lease.lease_id)
    return request + b"\x20\x01" if op.return_previous else request


def encode_delete(op: OpDel) -> bytes:
    """Encode a request to delete keys."""
    return _encode_keys(op.key) + _count(3, op.return_previous)


#: The encoder of each operation, and its field in C{RequestOp}.
_OPERATIONS: Final[dict[type, tuple[int, Callable[[Any], bytes]]]] = {
    OpGet: (1, encode_get),
    OpSet: (2, encode_set),
    OpDel: (3, encode_delete),
}
_VALUE: Final = 3
#: The target of each comparison, with its attribute.
_TARGETS: Final[dict[type, tuple[int, str]]] = {
    CompVersion: (0, "version"),
    CompCreated: (1, "create_revision"),
    CompModified: (2, "mod_revision"),
    CompValue: (_VALUE, "value"),
}


def _base(known: dict[type, Any], value: object) -> Any:
    """Return the entry of a value's class, or of the class of txaioetcd that it extends."""
    for base in type(value).__mro__:
        if base in known:
            return known[base]
    raise TypeError(f"{type(value).__name__} is no operation or comparison of txaioetcd")


def _encode_comparison(comparison: Comp) -> bytes:
    target, name = _TARGETS.get(type(comparison)) or _base(_TARGETS, comparison)
    value = getattr(comparison, name)
    request = _count(1, _RESULTS[comparison.compare]) + _count(2, target) + _octets(3, comparison.key)
    # The value must be encoded even if it is 0: a comparison without one would not be valid.
    if target == _VALUE:
        return request + _bytes_field(7, value)
    return request + _NUMBER_TAGS[4 + target] + encode_varint(value)


def _encode_operation(number: int, op: Op) -> bytes:
    kind, encode = _OPERATIONS.get(type(op)) or _base(_OPERATIONS, op)
    request = encode(op)
    head = _BYTES_TAGS[kind] + encode_varint(len(request))
    return _BYTES_TAGS[number] + encode_varint(len(head) + len(request)) + head + request


def encode_transaction(txn: Transaction) -> bytes:
    """Encode a transaction."""
    parts = [_bytes_field(1, _encode_comparison(comparison)) for comparison in txn.compare or ()]
    parts += [_encode_operation(2, op) for op in txn.success or ()]
    parts += [_encode_operation(3, op) for op in txn.failure or ()]
    return b"".join(parts)


def encode_watch(request: WatchRequest) -> bytes:
    """
    Encode a request to watch keys.

    Events of one revision are split if they are too large for one message. Progress notifications are not requested:
    old members send them too early.
    """
    filters = bytes(_FILTERS[name] for name in request.filters)
    options = (
        _count(3, request.start_revision) + _octets(5, filters) + _count(6, request.return_previous) + _count(8, 1)
    )
    return _bytes_field(1, _encode_keys(request.keys) + options)


def encode_compaction(revision: int) -> bytes:
    """Encode a request to compact to a revision."""
    return _count(1, revision)


def encode_lease_grant(time_to_live: int, lease_id: int | None) -> bytes:
    """Encode a request for a lease."""
    return _count(1, time_to_live) + _count(2, lease_id)


def encode_lease(lease_id: int, keys: bool = False) -> bytes:
    """
    Encode a request to revoke or refresh a lease, or for the rest of it.

    @param keys: Whether its keys are requested.
    """
    return _count(1, lease_id) + _count(2, keys)


# --- responses


@lru_cache(maxsize=64)
def _read_ids(ids: bytes) -> tuple[int, int]:
    (_, cluster, _), (_, member, _) = scan(ids, 0, len(ids))
    return cluster, member


def _read_header(response: bytes, start: int, stop: int) -> Header:
    cluster = member = revision = term = None
    # The ids of cluster and member are the same in all responses, and long.
    ids = _IDS.match(response, start, stop)
    if ids is not None:
        cluster, member = _read_ids(ids[0])
        start = ids.end()
    for tag, value, _ in scan(response, start, stop):
        if tag == _REVISION:
            revision = value
        elif tag == _CLUSTER:
            cluster = value
        elif tag == _MEMBER:
            member = value
        elif tag == _TERM:
            term = value
    if not revision:
        raise ProtocolError("etcd sent a response without a revision")
    return Header(term, revision, cluster, member)


def read_header(response: bytes) -> Header:
    """
    Return the header of any response, with the revision of the store.

    @raise ProtocolError: It is missing.
    """
    for tag, start, stop in scan(response, 0, len(response)):
        if tag == _HEADER:
            return _read_header(response, start, stop)
    raise ProtocolError("etcd sent a response without a revision")


def _key_value(data: bytes, start: int, stop: int, make: Callable[..., EtcdKeyValue] = EtcdKeyValue) -> Any:
    """Return a key with its value; the fields of deleted keys are incomplete."""
    key = value = version = created = modified = lease = None
    for tag, first, last in scan(data, start, stop):
        if tag == _KV_KEY:
            key = data[first:last]
        elif tag == _KV_CREATED:
            created = first
        elif tag == _KV_MODIFIED:
            modified = first
        elif tag == _KV_VERSION:
            version = first
        elif tag == _KV_VALUE:
            value = data[first:last]
        elif tag == _KV_LEASE:
            lease = int64(first)
    if not key or not modified:
        raise ProtocolError("etcd sent a value without a key, or without a revision")
    return make(key, value, version, created, modified, lease)


def read_range(response: bytes, start: int = 0, stop: int | None = None) -> Range:
    """
    Decode the response to C{OpGet}.

    @raise ProtocolError: It is malformed.
    """
    header, count = None, 0
    values = []
    for tag, value, end in scan(response, start, len(response) if stop is None else stop):
        if tag == _RANGE_KV:
            values.append(_key_value(response, value, end))
        elif tag == _HEADER:
            header = _read_header(response, value, end)
        elif tag == _RANGE_COUNT:
            count = value
    return Range(values, _required(header), count)


def _required(header: Header | None) -> Header:
    if header is None:
        raise ProtocolError("etcd sent a response without a revision")
    return header


def read_set(response: bytes, start: int = 0, stop: int | None = None) -> Revision:
    """
    Decode the response to C{OpSet}.

    @raise ProtocolError: It is malformed.
    """
    header = previous = None
    for tag, value, end in scan(response, start, len(response) if stop is None else stop):
        if tag == _HEADER:
            header = _read_header(response, value, end)
        elif tag == _PUT_PREVIOUS:
            previous = _key_value(response, value, end)
    return Revision(_required(header), previous)


def read_delete(response: bytes, start: int = 0, stop: int | None = None) -> Deleted:
    """
    Decode the response to C{OpDel}.

    @raise ProtocolError: It is malformed.
    """
    header, deleted = None, 0
    previous = []
    for tag, value, end in scan(response, start, len(response) if stop is None else stop):
        if tag == _HEADER:
            header = _read_header(response, value, end)
        elif tag == _DELETED:
            deleted = value
        elif tag == _DELETED_PREVIOUS:
            previous.append(_key_value(response, value, end))
    return Deleted(deleted, _required(header), previous)


#: The decoders of the results of operations in a transaction, by field and wire type.
_RESPONSES: Final[dict[int, Callable[[bytes, int, int], Any]]] = {
    number << 3 | LENGTH: read for number, read in enumerate((read_range, read_set, read_delete), 1)
}


def _read_responses(response: bytes, places: list[tuple[int, int]]) -> Iterator[Any]:
    for start, stop in places:
        for tag, first, last in scan(response, start, stop):
            read = _RESPONSES.get(tag)
            if read is None:
                raise ProtocolError("etcd sent a response that does not match the request")
            yield read(response, first, last)
            break
        else:
            raise ProtocolError("etcd sent a response that does not match the request")


class LazySuccess(Success):  # type: ignore[misc] # txaioetcd has no annotations
    """
    The result of a transaction whose operations were applied.

    The results of operations are decoded when they are read; most callers only need the revision.
    """

    def __init__(self, header: Header, response: bytes, places: list[tuple[int, int]]) -> None:
        """
        @param places: The begin and end of each result of an operation.
        """
        self.header = header
        self._response = response
        self._places = places

    @cached_property
    def responses(self) -> list[Any]:
        """
        Return the results of the operations.

        @raise ProtocolError: They are malformed.
        """
        return list(_read_responses(self._response, self._places))


def read_transaction(response: bytes) -> Success:
    """
    Decode the response to a transaction.

    @raise Failed: Its comparisons do not hold.
    @raise ProtocolError: It is malformed.
    """
    header, succeeded = None, 0
    places = []
    for tag, value, stop in scan(response, 0, len(response)):
        if tag == _HEADER:
            header = _read_header(response, value, stop)
        elif tag == _TXN_SUCCEEDED:
            succeeded = value
        elif tag == _TXN_RESPONSE:
            places.append((value, stop))
    header = _required(header)
    if succeeded:
        return LazySuccess(header, response, places)
    raise Failed(header, list(_read_responses(response, places)))


def read_status(response: bytes) -> Status:
    """
    Decode the status of a member.

    @raise ProtocolError: It is malformed.
    """
    header, version, numbers = None, None, {}
    for tag, value, stop in scan(response, 0, len(response)):
        if tag == _HEADER:
            header = _read_header(response, value, stop)
        elif tag == _STATUS_VERSION:
            version = response[value:stop].decode("utf-8", "replace")
        elif tag & 7 == VARINT:
            numbers[tag] = value
    size, leader, term, index = map(numbers.get, (_STATUS_SIZE, _STATUS_LEADER, _STATUS_TERM, _STATUS_INDEX))
    return Status(version, size, leader, _required(header), term, index)


def read_lease_grant(response: bytes) -> tuple[Header, int, int]:
    """
    Return the header, the time to live in seconds and the id of a granted lease.

    @raise ProtocolError: The message is malformed.
    """
    numbers = {tag: value for tag, value, _ in scan(response, 0, len(response))}
    try:
        return read_header(response), int64(numbers[_LEASE_TTL]), int64(numbers[_LEASE_ID])
    except KeyError:
        raise ProtocolError("etcd sent a lease that cannot be read") from None


def read_lease_time_to_live(response: bytes) -> LeaseTimeToLive:
    """
    Decode the rest of a lease, or its renewal.

    @raise ProtocolError: It is malformed.
    """
    remaining, keys = 0, []
    for tag, value, stop in scan(response, 0, len(response)):
        if tag == _LEASE_TTL:
            remaining = int64(value)
        elif tag == _LEASE_KEY:
            keys.append(response[value:stop])
    return LeaseTimeToLive(read_header(response), remaining, keys)


def read_watch(message: bytes) -> WatchResponse:
    """
    Decode a message of a watch.

    @raise ProtocolError: It is malformed.
    """
    changes: list[WatchEvent] = []
    numbers: dict[int, int] = {}
    reason = ""
    for tag, value, stop in scan(message, 0, len(message)):
        if tag == _WATCH_EVENT:
            changes.append(_event(message, value, stop))
        elif tag == _WATCH_REASON:
            reason = message[value:stop].decode("utf-8", "replace")
        elif tag & 7 == VARINT:
            numbers[tag] = value
    if not numbers and not reason:
        return WatchResponse(changes)
    return WatchResponse(
        changes,
        canceled=bool(numbers.get(_WATCH_CANCELED)),
        partial=bool(numbers.get(_WATCH_FRAGMENT)),
        compacted=numbers.get(_WATCH_COMPACTED, 0),
        reason=reason,
    )


def _event(message: bytes, start: int, stop: int) -> WatchEvent:
    kind, first, last = 0, 0, 0
    previous: EtcdKeyValue | None = None
    for tag, value, end in scan(message, start, stop):
        if tag == _EVENT_KV:
            first, last = value, end
        elif tag == _EVENT_TYPE:
            kind = value
        elif tag == _EVENT_PREVIOUS:
            previous = _key_value(message, value, end)
    event: WatchEvent = _key_value(message, first, last, WatchEvent)
    if kind == 1:
        event.deleted = True
    elif kind:
        raise ProtocolError(f"etcd sent an event of kind {kind}")
    if previous is not None:
        event.previous = previous
    return event
