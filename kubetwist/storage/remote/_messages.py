"""
Messages between a storage process and its front processes: values in, payloads of frames out, and back, without I/O.

Numbers are little endian and have a fixed size; the lengths of texts and values precede them. Values are copied and not
encoded. An event of a front's write refers to the write, since that front still has the value; for the other fronts,
it contains the draft of the object, see L{kubetwist.storage.remote._drafts}.

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

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from ...api.storage import (
    StorageEvent,
    Write,
)
from ...tracing.propagation import RemoteSpanContext
from ._cursor import Cursor, encode_text
from ._drafts import decode_draft, encode_draft
from ._errors import ErrorFields
from ._frames import ProtocolError

#: The version of the protocol. All processes of a server run the same program; another version is refused.
VERSION: Final = 1

#: The prefix of all keys whose changes fronts receive.
WATCHED_PREFIX: Final = "/"

# Kinds of frames.
HELLO: Final = 1
COMMIT: Final = 2
REQUEST: Final = 3
TRACE: Final = 4
WELCOME: Final = 16
EVENTS: Final = 17
LOST: Final = 18
RESULTS: Final = 19
RESPONSE: Final = 20

#: The number of a transaction, the ids of its trace and of its span.
_TRACE: Final = Struct("<I16s8s")

# Flags of a write.
_HAS_VALUE: Final = 1
_HAS_EXPECTED: Final = 2
_HAS_TTL: Final = 4
_UNIQUE: Final = 8
# Flags of an event.
_DELETED: Final = 1
_REFERENCE: Final = 2
#: The version.
_HELLO: Final = Struct("<H")
#: The version, the number of the server, whether it alone writes, the revision, and the revision of the compaction.
_WELCOME: Final = Struct("<HQBqq")
#: The number of the transaction, and the number of its writes.
_TRANSACTION: Final = Struct("<II")
#: Flags, lengths of the key, the value and the draft, expected revision, time to live.
_WRITE: Final = Struct("<BIIIqd")
#: The newest revision, and the revision of the compaction.
_POSITION: Final = Struct("<qq")
#: Flags, length of the key or number of the transaction, length of the value or index of the write; length of the
#: draft, the revision and the previous one.
_EVENT: Final = Struct("<BIIIqq")
#: The number of the transaction, 0 or the code of an error, and the revision or the first number of the error.
_RESULT: Final = Struct("<IBq")
#: The rest of an error: the second number, and the lengths of the texts.
_ERROR: Final = Struct("<qII")


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


class Result(NamedTuple):
    """
    The result of a transaction.

    @ivar revision: The revision, if there is no error.
    """

    number: int
    revision: int
    error: ErrorFields | None = None


# --- beginning


def encode_hello() -> bytes:
    """Encode the first message of a front."""
    return _HELLO.pack(VERSION)


def decode_hello(payload: bytes) -> None:
    """
    Check the first message of a front.

    @raise ProtocolError: It is malformed, or of another version.
    """
    cursor = Cursor(payload)
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
    cursor = Cursor(payload)
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
        draft = encode_draft(write)
        pieces += (_WRITE.pack(flags, len(key), size, len(draft), expected or 0, ttl or 0.0), key, value or b"", draft)
    return b"".join(pieces)


def decode_transactions(payload: bytes) -> list[tuple[int, list[Write]]]:
    """
    Return the numbers and writes of transactions. Encoded drafts are the attachments of the writes.

    @raise ProtocolError: The message is malformed.
    """
    transactions: list[tuple[int, list[Write]]] = []
    cursor = Cursor(payload)
    while not cursor.at_end:
        number, count = cursor.numbers(_TRANSACTION)
        writes: list[Write] = []
        for _ in range(count):
            flags, key_size, size, draft_size, expected, ttl = cursor.numbers(_WRITE)
            key, value, draft = cursor.text(key_size), cursor.data(size), cursor.data(draft_size)
            writes.append(
                Write(
                    key,
                    value if flags & _HAS_VALUE else None,
                    expected if flags & _HAS_EXPECTED else None,
                    ttl if flags & _HAS_TTL else None,
                    draft,
                    bool(flags & _UNIQUE),
                )
            )
        transactions.append((number, writes))
    return transactions


def encode_trace(number: int, context: RemoteSpanContext) -> bytes:
    """
    Encode the span of a transaction.

    @param number: The number of the transaction.
    @param context: The span, which is recorded.
    """
    return _TRACE.pack(number, context.trace_id.to_bytes(16), context.span_id.to_bytes(8))


def decode_trace(payload: bytes) -> tuple[int, RemoteSpanContext]:
    """
    Return the number of a transaction and its span.

    @raise ProtocolError: The message is malformed.
    """
    cursor = Cursor(payload)
    number, trace_id, span_id = cursor.numbers(_TRACE)
    cursor.finish()
    return number, RemoteSpanContext(int.from_bytes(trace_id), int.from_bytes(span_id), True)


def encode_result(result: Result) -> bytes:
    """Encode the result of a transaction; C{RESULTS} has one or several."""
    error = result.error
    if error is None:
        return _RESULT.pack(result.number, 0, result.revision)
    subject, reason = encode_text(error.subject), encode_text(error.reason)
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
    cursor = Cursor(payload)
    while not cursor.at_end:
        number, code, first = cursor.numbers(_RESULT)
        results.append(Result(number, 0, _decode_error(cursor, code, first)) if code else Result(number, first))
    return results


def _decode_error(cursor: Cursor, code: int, first: int) -> ErrorFields:
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
    cursor = Cursor(payload)
    revision, compacted = cursor.numbers(_POSITION)
    cursor.finish()
    return revision, compacted


def encode_event(event: StorageEvent, draft: bytes = b"") -> bytes:
    """
    Encode an event with its value.

    @param draft: The encoded draft of the value, if there is one.
    """
    key, value = event.key.encode(), event.value
    if value is None:
        return _EVENT.pack(_DELETED, len(key), 0, 0, event.revision, event.previous) + key
    head = _EVENT.pack(0, len(key), len(value), len(draft), event.revision, event.previous)
    return b"".join((head, key, value, draft))


def encode_reference(event: StorageEvent, number: int, index: int) -> bytes:
    """
    Encode an event for the front that wrote it.

    @param event: The event.
    @param number: The number of the front's transaction.
    @param index: The index of the write in the transaction.
    """
    return _EVENT.pack(_REFERENCE, number, index, 0, event.revision, event.previous)


def decode_events(payload: bytes, find_write: Callable[[int, int, int], Write]) -> tuple[int, int, list[StorageEvent]]:
    """
    Return the newest revision, the revision of the compaction, and events.

    @param find_write: Returns the write of an event, by the number of its transaction and its index; its third argument
        is the revision of the event. It raises L{ProtocolError}.
    @raise ProtocolError: The message is malformed.
    """
    cursor = Cursor(payload)
    revision, compacted = cursor.numbers(_POSITION)
    events: list[StorageEvent] = []
    while not cursor.at_end:
        flags, key_size, size, draft_size, changed, previous = cursor.numbers(_EVENT)
        if flags & _REFERENCE:
            write = find_write(key_size, size, changed)
            events.append(StorageEvent(write.key, write.value, changed, previous, write.attachment))
        else:
            key, value = cursor.text(key_size), cursor.data(size)
            draft = decode_draft(cursor.data(draft_size), value) if draft_size else None
            events.append(StorageEvent(key, None if flags & _DELETED else value, changed, previous, draft))
    return revision, compacted, events
