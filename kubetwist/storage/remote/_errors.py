"""The errors of storage as numbers and texts: an error has the same type and the same text in the other process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..errors import (
    CorruptObjectError,
    DecryptionUnavailable,
    FutureRevision,
    InvalidArgument,
    KeyExists,
    KeyNotFound,
    OutcomeUnknown,
    RevisionCompacted,
    RevisionConflict,
    StorageCorrupt,
    StorageError,
    StorageUnavailable,
    StorageUnwritable,
    TransformToStorageError,
    UnknownFormatError,
    WatchFailed,
    WatchInterrupted,
)
from ._frames import ProtocolError

#: Maximum length of a text in an error.
MAX_ERROR_TEXT: Final = 64 << 10


class ErrorFields(NamedTuple):
    """
    An error.

    @ivar code: The type of the error, greater than 0.
    """

    code: int
    first: int = 0
    second: int = 0
    subject: str = ""
    reason: str = ""


class _Type(NamedTuple):
    """The fields of one type of error, and its constructor from these fields."""

    kind: type[Exception]
    fields: Callable[[Any], tuple[int, int, str, str]]
    make: Callable[[ErrorFields], Exception]


def _with_text(kind: type[Exception]) -> _Type:
    return _Type(kind, lambda error: (0, 0, "", str(error)), lambda fields: kind(fields.reason))


def _of_key(kind: Callable[[str, int], Exception]) -> _Type:
    assert isinstance(kind, type)
    return _Type(
        kind, lambda error: (error.revision, 0, error.key, ""), lambda fields: kind(fields.subject, fields.first)
    )


#: The types by code - 1. A type precedes its base classes. Codes are part of the protocol: append only.
_TYPES: Final = (
    _of_key(KeyNotFound),
    _of_key(KeyExists),
    _of_key(RevisionConflict),
    _Type(
        RevisionCompacted,
        lambda error: (error.revision, error.oldest, "", ""),
        lambda fields: RevisionCompacted(fields.first, fields.second),
    ),
    _Type(
        FutureRevision,
        lambda error: (error.asked, error.revision, "", ""),
        lambda fields: FutureRevision(fields.first, fields.second),
    ),
    _with_text(InvalidArgument),
    _Type(WatchInterrupted, lambda error: (0, 0, "", ""), lambda fields: WatchInterrupted()),
    _Type(WatchFailed, lambda error: (0, 0, "", ""), lambda fields: WatchFailed()),
    _Type(
        StorageUnwritable,
        lambda error: (0, 0, error.path, error.reason),
        lambda fields: StorageUnwritable(fields.subject, fields.reason),
    ),
    _with_text(DecryptionUnavailable),
    _with_text(StorageUnavailable),
    _with_text(OutcomeUnknown),
    _with_text(StorageCorrupt),
    _Type(
        CorruptObjectError,
        lambda error: (error.revision, 0, error.key, error.reason),
        lambda fields: CorruptObjectError(fields.subject, fields.reason, fields.first),
    ),
    _with_text(UnknownFormatError),
    _Type(
        TransformToStorageError,
        lambda error: (0, 0, error.key, str(error)),
        lambda fields: TransformToStorageError(fields.subject, fields.reason),
    ),
    _with_text(StorageError),
    _with_text(MemoryError),
)


def error_fields(error: BaseException) -> ErrorFields | None:
    """Return the fields of an error; L{None} if it is none that a storage backend may raise."""
    for index, kind in enumerate(_TYPES):
        if isinstance(error, kind.kind):
            first, second, subject, reason = kind.fields(error)
            return ErrorFields(index + 1, first, second, subject, reason[:MAX_ERROR_TEXT])
    return None


def make_error(fields: ErrorFields) -> Exception:
    """
    Return the error with these fields.

    @raise ProtocolError: Its code is unknown.
    """
    if not 0 < fields.code <= len(_TYPES):
        raise ProtocolError(f"{fields.code} is no error")
    return _TYPES[fields.code - 1].make(fields)
