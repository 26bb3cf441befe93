"""The corrupt objects of a watch cache: values that exist but cannot be decoded, with the errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

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
        raise CorruptObjectError(item.key, _what_is_wrong(item.value, error), item.revision) from error


def _what_is_wrong(value: bytes, error: Exception) -> str:
    """Return the kind of a decoding error; the text of the error itself may quote the value."""
    if isinstance(error, UnknownFormatError):
        return str(error)
    if value.startswith(b"k8s:enc:"):
        return _ENCRYPTED
    if is_protobuf(value):
        return f"it is damaged protobuf, or of a kind that is stored as JSON ({type(error).__name__})"
    if value.startswith(b"\xd9\xd9\xf7"):
        return "it is encoded as CBOR, and only JSON and protobuf can be read"
    return f"it is damaged ({type(error).__name__})"


class CorruptObjects:
    """
    The unreadable values of one cache. It is true while there are some.

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
        self._found: dict[str, CorruptObjectError] = {}
        self._retry: IDelayedCall | None = None
        self._stopped = False

    def __bool__(self) -> bool:
        return bool(self._found) or self.unavailable is not None

    def replace(self, found: Mapping[str, CorruptObjectError]) -> None:
        """Replace the errors with those of the present state, by key below the prefix."""
        self._found = dict(found)
        self.unavailable = None
        if found:
            self._log.error(
                "{count} of the objects in {prefix} cannot be read; the first: {reason}",
                count=len(found),
                prefix=self._prefix,
                reason=next(iter(found.values())),
            )
            self._later()

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
        skip, before = len(self._prefix), len(self._found)
        for event in events:
            self._found.pop(event.key[skip:], None)
        return len(self._found) < before

    def get(self, key: str) -> CorruptObjectError | None:
        """Return the error of a key below the prefix; L{None} if it has none."""
        return self._found.get(key)

    def list_below(self, prefix: str) -> list[CorruptObjectError]:
        """Return the errors of the keys with a prefix, in order."""
        return [found for key, found in sorted(self._found.items()) if key.startswith(prefix)]

    def any_covered(self, covers: Callable[[str], bool]) -> bool:
        """Return whether C{covers} accepts one of the keys."""
        return any(map(covers, self._found))

    def raise_if_corrupt(self, prefix: str = "", key: str | None = None) -> None:
        """
        Raise if the values are not all readable: the one at C{key}, or all below C{prefix}.

        @raise Exception: One is unreadable; the translated error, by default the L{StorageError}.
        """
        found: StorageError | None = self.unavailable
        if found is None and key is not None:
            found = self._found.get(key)
        elif found is None:
            first = min((one for one in self._found if one.startswith(prefix)), default=None)
            found = None if first is None else self._found[first]
        if found is not None:
            # The same error may be raised often, and would keep the frames of all its tracebacks.
            raise self._translate(found).with_traceback(None)

    def _later(self) -> None:
        if self._retry is None and not self._stopped:
            self._retry = self._clock.callLater(RETRY, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        Deferred.fromCoroutine(self._read_again()).addErrback(
            lambda failure: self._log.failure("reading {prefix} again failed", failure, prefix=self._prefix)
        )

    async def _read_again(self) -> None:
        for key, before in list(self._found.items()):
            try:
                record = await self._read(key)
            except StorageError:
                break  # Most unreadable values have the same error.
            # A key that changed in between is handled by its event.
            if self._found.get(key) is before and record.revision == before.revision:
                del self._found[key]
                self._put(record)
        if self._found:
            self._later()
