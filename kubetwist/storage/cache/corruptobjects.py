"""The corrupt objects of a watch cache: values that exist but cannot be decoded, with the errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ...api.documents import CBOR_MAGIC
from ...api.record import Record
from ...api.storage import (
    StorageEvent,
    StoredValue,
)
from .._expiry import Timer
from ..errors import (
    CorruptObjectError,
    ErrorTranslator,
    StorageError,
    UnknownFormatError,
    unchanged,
)
from ..protobuf import is_protobuf

#: Seconds between retries of unreadable values.
RETRY: Final = 10.0

#: The text of the reference where no transformer can decrypt a value.
_ENCRYPTED: Final = "identity transformer tried to read encrypted data"


def record_of(item: StoredValue, decode: Callable[[str, bytes, int], Record], skip: int) -> Record:
    """
    Return the record of a stored value.

    @param skip: The length of the prefix of its key.
    @raise CorruptObjectError: The value cannot be decoded.
    """
    if item.problem:
        raise CorruptObjectError(item.key, item.problem, item.revision)
    try:
        return decode(item.key[skip:], item.value, item.revision)
    except Exception as error:
        raise CorruptObjectError(item.key, _decode_error_message(item.value, error), item.revision) from error


def _decode_error_message(value: bytes, error: Exception) -> str:
    """Return the kind of a decoding error; the text of the error itself may quote the value."""
    if isinstance(error, UnknownFormatError):
        return str(error)
    if value.startswith(b"k8s:enc:"):
        return _ENCRYPTED
    if is_protobuf(value):
        return f"it is damaged protobuf, or of a kind that is stored as JSON ({type(error).__name__})"
    if value.startswith(CBOR_MAGIC):
        return f"it is damaged CBOR, or of a built-in kind, which cannot be read from CBOR ({type(error).__name__})"
    return f"it is damaged ({type(error).__name__})"


class CorruptObjects:
    """
    The corrupt objects of one watch cache. It is true while there are any.

    @ivar unavailable: The error if all values are unreadable; L{None} otherwise.
    """

    _log = Logger()

    def __init__(
        self,
        prefix: str,
        clock: Timer,
        read: Callable[[str], Awaitable[Record]],
        put: Callable[[Record], object],
        translate: ErrorTranslator = unchanged,
    ) -> None:
        """
        @param prefix: The prefix of all keys.
        @param read: Reads a key below the prefix; fails with L{StorageError}.
        @param put: Called with a value that has become readable.
        @param translate: Translates the errors that L{raise_if_corrupt} raises.
        """
        self.unavailable: StorageError | None = None
        self._prefix = prefix
        self._clock = clock
        self._read = read
        self._put = put
        self._translate = translate
        self._errors: dict[str, CorruptObjectError] = {}
        self._retry: IDelayedCall | None = None
        self._stopped = False

    def __bool__(self) -> bool:
        return bool(self._errors) or self.unavailable is not None

    def replace(self, errors: Mapping[str, CorruptObjectError]) -> None:
        """Set the errors of the current state, by key below the prefix."""
        self._errors = dict(errors)
        self.unavailable = None
        if errors:
            self._log.error(
                "{count} of the objects in {prefix} cannot be read; the first: {reason}",
                count=len(errors),
                prefix=self._prefix,
                reason=next(iter(errors.values())),
            )
            self._schedule_retry()

    def stop(self) -> None:
        """Stop the retries."""
        self._stopped = True
        retry, self._retry = self._retry, None
        if retry is not None:
            retry.cancel()

    def written(self, events: Sequence[StorageEvent]) -> bool:
        """
        Forget the errors of these keys: they have new events.

        @return: Whether one of them was unreadable before.
        """
        skip, before = len(self._prefix), len(self._errors)
        for event in events:
            self._errors.pop(event.key[skip:], None)
        return len(self._errors) < before

    def get(self, key: str) -> CorruptObjectError | None:
        """Return the error of a key below the prefix; L{None} if it has none."""
        return self._errors.get(key)

    def list_below(self, prefix: str) -> list[CorruptObjectError]:
        """Return the errors of the keys with a prefix, in order."""
        return [errors for key, errors in sorted(self._errors.items()) if key.startswith(prefix)]

    def any_covered(self, covers: Callable[[str], bool]) -> bool:
        """Return whether C{covers} accepts one of the keys."""
        return any(map(covers, self._errors))

    def raise_if_corrupt(self, prefix: str = "", key: str | None = None) -> None:
        """
        Raise if the values are not all readable: the one at C{key}, or all below C{prefix}.

        @raise Exception: One is unreadable; the translated error, by default the L{StorageError}.
        """
        errors: StorageError | None = self.unavailable
        if errors is None and key is not None:
            errors = self._errors.get(key)
        elif errors is None:
            first = min((one for one in self._errors if one.startswith(prefix)), default=None)
            errors = None if first is None else self._errors[first]
        if errors is not None:
            # The same error may be raised often, and would keep the frames of all its tracebacks.
            raise self._translate(errors).with_traceback(None)

    def _schedule_retry(self) -> None:
        if self._retry is None and not self._stopped:
            self._retry = self._clock.callLater(RETRY, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        Deferred.fromCoroutine(self._read_again()).addErrback(
            lambda failure: self._log.failure("reading {prefix} again failed", failure, prefix=self._prefix)
        )

    async def _read_again(self) -> None:
        for key, before in list(self._errors.items()):
            try:
                record = await self._read(key)
            except StorageError:
                break  # Most unreadable values have the same error.
            # A key that changed in between is handled by its event.
            if self._errors.get(key) is before and record.revision == before.revision:
                del self._errors[key]
                self._put(record)
        if self._errors:
            self._schedule_retry()
