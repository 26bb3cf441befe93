"""
A store with encrypted values: wraps another store, and shows its content as plain text.

Values that this process writes are not decrypted again: the plain value is passed with the write to the watches. Values
with a key in a key management service are decrypted in order, and only their readers wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from twisted.internet.defer import Deferred, DeferredList, fail
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import alsoProvides, implementer

from ...api.record import Draft
from ...api.storage import (
    History,
    Page,
    PastChange,
    StorageEvent,
    StoredValue,
    Write,
)
from ...interfaces import (
    IStaleFormatDetector,
    IStorageBackend,
    IStorageHistory,
    IStorageObserver,
    IStorageWatch,
    IStorageWrapper,
)
from ..errors import (
    CorruptObjectError,
    DecryptionUnavailable,
    InvalidArgument,
    StorageUnavailable,
    TransformToStorageError,
)
from ..worker import (
    ThreadedReactor,
    Worker,
)
from ._ciphers import (
    TransformError,
    TransformUnavailable,
)
from ._envelope import (
    DEKFetcher,
    DEKSource,
    MissingKey,
)
from ._transformers import (
    IDENTITY,
    Plain,
    Transformer,
)

#: Bytes that are decrypted in the reactor's thread in one turn; more are decrypted in another thread.
INLINE_DECRYPT_BYTES: Final = 64 * 1024
#: Maximum number of directories whose transformers are cached; there is one per resource and namespace.
CACHE_SIZE: Final = 10_000
#: Maximum number of fetches of a key that is dropped from the cache before its use.
_ATTEMPTS: Final = 3


class Encryption(Protocol):
    """Returns the transformers of values."""

    def transformer(self, key: str) -> Transformer | None:
        """Return the transformer of the value at a key; L{None} for values stored in plain text."""

    async def start(self) -> None:
        """Start, before the first read."""

    def stop(self) -> None:
        """Stop, after the last write."""


class _PlainAttachment(NamedTuple):
    """An attachment: the plain value, and the attachment of the writer."""

    value: bytes
    attachment: object


@implementer(IStorageWrapper, IStaleFormatDetector)
class EncryptedStorage:
    """
    L{IStorageBackend} over another one.

    @ivar inner: See L{IStorageWrapper}.
    """

    def __init__(self, inner: IStorageBackend, encryption: Encryption, reactor: ThreadedReactor) -> None:
        self.inner = inner
        if IStorageHistory.providedBy(inner):
            alsoProvides(self, IStorageHistory)
        self._encryption = encryption
        self._reactor = reactor
        self._worker: Worker | None = None
        self._closed = False
        self._transformers: dict[str, Transformer | None] = {}
        #: Watches that wait for keys.
        self._late_watches: set[_Watch] = set()

    @property
    def revision(self) -> int:
        """See L{IStorageBackend.revision}."""
        return self.inner.revision

    @property
    def compacted(self) -> int:
        """See L{IStorageBackend.compacted}."""
        return self.inner.compacted

    @property
    def shared(self) -> bool:
        """See L{IStorageBackend.shared}."""
        return self.inner.shared

    # --- start and stop

    async def open(self) -> None:
        """See L{IStorageBackend.open}."""
        await self.inner.open()
        try:
            await self._encryption.start()
        except BaseException:
            await self.inner.close()
            raise

    async def close(self) -> None:
        """See L{IStorageBackend.close}."""
        self._closed = True
        await self.inner.close()
        self._encryption.stop()
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.stop()

    def changed(self) -> None:
        """Use new transformers for later writes."""
        self._transformers.clear()

    async def compact(self, revision: int) -> None:
        """See L{IStorageBackend.compact}."""
        await self.inner.compact(revision)

    # --- writing

    def commit(self, writes: Sequence[Write]) -> Deferred[int]:
        """See L{IStorageBackend.commit}."""
        try:
            encrypted = [self._encrypt(write) for write in writes]
        except (InvalidArgument, TransformToStorageError) as error:
            return fail(error)
        result: Deferred[int] = self.inner.commit(encrypted)
        return result.addBoth(self._after_late_watches, writes)

    def _encrypt(self, write: Write) -> Write:
        value, key = write.value, write.key
        if value is None:
            return write
        transformer = self.transformer(key)
        if transformer is None:
            return write
        try:
            authenticated_data = key.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"a key cannot be encoded: {error}") from None
        try:
            data = transformer.encrypt(value, authenticated_data)
        except TransformError as error:
            raise TransformToStorageError(key, str(error)) from None
        if data is value:
            return write
        return Write(key, data, write.expected, write.ttl, _PlainAttachment(value, write.attachment), write.unique)

    def _after_late_watches(self, result: Any, writes: Sequence[Write]) -> Any:
        """Return a result after the watches that wait for keys of earlier values have delivered them."""
        if not self._late_watches:
            return result
        keys = [write.key for write in writes]
        waits = [
            watch.when_delivered() for watch in self._late_watches if any(key.startswith(watch.prefix) for key in keys)
        ]
        if not waits:
            return result
        return DeferredList(waits).addCallback(lambda _: result)

    def transformer(self, key: str) -> Transformer | None:
        """Return the transformer of the value at a key."""
        directory = key[: key.rfind("/") + 1]
        try:
            return self._transformers[directory]
        except KeyError:
            if len(self._transformers) >= CACHE_SIZE:
                self._transformers.clear()
            found = self._transformers[directory] = self._encryption.transformer(key)
            return found

    # --- reading

    async def read(self, key: str) -> StoredValue:
        """See L{IStorageBackend.read}."""
        found: StoredValue = await self.inner.read(key)
        plain = await self._decrypt_value(found.key, found.value, found.revision)
        return found if plain is None else StoredValue(found.key, plain.value, found.revision)

    async def is_stale(self, key: str) -> bool:
        """See L{IStaleFormatDetector.is_stale}."""
        if self.transformer(key) in (None, IDENTITY):
            return False  # Most resources have no rule, and there is one form only.
        found: StoredValue = await self.inner.read(key)
        plain = await self._decrypt_value(found.key, found.value, found.revision)
        return plain is not None and plain.stale

    async def _decrypt_value(self, key: str, data: bytes, revision: int) -> Plain | None:
        """
        Return the decrypted value; L{None} for values stored in plain text.

        @raise CorruptObjectError: It cannot be decrypted.
        """
        transformer = self.transformer(key)
        if transformer is None:
            return None
        authenticated_data = key.encode()
        try:
            for _ in range(_ATTEMPTS):
                try:
                    return transformer.decrypt(data, authenticated_data)
                except MissingKey as missing:
                    missing_key = missing
                await missing_key.fetch()
        except TransformError as error:
            raise CorruptObjectError(key, str(error), revision) from None
        raise CorruptObjectError(key, "its key was forgotten before it was used", revision)

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        See L{IStorageBackend.read_page}.

        @param prefix: The prefix of the keys.
        @param start: The first key to read; C{""} begins with the prefix.
        @param limit: Maximum number of values; 0 for all.
        @param revision: The revision to read at; 0 for the newest.
        """
        page: Page = await self.inner.read_page(prefix, start=start, limit=limit, revision=revision)
        items = await self._decrypt_values(page.items)
        return page if items is page.items else Page(items, page.revision, page.more)

    async def _decrypt_values(self, encrypted: list[StoredValue]) -> list[StoredValue]:
        """
        Decrypt values.

        @raise DecryptionUnavailable: The key management service does not respond.
        """
        transformers = [self.transformer(item.key) for item in encrypted]
        if not any(transformers):
            return encrypted
        failed: dict[tuple[DEKFetcher, DEKSource], str] = {}
        for _ in range(_ATTEMPTS):
            items, missing = await self._decrypt_all(encrypted, transformers, failed)
            if not missing:
                return items
            await _fetch(missing, failed)
        raise DecryptionUnavailable("keys were forgotten before they were used")

    async def read_changes(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        See L{IStorageHistory.read_changes}; provided where the store below provides it.

        @param prefix: The prefix of the keys.
        @param after: The revision after which changes are read.
        @param until: The last revision to read, greater than C{after}.
        @param max_changes: Approximate maximum number of changes.
        @param max_bytes: Approximate maximum size of their values, in bytes.
        """
        history = await IStorageHistory(self.inner).read_changes(prefix, after, until, max_changes, max_bytes)
        encrypted = [
            StoredValue(change.key, value, change.revision)
            for change in history.changes
            for value in (change.value, change.former)
            if value is not None
        ]
        plain = await self._decrypt_values(encrypted)
        if plain is encrypted:
            return history
        decrypted = iter(plain)
        changes = []
        for change in history.changes:
            value = None if change.value is None else next(decrypted)
            former = None if change.former is None else next(decrypted)
            problem = (value.problem if value else "") or (former.problem if former else "")
            changes.append(
                PastChange(
                    change.key,
                    None if value is None else value.value,
                    change.revision,
                    None if former is None else former.value,
                    problem,
                )
            )
        return History(changes, history.revision)

    async def _decrypt_all(
        self,
        items: Sequence[StoredValue],
        transformers: Sequence[Transformer | None],
        failed: Mapping[tuple[DEKFetcher, DEKSource], str],
    ) -> tuple[list[StoredValue], _Missing]:
        if sum(len(item.value) for item in items) <= INLINE_DECRYPT_BYTES:
            return _decrypt_all(items, transformers, failed)
        if self._closed:
            raise StorageUnavailable("the store is closed")
        worker = self._worker
        if worker is None:
            worker = self._worker = Worker("kubetwist decrypts", self._reactor)
            worker.start()
        return await worker.run(lambda: _decrypt_all(items, transformers, failed))

    # --- watching

    async def watch(self, prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """See L{IStorageBackend.watch}."""
        watch = _Watch(self, prefix, observer)
        await watch.begin(revision)
        return watch


_Missing = dict[tuple[DEKFetcher, DEKSource], MissingKey]


def _decrypt_all(
    items: Sequence[StoredValue],
    transformers: Sequence[Transformer | None],
    failed: Mapping[tuple[DEKFetcher, DEKSource], str],
) -> tuple[list[StoredValue], _Missing]:
    """
    Decrypt many values, in any thread.

    @param failed: The errors of keys that cannot be fetched.
    @return: The values, and the keys that must be fetched first.
    @raise DecryptionUnavailable: No value of one provider can be decrypted now.
    """
    found: list[StoredValue] = []
    missing: _Missing = {}
    for item, transformer in zip(items, transformers, strict=True):
        if transformer is None:
            found.append(item)
            continue
        try:
            value = transformer.decrypt(item.value, item.key.encode()).value
        except MissingKey as error:
            missing_key = (error.fetcher, error.source)
            if missing_key in failed:
                found.append(StoredValue(item.key, b"", item.revision, failed[missing_key]))
            else:
                missing.setdefault(missing_key, error)
        except TransformUnavailable as error:
            raise DecryptionUnavailable(str(CorruptObjectError(item.key, str(error)))) from None
        except TransformError as error:
            found.append(StoredValue(item.key, b"", item.revision, str(error)))
        else:
            found.append(item if value is item.value else StoredValue(item.key, value, item.revision))
    return found, missing


async def _fetch(missing: _Missing, failed: dict[tuple[DEKFetcher, DEKSource], str]) -> None:
    """
    Get keys, all at once.

    @param failed: Collects the errors of keys that cannot be fetched.
    @raise DecryptionUnavailable: The key management service does not respond.
    """
    answers: Any = await DeferredList([one.fetch() for one in missing.values()], consumeErrors=True)
    for (missing_key, one), (success, result) in zip(missing.items(), answers, strict=True):
        if success:
            continue
        error = result.value
        if isinstance(error, TransformUnavailable):
            raise DecryptionUnavailable(str(CorruptObjectError(one.authenticated_data.decode(), str(error))))
        failed[missing_key] = str(error)


@implementer(IStorageObserver, IStorageWatch)
class _Watch:
    """
    A watch: decrypts events between the inner store and the observer.

    @ivar prefix: The prefix of the watched keys.
    """

    _log = Logger()

    def __init__(self, storage: EncryptedStorage, prefix: str, observer: IStorageObserver) -> None:
        self.prefix = prefix
        self._storage = storage
        self._observer = observer
        self._inner: IStorageWatch | None = None
        self._stopped = False
        #: Batches of events that wait for keys, and revisions up to which everything has come then.
        self._queue: deque[Sequence[StorageEvent] | int] = deque()
        self._waiting: list[Deferred[None]] = []

    async def begin(self, revision: int) -> None:
        """Observe, from C{revision} on."""
        inner = await self._storage.inner.watch(self.prefix, revision, self)
        if self._stopped:
            inner.stop()
        self._inner = inner

    def stop(self) -> None:
        """See L{IStorageWatch.stop}."""
        self._stopped = True
        self._queue.clear()
        if self._inner is not None:
            self._inner.stop()

    def when_delivered(self) -> Deferred[None]:
        """Return a Deferred that fires when no event waits for a key."""
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

    # --- the observer of the inner store

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}."""
        if self._stopped:
            return
        if self._queue:
            self._queue.append(list(events))
            return
        try:
            decrypted = self._decrypt(events)
        except MissingKey:
            self._queue.append(list(events))
            self._storage._late_watches.add(self)
            Deferred.fromCoroutine(self._catch_up()).addErrback(self._failed)
        except CorruptObjectError as error:
            self._lose_position(error)
        else:
            self._observer.committed(decrypted)

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""
        if self._stopped:
            return
        if not self._queue:
            self._observer.progressed(revision)
        elif isinstance(self._queue[-1], int):
            self._queue[-1] = revision
        else:
            self._queue.append(revision)

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}."""
        if not self._stopped:
            self._stopped = True
            self._queue.clear()
            self._observer.ended(reason)

    # --- decrypting

    def _decrypt(self, events: Sequence[StorageEvent]) -> Sequence[StorageEvent]:
        """
        Events with their values as they were before they were encrypted.

        @raise MissingKey: A key must be got first.
        @raise CorruptObjectError: One cannot be read.
        """
        decrypted: list[StorageEvent] | None = None
        for index, event in enumerate(events):
            attachment, value = event.attachment, event.value
            if type(attachment) is _PlainAttachment:
                value, attachment = attachment
            elif value is not None and type(attachment) is not Draft:
                # Written by another process, whose writes may have attachments here, too.
                value = self._value(event.key, value, event.revision)
            if value is event.value:
                continue
            if decrypted is None:
                decrypted = list(events)
            decrypted[index] = StorageEvent(event.key, value, event.revision, event.previous, attachment)
        return events if decrypted is None else decrypted

    def _value(self, key: str, data: bytes, revision: int) -> bytes:
        transformer = self._storage.transformer(key)
        if transformer is None:
            return data
        try:
            return transformer.decrypt(data, key.encode()).value
        except TransformError as error:
            raise CorruptObjectError(key, str(error), revision) from None

    async def _catch_up(self) -> None:
        try:
            while self._queue:
                item = self._queue[0]
                if isinstance(item, int):
                    self._queue.popleft()
                    self._observer.progressed(item)
                    continue
                decrypted = await self._opened_later(item)
                if self._stopped:
                    return
                # Later events are queued, so this one is delivered now.
                self._observer.committed(decrypted)
                if self._queue:
                    self._queue.popleft()
        except CorruptObjectError as error:
            self._lose_position(error)
        finally:
            self._storage._late_watches.discard(self)
            waiting, self._waiting = self._waiting, []
            for result in waiting:
                result.callback(None)

    async def _opened_later(self, events: Sequence[StorageEvent]) -> Sequence[StorageEvent]:
        for _ in range(len(events) * _ATTEMPTS):
            try:
                return self._decrypt(events)
            except MissingKey as missing:
                missing_key = missing
            try:
                await missing_key.fetch()
            except TransformError as error:
                raise CorruptObjectError(missing_key.authenticated_data.decode(), str(error)) from None
        raise CorruptObjectError(events[0].key, "keys were forgotten before they were used")

    def _failed(self, failure: Failure) -> None:
        """The observer failed, and so has lost its place."""
        self._log.failure("an observer of {prefix} failed", failure, prefix=self.prefix)
        self._lose_position(failure.value if isinstance(failure.value, Exception) else Exception(str(failure.value)))

    def _lose_position(self, error: Exception) -> None:
        """End the watch after an event that cannot be delivered."""
        if not self._stopped:
            self.stop()
            self._observer.ended(error)
