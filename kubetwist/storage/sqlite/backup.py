"""Copies of a SQLite store: taken while it is in use, and made a store again. Blocking; knows no data directory."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from attrs import frozen

from ..errors import (
    StorageCorrupt,
    StorageUnavailable,
)
from ._format import read_format
from .logfile import (
    LogFile,
    corrupt_error,
    find_loss,
    load,
    lost,
    translate_sqlite_errors,
)

#: Pages copied in one step; after each step, progress is reported and the copied pages are flushed to disk.
STEP: Final = 4096

#: Called with how many pages are copied, and how many there are; may raise, to give up.
Progress = Callable[[int, int], object]


@frozen
class Summary:
    """
    The content of a store.

    @ivar keys: How many hold something.
    """

    revision: int
    keys: int


def copy_store(source: str, target: str, progress: Progress) -> None:
    """
    Copy the store at C{source}, which may be in use, in its state at one moment, to a new file.

    Readers do not block writers in a write-ahead log. The log is not emptied during the copy, so it grows by the writes
    of that time.

    @raise StorageUnavailable: One of them cannot be used.
    @raise StorageCorrupt: The source is damaged or not a store, or has lost acknowledged writes.
    """
    loss = find_loss(source, in_use=True)
    if loss:
        raise lost(source, loss)
    try:
        descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageUnavailable(f"{target} can not be made: {error.strerror}") from error
    try:
        with translate_sqlite_errors(source):
            reading = sqlite3.connect(f"file:{quote(os.path.abspath(source))}?mode=rw", uri=True, isolation_level=None)
        try:
            with translate_sqlite_errors(source):
                # One transaction around all steps: otherwise each step would restart after a write by the server.
                reading.execute("BEGIN")
                if not read_format(reading, source):
                    raise StorageCorrupt(f"{source} is empty")
            with translate_sqlite_errors(f"the copy {target} of {source}"):
                _copy(reading, target, descriptor, progress)
        finally:
            reading.close()
        _sync(descriptor, target)
    finally:
        os.close(descriptor)


def _sync(descriptor: int, path: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise StorageUnavailable(f"{path} can not be written: {error.strerror}") from error


def _copy(reading: sqlite3.Connection, target: str, descriptor: int, progress: Progress) -> None:
    def told(status: int, left: int, total: int) -> None:
        _sync(descriptor, target)
        progress(total - left, total)

    writing = sqlite3.connect(target, isolation_level=None)
    try:
        reading.backup(writing, pages=STEP, progress=told, sleep=0)
        # A backup is one file, and can be read on a read-only file system.
        writing.execute("PRAGMA journal_mode = DELETE")
    finally:
        writing.close()


def verify_copy(path: str) -> Summary:
    """
    Look through a copy for damage, and at what is in it. Writes nothing.

    @raise StorageUnavailable: It cannot be read.
    @raise StorageCorrupt: It is damaged, or no store.
    """
    with translate_sqlite_errors(path):
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True, isolation_level=None)
        try:
            version = read_format(connection, path)
            if not version:
                raise StorageCorrupt(f"{path} is empty")
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise corrupt_error(path, " ".join(found.split()))
            contents = load(connection, path, version)
        finally:
            connection.close()
    return Summary(contents.revision, len(contents.heads))


def restore_copy(path: str, bump: int) -> Summary:
    """
    Make a copy a store that clients of the one it was taken of cannot mistake for that.

    Its clock is set forward, past all revisions that were given since the copy was taken, and all before that is
    forgotten: a client with one of those gets C{410 Expired}, and lists again.

    @param bump: By how many revisions; 0 leaves the clock where it is.
    """
    file = LogFile(path)
    try:
        file.open()
        contents = file.load()
        if bump:
            file.forward(contents.revision + bump)
    finally:
        file.close()
    return Summary(contents.revision + bump, len(contents.heads))
