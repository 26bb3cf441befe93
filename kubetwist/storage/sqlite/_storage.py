"""
The embedded store: one SQLite file, and threads that write, read and copy its log.

Decisions are made in the reactor thread. The writer puts all waiting transactions into one SQLite transaction: with one
client every write has a sync, with a hundred they share the syncs.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import ClassVar, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.storage import (
    History,
    Page,
    StoredValue,
    Write,
)
from ...interfaces import (
    IBumpableStorage,
    IExpiringStorage,
    IProbedStorage,
    IStorageBackend,
    IStorageHistory,
    IStorageObserver,
    IStorageWatch,
)
from ...metrics.registry import MetricSnapshot
from ..embedded import (
    EmbeddedStorage,
    State,
    Transaction,
    prefix_end,
)
from ..errors import (
    InvalidArgument,
    KeyNotFound,
    RevisionCompacted,
    StorageCorrupt,
    StorageError,
    StorageUnavailable,
    StorageUnwritable,
)
from ..worker import (
    ThreadedReactor,
    Worker,
)
from ._checkpoints import Checkpointer
from ._filelock import FileLock
from ._format import (
    PLACES,
)
from ._metrics import SQLiteMetrics
from ._writer import Writer
from .backup import keep_former_format
from .logfile import (
    PAGE_SIZE,
    Connect,
    LogFile,
)

#: Files up to this size in bytes are always checked when they are opened; larger files only after an unclean shutdown.
ALWAYS_CHECKED: Final = 16 << 20

#: Seconds without a write after which the write-ahead log is copied to the database and emptied.
IDLE: Final = 2.0

#: Changes that compaction processes in one SQLite transaction; waiting writes go between two of them.
SLICE_ROWS: Final = 250


@implementer(IStorageBackend, IStorageHistory, IExpiringStorage, IBumpableStorage, IProbedStorage)
class SQLiteStorage(EmbeddedStorage):
    """
    L{IStorageBackend} in a file.

    On a full or read-only disk only writes fail; reads and watches continue. Writes succeed again as soon as the disk
    can be written.

    @ivar path: The path of the file.
    @ivar metrics: The metrics of its commits.
    """

    #: The name of the storage in spans.
    system: ClassVar[str] = "sqlite"
    _log = Logger()

    def __init__(
        self,
        path: str | os.PathLike[str],
        reactor: ThreadedReactor,
        connect: Connect = sqlite3.connect,
        *,
        allow_lost_writes: bool = False,
        synced: bool = True,
    ) -> None:
        """
        Use the file at C{path}.

        @param allow_lost_writes: Whether L{open} accepts a file that has lost acknowledged writes.
        @param synced: Whether writes are acknowledged when they are on the disk; see L{LogFile}.
        """
        self.path = os.fspath(path)
        super().__init__(reactor, self.path)
        self._lock = FileLock(self.path)
        self._file = LogFile(self.path, connect, allow_lost_writes=allow_lost_writes, synced=synced)
        self._reading = LogFile(self.path, connect)
        self.metrics = SQLiteMetrics()
        self._writer = Writer(self._file, self, reactor, self.metrics)
        self._reader = Worker(f"kubetwist reads {self.path}", reactor)
        copying = LogFile(self.path, connect, synced=synced)
        self._checkpoints = Checkpointer(copying, self._file, self._writer, reactor, self.metrics)
        #: The error of the last write; L{None} when it succeeded.
        self._unwritable: StorageError | None = None
        self._lost = 0
        self._probing: list[Deferred[None]] = []
        self._idle_check: IDelayedCall | None = None

    # --- start and stop

    async def open(self) -> None:
        """See L{IStorageBackend.open}."""
        if self._state is not State.NEW:
            raise StorageUnavailable(f"{self.name} was opened before")
        self._lock.acquire()
        self._state = State.CLOSED
        self._writer.start()
        self._reader.start()
        try:
            former = await self._writer.run(lambda: keep_former_format(self.path) if self._file.exists() else None)
            if former is not None:
                self._log.info("upgrading the store; the former one is kept: path={path}", path=former)
            await self._writer.run(self._file.open)
            if self._file.loss:
                self._log.error(
                    "starting with lost writes because of --allow-lost-writes: path={path} loss={loss}",
                    path=self.path,
                    loss=self._file.loss,
                )
            if self._file.interrupted:
                self._log.info("store was not shut down cleanly, running integrity check: path={path}", path=self.path)
            if self._file.interrupted or self._file.size() <= ALWAYS_CHECKED:
                await self._writer.run(self._file.check)
            if self._file.interrupted:
                # The incomplete transaction of a crash could not be distinguished from damage after later transactions.
                with suppress(StorageUnwritable):
                    await self._writer.run(self._file.checkpoint)
            contents = await self._writer.run(self._file.load)
            await self._reader.run(self._reading.reopen)
            await self._checkpoints.start()
        except BaseException:
            await self._release()
            raise
        self._expiry.load(contents.expirations)
        self.initialize(contents.latest_revisions, contents.revision, contents.compacted)

    async def close(self) -> None:
        """See L{IStorageBackend.close}."""
        if self._state is State.OPEN:
            self._state = State.CLOSED
            self._expiry.stop()
            if self._idle_check is not None:
                self._idle_check.cancel()
                self._idle_check = None
            await self._release()

    async def _release(self) -> None:
        await self._checkpoints.stop()
        self._reader.run(self._reading.close)
        await self._reader.stop()
        # The last to close copies the write-ahead log to the database.
        self._writer.run(self._file.close)
        await self._writer.stop()
        self._lock.release()

    # --- writing

    def _invalid_transaction_error(self, writes: Sequence[Write]) -> InvalidArgument | None:
        if len(writes) > PLACES:
            return InvalidArgument(f"a transaction writes at most {PLACES} keys")
        return super()._invalid_transaction_error(writes)

    def submit(self, transaction: Transaction) -> None:
        self._writer.submit(transaction)

    def finish(self, batch: list[Transaction]) -> None:
        super().finish(batch)
        if self._idle_check is None and self._state is State.OPEN:
            self._check_idle_later()

    def written(self, size: int) -> None:
        """See L{kubetwist.storage.sqlite._writer.WritingStore.written}."""
        self._checkpoints.written(size)

    def _check_idle_later(self) -> None:
        self._idle_check = self._clock.callLater(IDLE, self._check_idle, self._submitted)

    def _check_idle(self, submitted: int) -> None:
        """
        Empty the write-ahead log if nothing was written for a while.

        @param submitted: The newest revision when the check was scheduled.
        """
        self._idle_check = None
        if self._submitted != submitted:
            self._check_idle_later()
            return

        # If the disk cannot be written, the next write schedules the next check.
        Deferred.fromCoroutine(self._empty_log()).addErrback(lambda failure: failure.trap(StorageError))

    async def _empty_log(self) -> None:
        # A write that comes now waits for what the writer copies, not for what the thread copies.
        await self._checkpoints.copy()
        empty = await self._writer.run(self._file.checkpoint)
        if not empty and self._idle_check is None and self._state is State.OPEN:
            self._check_idle_later()

    def _write_failed(self, error: Exception) -> None:
        self.metrics.failures += 1
        self.metrics.writable = False
        if self._unwritable is None:
            self._log.error("writes fail, and are refused until they work again: {error}", error=error)
        if isinstance(error, StorageCorrupt):
            error = StorageUnwritable(self.path, "its file is damaged")
        self._unwritable = error if isinstance(error, StorageError) else StorageUnavailable(str(error))
        self._lost += len(self._pending)
        self.fail_pending(error)

    def _writes_again(self) -> None:
        self.metrics.writable = True
        if self._unwritable is not None:
            self._log.info("writes work again: failed_writes={lost}", lost=self._lost)
            self._unwritable, self._lost = None, 0

    async def probe_writing(self) -> None:
        """See L{IProbedStorage.probe_writing}."""
        if self._unwritable is None:
            return
        self._check(self.revision)
        answer: Deferred[None] = Deferred()
        self._probing.append(answer)
        if len(self._probing) == 1:
            self._writer.run(self._file.probe).addBoth(self._probed)
        await answer

    def _probed(self, result: Failure | None) -> None:
        """Check the disk; callers at the same time share one check."""
        asking, self._probing = self._probing, []
        if not isinstance(result, Failure):
            self._writes_again()
        for answer in asking:
            answer.callback(result)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the metrics of the store."""
        try:
            log_bytes = os.stat(f"{self.path}-wal").st_size
        except OSError:
            # The file exists from the first write until the store is closed.
            log_bytes = 0
        return self.metrics.collect(log_bytes)

    async def bump_revision(self, revision: int) -> None:
        """See L{IBumpableStorage.bump_revision}."""
        self._check(self.revision)
        if self._pending or revision <= self.revision:
            raise InvalidArgument(f"{self.name} is at {self.revision} and cannot be made {revision}")
        await self._writer.run(lambda: self._file.bump_revision(revision))
        self.revision = self._submitted = self.compacted = revision

    async def compact(self, revision: int) -> None:
        """See L{IStorageBackend.compact}."""
        self._check(max(revision, self.compacted))
        if revision > self.compacted:
            await self._writer.run(lambda: self._file.mark_compacted(revision))
            self.compacted = max(revision, self.compacted)
        while self._state is State.OPEN and await self._writer.run(lambda: self._file.delete_superseded(SLICE_ROWS)):
            # The deleted rows may all be in different pages.
            self._checkpoints.written(SLICE_ROWS * PAGE_SIZE)
            await self._checkpoints.finished()

    # --- reading

    async def read(self, key: str) -> StoredValue:
        """See L{IStorageBackend.read}."""
        while True:
            at = self._resolve_revision(0)
            revision = self._committed_revision(key)
            if not revision:
                raise KeyNotFound(key, at)
            revisions_by_key = {key: revision}
            try:
                # B023: the reader is finished with the variables before the next iteration.
                (values,) = await self._reader.run(lambda: self._reading.values(revisions_by_key, at))  # noqa: B023
            except RevisionCompacted:
                continue  # By now there is a newer one.
            return values

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        See L{IStorageBackend.read_page}.

        @param prefix: The prefix of the keys.
        @param start: The first key to read; C{""} begins with the prefix.
        @param limit: Maximum number of values; 0 for all.
        @param revision: The revision to read at; 0 for the newest.
        """
        while True:
            at = self._resolve_revision(revision)
            if at < self.revision:
                return await self._read_past(prefix, start, limit, at)
            revisions_by_key: dict[str, int] = {}
            more = False
            for key, written in self._committed_keys(prefix, start):
                if limit and len(revisions_by_key) == limit:
                    more = True
                    break
                revisions_by_key[key] = written
            if not revisions_by_key:
                return Page([], at, False)
            try:
                # B023: as in C{read}.
                items = await self._reader.run(lambda: self._reading.values(revisions_by_key, at))  # noqa: B023
            except RevisionCompacted:
                if revision:
                    raise
                continue
            return Page(items, at, more)

    async def _read_past(self, prefix: str, start: str, limit: int, at: int) -> Page:
        end = prefix_end(prefix)
        # Some of the present keys did not exist then.
        further = limit // 8 + 1
        while True:
            present = self._committed_keys(prefix, start)
            latest_revisions = dict(islice(present, limit + further) if limit else present)
            following = next(present, None)
            known_end = end if following is None else following[0]
            newest = self.revision
            read = partial(self._reading.values_before, latest_revisions, newest, prefix, start, known_end, limit, at)
            items, more = await self._reader.run(read)
            if following is None or more or len(items) == limit:
                return Page(items, at, more or following is not None)
            further *= 4

    async def read_changes(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        See L{IStorageHistory.read_changes}.

        @param prefix: The prefix of the keys.
        @param after: The revision after which changes are read.
        @param until: The last revision to read, greater than C{after}.
        @param max_changes: Approximate maximum number of changes.
        @param max_bytes: Approximate maximum size of their values, in bytes.
        """
        self._check(after)
        history: History = await self._reader.run(
            lambda: self._reading.past(prefix, after, until, max_changes, max_bytes)
        )
        return history

    async def watch(self, prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """See L{IStorageBackend.watch}."""
        self._check(revision)
        watch = self._observers.add(prefix, observer)
        if revision < self.revision:
            until = self.revision
            watch.hold()
            try:
                past = await self._reader.run(lambda: self._reading.changes(prefix, revision, until))
            except BaseException:
                watch.stop()
                raise
            watch.catch_up(past, self.revision)
        return watch
