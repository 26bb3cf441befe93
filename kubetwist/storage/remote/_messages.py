"""
Messages between a storage process and its front processes: values in, payloads of frames out, and back, without I/O.

Numbers are little endian and have a fixed size; the lengths of texts and values precede them. Values are copied and not
encoded. An event of a front's write refers to the write, since that front still has the value.

A front sends these messages:

 - C{HELLO}: the version of the protocol; the first message.
 - C{COMMIT}: transactions, each with a number.
 - C{REQUEST}: one call of another method, with a number.

The storage process sends these:

 - C{WELCOME}: the response to C{HELLO}. Changes after its revision follow.
 - C{EVENTS}: changes in the order of their revisions, all changes of a revision together, and the newest revision.
 - C{LOST}: the front has not read for too long, and changes up to the revision in this message are left out.
 - C{RESULTS}: the results of transactions. The changes of a transaction precede its result.
 - C{RESPONSE}: the result of a request, in one part or several.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple

from ...api.storage import (
    PastChange,
    StorageEvent,
    StoredValue,
    Write,
)
from ._errors import ErrorFields
from ._frames import ProtocolError

#: The version of the protocol. All processes of a server run the same program; another version is refused.
VERSION: Final = 1

# Kinds of frames.
HELLO: Final = 1
COMMIT: Final = 2
REQUEST: Final = 3
WELCOME: Final = 16
EVENTS: Final = 17
LOST: Final = 18
RESULTS: Final = 19
RESPONSE: Final = 20


class Method(IntEnum):
    """The method of a request."""

    READ = 1
    READ_PAGE = 2
    READ_EVENTS = 3
    READ_CHANGES = 4
    COMPACT = 5
    CLAIM_COMPACTION = 6
    CURRENT_REVISION = 7
    EXPIRATION_TIMES = 8
    PROBE_WRITING = 9


#: The part of a response: another one follows, it is the last one, or an error instead of it.
MORE: Final = 0
LAST: Final = 1
FAILED: Final = 2

# Flags of a write.
_HAS_VALUE: Final = 1
_HAS_EXPECTED: Final = 2
_HAS_TTL: Final = 4
_UNIQUE: Final = 8
# Flags of an event.
_DELETED: Final = 1
_REFERENCE: Final = 2
# Flags of a past change.
_VALUE: Final = 1
_FORMER: Final = 2

#: The version.
_HELLO: Final = Struct("<H")
#: The version, the number of the server, whether it alone writes, the revision, and the revision of the compaction.
_WELCOME: Final = Struct("<HQBqq")
#: The number of the transaction, and the number of its writes.
_TRANSACTION: Final = Struct("<II")
#: Flags, length of the key, length of the value, expected revision, time to live.
_WRITE: Final = Struct("<BIIqd")
#: The newest revision, and the revision of the compaction.
_POSITION: Final = Struct("<qq")
#: Flags, length of the key or number of the transaction, length of the value or index of the write, revisions.
_EVENT: Final = Struct("<BIIqq")
#: The number of the transaction, 0 or the code of an error, and the revision or the first number of the error.
_RESULT: Final = Struct("<IBq")
#: The rest of an error: the second number, and the lengths of the texts.
_ERROR: Final = Struct("<qII")
#: The number of the request, the method, four numbers, the lengths of two texts.
_REQUEST: Final = Struct("<IBqqqqII")
#: The number of the request, and the kind of this part.
_RESPONSE: Final = Struct("<IB")
#: The revision of a page, and whether more values follow it.
_PAGE: Final = Struct("<qB")
#: The lengths of key, value and problem, and the revision.
_STORED: Final = Struct("<IIIq")
#: Flags, the lengths of key, value, previous value and problem, and the revision.
_CHANGE: Final = Struct("<BIIIIq")
_NUMBER: Final = Struct("<q")
#: The length of the key, and the time.
_EXPIRATION: Final = Struct("<Id")


class Welcome(NamedTuple):
    """
    The begin of a connection.

    @ivar instance: A random number of the storage process, at most 64 bits.
    @ivar exclusive: Whether all writes pass the storage process, so that none is in progress after its end.
    @ivar revision: The newest revision.
    @ivar compacted: The revision of the compaction.
    """

    instance: int
    exclusive: bool
    revision: int
    compacted: int


class Request(NamedTuple):
    """A call of a method; the meaning of texts and numbers depends on it."""

    number: int
    method: int
    text: str = ""
    second_text: str = ""
    numbers: tuple[int, int, int, int] = (0, 0, 0, 0)


class Result(NamedTuple):
    """
    The result of a transaction.

    @ivar revision: The revision, if there is no error.
    """

    number: int
    revision: int
    error: ErrorFields | None = None


class PagePart(NamedTuple):
    """A part of a page."""

    revision: int
    more: bool
    items: list[StoredValue]


def _encode_text(text: str) -> bytes:
    # Keys with lone surrogates exist in no store, but may be read.
    return text.encode("utf-8", "surrogatepass")


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a text is not encoded in UTF-8: {error}") from None


class _Cursor:
    """Reads a payload from its start to its end."""

    __slots__ = ("_offset", "payload")

    def __init__(self, payload: bytes, offset: int = 0) -> None:
        self.payload = payload
        self._offset = offset

    def numbers(self, layout: Struct) -> tuple[Any, ...]:
        """
        Read numbers.

        @raise ProtocolError: The payload is too short.
        """
        try:
            found = layout.unpack_from(self.payload, self._offset)
        except struct.error:
            raise ProtocolError("a message is too short") from None
        self._offset += layout.size
        return found

    def data(self, size: int) -> bytes:
        """
        Read bytes.

        @raise ProtocolError: The payload is too short.
        """
        end = self._offset + size
        found = self.payload[self._offset : end]
        if len(found) < size:
            raise ProtocolError("a message is too short")
        self._offset = end
        return found

    def text(self, size: int) -> str:
        """
        Read a text of C{size} bytes.

        @raise ProtocolError: The payload is too short, or this is no text.
        """
        return _decode_text(self.data(size))

    @property
    def at_end(self) -> bool:
        """Return whether everything is read."""
        return self._offset >= len(self.payload)

    def finish(self) -> None:
        """
        Check that everything is read.

        @raise ProtocolError: It is not.
        """
        if not self.at_end:
            raise ProtocolError("a message is too long")


# --- beginning


def encode_hello() -> bytes:
    """Encode the first message of a front."""
    return _HELLO.pack(VERSION)


def decode_hello(payload: bytes) -> None:
    """
    Check the first message of a front.

    @raise ProtocolError: It is malformed, or of another version.
    """
    cursor = _Cursor(payload)
    _check_version(*cursor.numbers(_HELLO))
    cursor.finish()


def encode_welcome(welcome: Welcome) -> bytes:
    """Encode the response to the first message."""
    return _WELCOME.pack(VERSION, *welcome)


def decode_welcome(payload: bytes) -> Welcome:
    """
    Return the response to the first message.

    @raise ProtocolError: The message is malformed, or of another version.
    """
    cursor = _Cursor(payload)
    version, instance, exclusive, revision, compacted = cursor.numbers(_WELCOME)
    _check_version(version)
    cursor.finish()
    return Welcome(instance, bool(exclusive), revision, compacted)


def _check_version(version: int) -> None:
    if version != VERSION:
        raise ProtocolError(f"the peer has version {version} of the protocol, this process version {VERSION}")


# --- writes


def encode_transaction(number: int, writes: Sequence[Write]) -> bytes:
    """
    Encode a transaction; a C{COMMIT} has one or several.

    @param number: The number of the transaction, which its result has.
    @raise UnicodeEncodeError: A key cannot be encoded.
    """
    pieces = [_TRANSACTION.pack(number, len(writes))]
    for write in writes:
        key, value, expected, ttl = write.key.encode(), write.value, write.expected, write.ttl
        flags = _UNIQUE if write.unique else 0
        size = 0
        if value is not None:
            flags |= _HAS_VALUE
            size = len(value)
        if expected is not None:
            flags |= _HAS_EXPECTED
        if ttl is not None:
            flags |= _HAS_TTL
        pieces.append(_WRITE.pack(flags, len(key), size, expected or 0, ttl or 0.0))
        pieces.append(key)
        if size:
            pieces.append(value)  # type: ignore[arg-type]
    return b"".join(pieces)


def decode_transactions(payload: bytes) -> list[tuple[int, list[Write]]]:
    """
    Return the numbers and writes of transactions.

    @raise ProtocolError: The message is malformed.
    """
    transactions: list[tuple[int, list[Write]]] = []
    cursor = _Cursor(payload)
    while not cursor.at_end:
        number, count = cursor.numbers(_TRANSACTION)
        writes: list[Write] = []
        for _ in range(count):
            flags, key_size, size, expected, ttl = cursor.numbers(_WRITE)
            key = cursor.text(key_size)
            value = cursor.data(size)
            writes.append(
                Write(
                    key,
                    value if flags & _HAS_VALUE else None,
                    expected if flags & _HAS_EXPECTED else None,
                    ttl if flags & _HAS_TTL else None,
                    None,
                    bool(flags & _UNIQUE),
                )
            )
        transactions.append((number, writes))
    return transactions


def encode_result(result: Result) -> bytes:
    """Encode the result of a transaction; C{RESULTS} has one or several."""
    error = result.error
    if error is None:
        return _RESULT.pack(result.number, 0, result.revision)
    subject, reason = _encode_text(error.subject), _encode_text(error.reason)
    return b"".join(
        (
            _RESULT.pack(result.number, error.code, error.first),
            _ERROR.pack(error.second, len(subject), len(reason)),
            subject,
            reason,
        )
    )


def decode_results(payload: bytes) -> list[Result]:
    """
    Return the results of transactions.

    @raise ProtocolError: The message is malformed.
    """
    results: list[Result] = []
    cursor = _Cursor(payload)
    while not cursor.at_end:
        number, code, first = cursor.numbers(_RESULT)
        results.append(Result(number, 0, _decode_error(cursor, code, first)) if code else Result(number, first))
    return results


def _decode_error(cursor: _Cursor, code: int, first: int) -> ErrorFields:
    second, subject_size, reason_size = cursor.numbers(_ERROR)
    subject = cursor.text(subject_size)
    return ErrorFields(code, first, second, subject, cursor.text(reason_size))


# --- events


def encode_position(revision: int, compacted: int) -> bytes:
    """Encode the newest revision and the revision of the compaction: the start of C{EVENTS}, or C{LOST}."""
    return _POSITION.pack(revision, compacted)


def decode_position(payload: bytes) -> tuple[int, int]:
    """
    Return the newest revision and the revision of the compaction.

    @raise ProtocolError: The message is malformed.
    """
    cursor = _Cursor(payload)
    revision, compacted = cursor.numbers(_POSITION)
    cursor.finish()
    return revision, compacted


def encode_event(event: StorageEvent) -> bytes:
    """Encode an event with its value."""
    key, value = event.key.encode(), event.value
    if value is None:
        return _EVENT.pack(_DELETED, len(key), 0, event.revision, event.previous) + key
    return b"".join((_EVENT.pack(0, len(key), len(value), event.revision, event.previous), key, value))


def encode_reference(event: StorageEvent, number: int, index: int) -> bytes:
    """
    Encode an event for the front that wrote it.

    @param event: The event.
    @param number: The number of the front's transaction.
    @param index: The index of the write in the transaction.
    """
    return _EVENT.pack(_REFERENCE, number, index, event.revision, event.previous)


def decode_events(payload: bytes, find_write: Callable[[int, int, int], Write]) -> tuple[int, int, list[StorageEvent]]:
    """
    Return the newest revision, the revision of the compaction, and events.

    @param find_write: Returns the write of an event, by the number of its transaction and its index; its third argument
        is the revision of the event. It raises L{ProtocolError}.
    @raise ProtocolError: The message is malformed.
    """
    cursor = _Cursor(payload)
    revision, compacted = cursor.numbers(_POSITION)
    events: list[StorageEvent] = []
    while not cursor.at_end:
        flags, key_size, size, changed, previous = cursor.numbers(_EVENT)
        if flags & _REFERENCE:
            write = find_write(key_size, size, changed)
            events.append(StorageEvent(write.key, write.value, changed, previous, write.attachment))
        else:
            key = cursor.text(key_size)
            value = cursor.data(size)
            events.append(StorageEvent(key, None if flags & _DELETED else value, changed, previous))
    return revision, compacted, events


# --- requests


def encode_request(request: Request) -> bytes:
    """Encode a request."""
    text, second_text = _encode_text(request.text), _encode_text(request.second_text)
    head = _REQUEST.pack(request.number, request.method, *request.numbers, len(text), len(second_text))
    return b"".join((head, text, second_text))


def decode_request(payload: bytes) -> Request:
    """
    Return a request.

    @raise ProtocolError: The message is malformed.
    """
    cursor = _Cursor(payload)
    number, method, first, second, third, fourth, size, second_size = cursor.numbers(_REQUEST)
    text, second_text = cursor.text(size), cursor.text(second_size)
    cursor.finish()
    return Request(number, method, text, second_text, (first, second, third, fourth))


def encode_response(number: int, kind: int, content: bytes) -> bytes:
    """
    Encode a part of a response.

    @param number: The number of the request.
    @param kind: L{MORE}, L{LAST} or L{FAILED}.
    @param content: The content, which depends on the method.
    """
    return _RESPONSE.pack(number, kind) + content


def decode_response(payload: bytes) -> tuple[int, int, bytes]:
    """
    Return the number of the request, the kind of this part, and its content.

    @raise ProtocolError: The message is malformed.
    """
    number, kind = _Cursor(payload).numbers(_RESPONSE)
    if kind > FAILED:
        raise ProtocolError(f"{kind} is no part of a response")
    return number, kind, payload[_RESPONSE.size :]


def encode_failure(error: ErrorFields) -> bytes:
    """Encode the error of a request."""
    return encode_result(Result(0, 0, error))


def decode_failure(content: bytes) -> ErrorFields:
    """
    Return the error of a request.

    @raise ProtocolError: It is malformed.
    """
    results = decode_results(content)
    if len(results) != 1 or results[0].error is None:
        raise ProtocolError("a response has no error")
    return results[0].error


def encode_number(number: int) -> bytes:
    """Encode a response that is a number."""
    return _NUMBER.pack(number)


def decode_number(content: bytes) -> int:
    """
    Return a number.

    @raise ProtocolError: It is malformed.
    """
    cursor = _Cursor(content)
    number: int = cursor.numbers(_NUMBER)[0]
    cursor.finish()
    return number


def encode_page_head(revision: int, more: bool) -> bytes:
    """Encode the start of a part of a page."""
    return _PAGE.pack(revision, more)


def encode_stored_value(item: StoredValue) -> bytes:
    """Encode a value of a page."""
    key, problem = _encode_text(item.key), _encode_text(item.problem)
    return b"".join((_STORED.pack(len(key), len(item.value), len(problem), item.revision), key, item.value, problem))


def decode_page_part(content: bytes) -> PagePart:
    """
    Return a part of a page.

    @raise ProtocolError: It is malformed.
    """
    cursor = _Cursor(content)
    revision, more = cursor.numbers(_PAGE)
    items: list[StoredValue] = []
    while not cursor.at_end:
        key_size, size, problem_size, written = cursor.numbers(_STORED)
        key, value = cursor.text(key_size), cursor.data(size)
        items.append(StoredValue(key, value, written, cursor.text(problem_size)))
    return PagePart(revision, bool(more), items)


def encode_change(change: PastChange) -> bytes:
    """Encode a past change."""
    key, problem = _encode_text(change.key), _encode_text(change.problem)
    value, former = change.value or b"", change.former or b""
    flags = (_VALUE if change.value is not None else 0) | (_FORMER if change.former is not None else 0)
    head = _CHANGE.pack(flags, len(key), len(value), len(former), len(problem), change.revision)
    return b"".join((head, key, value, former, problem))


def decode_changes(content: bytes) -> tuple[int, list[PastChange]]:
    """
    Return the revision up to which changes are complete, and a part of the changes.

    @raise ProtocolError: It is malformed.
    """
    cursor = _Cursor(content)
    (revision,) = cursor.numbers(_NUMBER)
    changes: list[PastChange] = []
    while not cursor.at_end:
        flags, key_size, size, former_size, problem_size, changed = cursor.numbers(_CHANGE)
        key, value, former = cursor.text(key_size), cursor.data(size), cursor.data(former_size)
        changes.append(
            PastChange(
                key,
                value if flags & _VALUE else None,
                changed,
                former if flags & _FORMER else None,
                cursor.text(problem_size),
            )
        )
    return revision, changes


def encode_expirations(expirations: Mapping[str, float]) -> Iterable[bytes]:
    """Encode when keys expire, one piece for each key."""
    for text, when in expirations.items():
        key = _encode_text(text)
        yield _EXPIRATION.pack(len(key), when) + key


def decode_expirations(content: bytes) -> dict[str, float]:
    """
    Return when keys expire.

    @raise ProtocolError: It is malformed.
    """
    cursor = _Cursor(content)
    expirations: dict[str, float] = {}
    while not cursor.at_end:
        size, when = cursor.numbers(_EXPIRATION)
        expirations[cursor.text(size)] = when
    return expirations
