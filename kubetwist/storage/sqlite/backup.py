"""Backups of a SQLite store: online copies, and their restore. Blocking; independent of data directories."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from attrs import field, frozen

from ..errors import (
    StorageCorrupt,
    StorageUnavailable,
)
from ._checksums import row_sum
from ._format import FORMAT, downgrade_schema, read_format, read_history, start_history
from .logfile import (
    LogFile,
    corrupt_error,
    find_loss,
    load,
    lost_writes_error,
    translate_sqlite_errors,
)

#: The present format of stores.
STORE_FORMAT: Final = FORMAT
#: Pages copied in one step; after each step, progress is reported and the copied pages are flushed to disk.
COPY_STEP_PAGES: Final = 4096

#: Called with the copied and the total number of pages; may raise to cancel.
Progress = Callable[[int, int], object]


@frozen
class Summary:
    """
    The content of a store.

    @ivar keys: The number of existing keys.
    @ivar history: The number of the store's history, see L{read_history}.
    @ivar damaged: The number of values that differ from their checksums. Only these objects are unreadable.
    """

    revision: int
    keys: int
    history: int = field(default=0, eq=False)
    damaged: int = 0


def copy_store(source: str, target: str, progress: Progress, step_pages: int = 0) -> None:
    """
    Copy the store at C{source}, which may be in use, in its state at one moment, to a new file.

    Readers do not block writers in a write-ahead log. The log is not emptied during the copy, so it grows by the writes
    of that time.

    @param progress: Called after each step.
    @param step_pages: Pages copied in one step; 0 for L{COPY_STEP_PAGES}.
    @raise StorageUnavailable: The source or the target cannot be used.
    @raise StorageCorrupt: The source is damaged or not a store, or has lost acknowledged writes.
    """
    loss = find_loss(source, in_use=True)
    if loss:
        raise lost_writes_error(source, loss)
    try:
        descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageUnavailable(f"{target} cannot be made: {error.strerror}") from error
    try:
        with translate_sqlite_errors(source):
            source_connection = sqlite3.connect(
                f"file:{quote(os.path.abspath(source))}?mode=rw", uri=True, isolation_level=None
            )
        try:
            with translate_sqlite_errors(source):
                # One transaction around all steps: otherwise each step would restart after a write by the server.
                source_connection.execute("BEGIN")
                if not read_format(source_connection, source):
                    raise StorageCorrupt(f"{source} is empty")
            with translate_sqlite_errors(f"the copy {target} of {source}"):
                _copy(source_connection, target, descriptor, progress, step_pages or COPY_STEP_PAGES)
        finally:
            source_connection.close()
        _sync(descriptor, target)
    finally:
        os.close(descriptor)


def _sync(descriptor: int, path: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error.strerror}") from error


def _copy(
    source_connection: sqlite3.Connection, target: str, descriptor: int, progress: Progress, step_pages: int
) -> None:
    def report(status: int, remaining: int, total: int) -> None:
        _sync(descriptor, target)
        progress(total - remaining, total)

    target_connection = sqlite3.connect(target, isolation_level=None)
    try:
        source_connection.backup(target_connection, pages=step_pages, progress=report, sleep=0)
        # A backup is one file, and can be read on a read-only file system.
        target_connection.execute("PRAGMA journal_mode = DELETE")
    finally:
        target_connection.close()


def verify_copy(path: str) -> Summary:
    """
    Check a copy for damage, and read its content. Writes nothing.

    @raise StorageUnavailable: It cannot be read.
    @raise StorageCorrupt: It is damaged, or not a store.
    """
    with translate_sqlite_errors(path):
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True, isolation_level=None)
        try:
            version = read_format(connection, path)
            if not version:
                raise StorageCorrupt(f"{path} is empty")
            (result,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if result != "ok":
                raise corrupt_error(path, " ".join(result.split()))
            contents = load(connection, path, version)
            history = read_history(connection)
            damaged = _count_damaged(connection) if version > 1 else 0
        finally:
            connection.close()
    return Summary(contents.revision, len(contents.latest_revisions), history, damaged)


def _count_damaged(connection: sqlite3.Connection) -> int:
    rows = connection.execute("SELECT id, key, previous, expires, value, sum FROM log WHERE sum IS NOT NULL")
    return sum(row_sum(*row) != total for *row, total in rows)


def keep_former_format(path: str) -> str | None:
    """
    Copy a store of a former format before it is upgraded, if the disk has room for twice its size.

    No connection of this process may be open, for the reason that L{LogFile.reopen} states.

    @return: The path of the copy; L{None} without one: the store has the present format, or there is no room.
    @raise StorageCorrupt: It is damaged, or not a store.
    @raise StorageUnavailable: It cannot be read.
    """
    with translate_sqlite_errors(path):
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True, isolation_level=None)
        try:
            version = read_format(connection, path)
        finally:
            connection.close()
    target = f"{path}-format{version}"
    if version in (0, FORMAT) or os.path.lexists(target):
        return None
    new = f"{target}.new"
    try:
        size = sum(os.path.getsize(path + suffix) for suffix in ("", "-wal") if os.path.exists(path + suffix))
        if shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free < 2 * size:
            return None
        if os.path.lexists(new):
            os.unlink(new)
        copy_store(path, new, lambda done, total: None)
        os.rename(new, target)
    except (OSError, StorageUnavailable):
        # The upgrade itself does not depend on the copy.
        with suppress(OSError):
            os.unlink(new)
        return None
    return target


def restore_copy(path: str, bump: int, version: int = FORMAT) -> Summary:
    """
    Turn a copy into a store that clients cannot mistake for the original.

    Its revision is advanced past all revisions assigned since the copy was taken, and earlier ones are
    compacted: a client with one of those gets C{410 Expired}, and lists again.

    @param bump: The number of revisions to advance by; 0 keeps the revision.
    @param version: The format of the result.
    @raise StorageCorrupt: It is damaged, or there is no such format.
    """
    if not 1 <= version <= FORMAT:
        raise StorageCorrupt(f"there is no format {version} of stores; this kubetwist has formats 1 to {FORMAT}")
    file = LogFile(path)
    try:
        file.open()
        contents = file.load()
        with translate_sqlite_errors(path, writing=True):
            start_history(file.connection)
        if bump:
            file.bump_revision(contents.revision + bump)
        if version < FORMAT:
            with translate_sqlite_errors(path, writing=True):
                downgrade_schema(file.connection, version)
    finally:
        file.close()
    return Summary(contents.revision + bump, len(contents.latest_revisions))
