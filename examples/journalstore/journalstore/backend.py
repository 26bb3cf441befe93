"""
A storage backend with its values in memory and its changes in a journal.

L{MemoryStorage} checks preconditions, assigns revisions, and serves reads and watches. This module makes transactions
durable before they are applied: the transactions that were submitted while the disk was busy are written together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from journalstore.journalfile import Entry, JournalFile
from kubetwist.api.flagvalues import FlagValues
from kubetwist.api.storage import StorageEvent
from kubetwist.interfaces import IServerReactor, IStorageBackend
from kubetwist.storage.embedded import Transaction
from kubetwist.storage.errors import StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.worker import ThreadedReactor, Worker

#: No transaction is added to a frame that has this number of bytes of values.
MAX_FRAME_SIZE: Final = 16 << 20


@implementer(IStorageBackend)
class JournalStorage(MemoryStorage):
    """L{IStorageBackend} in memory and in a file."""

    _log = Logger()

    def __init__(self, path: Path, reactor: ThreadedReactor) -> None:
        super().__init__(reactor)
        self.name = str(path)
        self._file = JournalFile(path)
        self._worker = Worker(f"journal {path}", reactor)
        self._opened = self._closed = False
        #: Transactions that are not passed to the worker yet.
        self._waiting: list[Transaction] = []
        self._writing = False
        self._compacting = False

    # --- start and stop

    async def open(self) -> None:
        """See L{IStorageBackend.open}."""
        if self._opened:
            raise StorageUnavailable(f"{self.name} was opened before")
        self._opened = True
        self._worker.start()
        try:
            entries = await self._worker.run(self._file.open)
        except BaseException:
            self._closed = True
            await self._release()
            raise
        if self._file.dropped:
            self._log.warn(
                "removed an incomplete write at the end of the journal: path={path} bytes={dropped}",
                path=self.name,
                dropped=self._file.dropped,
            )
        self._restore(entries)

    def _restore(self, entries: list[Entry]) -> None:
        events: list[StorageEvent] = []
        latest_revisions: dict[str, int] = {}
        expirations: dict[str, float] = {}
        revision, compacted = self.revision, 0
        for entry in entries:
            revision = max(revision, entry.revision)
            if not entry.key:
                compacted = max(compacted, entry.revision)
                continue
            previous = latest_revisions.pop(entry.key, 0)
            expirations.pop(entry.key, None)
            if entry.value is not None:
                latest_revisions[entry.key] = entry.revision
                if entry.expires is not None:
                    expirations[entry.key] = entry.expires
            events.append(StorageEvent(entry.key, entry.value, entry.revision, previous))
        self.restore(events, revision, compacted, expirations)

    async def close(self) -> None:
        """See L{IStorageBackend.close}."""
        await super().close()
        if self._opened and not self._closed:
            self._closed = True
            while self._writing:
                await self._worker.run(_nothing)
            await self._release()

    async def _release(self) -> None:
        self._worker.run(self._file.close)
        await self._worker.stop()

    # --- writing

    def submit(self, transaction: Transaction) -> None:
        """Write a transaction, after those that the disk is busy with."""
        self._waiting.append(transaction)
        if not self._writing:
            self._write()

    def _write(self) -> None:
        """Write the oldest transactions that wait."""
        self._writing = True
        size = count = 0
        while count < len(self._waiting) and size < MAX_FRAME_SIZE:
            size += sum(len(event.value or b"") for event in self._waiting[count].events)
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        writing = self._worker.run(lambda: self._file.append(entries_of(batch)))
        writing.addCallbacks(self._written, self._write_failed, callbackArgs=(batch,))

    def _written(self, _: None, batch: list[Transaction]) -> None:
        if self._waiting:
            self._write()
        else:
            self._writing = False
        self.apply(batch)

    def _write_failed(self, failure: Failure) -> None:
        error = failure.value
        assert isinstance(error, Exception), "the worker reports no other"
        self._log.error("cannot write: {error}", error=error)
        self._waiting.clear()
        self._writing = False
        self.fail_pending(error)

    # --- compaction

    async def compact(self, revision: int) -> None:
        """See L{IStorageBackend.compact}. The file is compacted when it has become twice as large."""
        await super().compact(revision)
        if self._compacting or not self._file.is_worth_compacting:
            return
        self._compacting = True
        try:
            steps = self._file.compact(self.compacted)
            while not self._closed and await self._worker.run(partial(_advance, steps)):
                pass
        finally:
            self._compacting = False


def entries_of(batch: list[Transaction]) -> Iterator[Entry]:
    """Return the entries of some transactions."""
    for transaction in batch:
        times = transaction.expiration_times or [None] * len(transaction.events)
        for event, expires in zip(transaction.events, times, strict=True):
            yield Entry(event.key, event.value, event.revision, expires)


def _advance(steps: Iterator[None]) -> bool:
    """Run one step of a compaction; return whether there are more."""
    return any(True for _ in steps)


def _nothing() -> None:
    """Do nothing, in the worker: after it, earlier work is done."""


def make(options: FlagValues, reactor: IServerReactor) -> JournalStorage:
    """Return the backend for C{--storage-backend=journal}: C{store.journal} in the data directory."""
    return JournalStorage(Path(options["data-dir"]).absolute() / "store.journal", reactor)
