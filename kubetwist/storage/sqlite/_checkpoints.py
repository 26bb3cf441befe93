"""
Copies the write-ahead log to the database while writes go on.

SQLite's automatic checkpoint runs inside of a commit, and stops all writers while it writes scattered pages. Here a
thread with a second connection copies the log (C{PASSIVE}), which does not hold up the writer. SQLite begins the
log again only when all of it is copied, which never happens while writes continue; therefore the writer copies the
last few pages itself.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..errors import StorageError
from ..worker import ThreadedReactor, Worker
from ._metrics import SQLiteMetrics
from .logfile import CHECKPOINT_PAGES, PAGE_SIZE, LogFile

#: Maximum number of passes of the thread over the log, each over what was written during the one before.
PASSES: Final = 4
#: Number of pages written during a pass after which the writer copies the next ones itself.
FEW_PAGES: Final = 64
#: Pages that a transaction writes beyond its values: the last page of the table, which it fills, and inner pages.
PAGES_PER_TRANSACTION: Final = 2


class Checkpointer:
    """Starts a checkpoint when enough was written, in a thread."""

    _log = Logger()

    def __init__(
        self, file: LogFile, writing: LogFile, writer: Worker, reactor: ThreadedReactor, metrics: SQLiteMetrics
    ) -> None:
        """
        @param file: A connection for the thread.
        @param writing: The connection of the writer.
        @param writer: The thread that writes.
        @param metrics: Its durations are observed in the thread.
        """
        self._file = file
        self._writing = writing
        self._writer = writer
        self._metrics = metrics
        self._worker = Worker(f"kubetwist checkpoints {file.path}", reactor)
        #: Approximate number of pages written since the last checkpoint began.
        self._pages = 0
        self._running: Deferred[None] | None = None
        self._open = False

    async def start(self) -> None:
        """Start the thread and connect."""
        self._worker.start()
        await self._worker.run(self._file.reopen)
        self._open = True

    async def stop(self) -> None:
        """Disconnect and end the thread, after a checkpoint that runs."""
        self._open = False
        await self.finished()
        self._worker.run(self._file.close)
        await self._worker.stop()

    async def finished(self) -> None:
        """Wait until no checkpoint runs."""
        while self._running is not None:
            await self._running

    def copy(self) -> Deferred[int]:
        """
        Copy what was written so far, in the thread.

        @return: Fires with the result of L{LogFile.copy_log}.
        """
        return self._worker.run(self._copy_log)

    def _copy_log(self) -> int:
        """In the thread: copy the log."""
        began = perf_counter()
        copied = self._file.copy_log()
        self._metrics.checkpoints.observe(perf_counter() - began)
        return copied

    def written(self, size: int) -> None:
        """
        Count a transaction of SQLite.

        @param size: The size of its values, or of the pages that it changes, in bytes.
        """
        self._pages += size // PAGE_SIZE + PAGES_PER_TRANSACTION
        if self._pages >= CHECKPOINT_PAGES and self._running is None and self._open:
            self._pages = 0
            self._running = Deferred.fromCoroutine(self._checkpoint()).addBoth(self._done)

    async def _checkpoint(self) -> None:
        copied = 0
        for _ in range(PASSES):
            before, copied = copied, await self.copy()
            if copied - before <= FEW_PAGES:
                # Little was written during the last pass, or a reader or another checkpoint holds this one up.
                break
        await self._writer.run(self._writing.copy_log)

    def _done(self, result: Failure | None) -> None:
        self._running = None
        # A disk that cannot be written is reported by the writes; the next ones start another checkpoint.
        if isinstance(result, Failure) and not result.check(StorageError):
            self._log.failure("the write-ahead log could not be copied", result)
