"""
Requests of front processes, and the contents of their responses, which depend on the method; without I/O.

See L{kubetwist.storage.remote._messages} for the other messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ...api.storage import (
    PastChange,
    StoredValue,
)
from ._cursor import Cursor, encode_text
from ._errors import ErrorFields
from ._frames import ProtocolError
from ._messages import Result, decode_results, encode_result


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

# Flags of a past change.
_VALUE: Final = 1
_FORMER: Final = 2

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


#: The methods whose response has one part.
SINGLE_PART: Final = frozenset(
    (Method.READ, Method.COMPACT, Method.CLAIM_COMPACTION, Method.CURRENT_REVISION, Method.PROBE_WRITING)
)


class Request(NamedTuple):
    """A call of a method; the meaning of texts and numbers depends on it."""

    number: int
    method: int
    text: str = ""
    second_text: str = ""
    numbers: tuple[int, int, int, int] = (0, 0, 0, 0)


class PagePart(NamedTuple):
    """A part of a page."""

    revision: int
    more: bool
    items: list[StoredValue]


def encode_request(request: Request) -> bytes:
    """Encode a request."""
    text, second_text = encode_text(request.text), encode_text(request.second_text)
    head = _REQUEST.pack(request.number, request.method, *request.numbers, len(text), len(second_text))
    return b"".join((head, text, second_text))


def decode_request(payload: bytes) -> Request:
    """
    Return a request.

    @raise ProtocolError: The message is malformed.
    """
    cursor = Cursor(payload)
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
    number, kind = Cursor(payload).numbers(_RESPONSE)
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
    cursor = Cursor(content)
    number: int = cursor.numbers(_NUMBER)[0]
    cursor.finish()
    return number


def encode_page_head(revision: int, more: bool) -> bytes:
    """Encode the start of a part of a page."""
    return _PAGE.pack(revision, more)


def encode_stored_value(item: StoredValue) -> bytes:
    """Encode a value of a page."""
    key, problem = encode_text(item.key), encode_text(item.problem)
    return b"".join((_STORED.pack(len(key), len(item.value), len(problem), item.revision), key, item.value, problem))


def decode_page_part(content: bytes) -> PagePart:
    """
    Return a part of a page.

    @raise ProtocolError: It is malformed.
    """
    cursor = Cursor(content)
    revision, more = cursor.numbers(_PAGE)
    items: list[StoredValue] = []
    while not cursor.at_end:
        key_size, size, problem_size, written = cursor.numbers(_STORED)
        key, value = cursor.text(key_size), cursor.data(size)
        items.append(StoredValue(key, value, written, cursor.text(problem_size)))
    return PagePart(revision, bool(more), items)


def decode_stored_value(content: bytes) -> StoredValue:
    """
    Return the only value of a page.

    @raise ProtocolError: It is malformed, or not the only one.
    """
    items = decode_page_part(content).items
    if len(items) != 1:
        raise ProtocolError(f"a value is expected, and not {len(items)}")
    return items[0]


def encode_change(change: PastChange) -> bytes:
    """Encode a past change."""
    key, problem = encode_text(change.key), encode_text(change.problem)
    value, former = change.value or b"", change.former or b""
    flags = (_VALUE if change.value is not None else 0) | (_FORMER if change.former is not None else 0)
    head = _CHANGE.pack(flags, len(key), len(value), len(former), len(problem), change.revision)
    return b"".join((head, key, value, former, problem))


def decode_changes(content: bytes) -> tuple[int, list[PastChange]]:
    """
    Return the revision up to which changes are complete, and a part of the changes.

    @raise ProtocolError: It is malformed.
    """
    cursor = Cursor(content)
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
        key = encode_text(text)
        yield _EXPIRATION.pack(len(key), when) + key


def decode_expirations(content: bytes) -> dict[str, float]:
    """
    Return when keys expire.

    @raise ProtocolError: It is malformed.
    """
    cursor = Cursor(content)
    expirations: dict[str, float] = {}
    while not cursor.at_end:
        size, when = cursor.numbers(_EXPIRATION)
        expirations[cursor.text(size)] = when
    return expirations
