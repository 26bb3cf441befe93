"""
The SQLite file, and all SQL for it. It is independent of threads and reactors.

All data is in one table, C{log}. Writes append rows, compaction deletes old ones. A row is one write of one key.
Its C{id} is the revision, shifted, plus the place in the transaction, so appending touches one page and there is no
index to keep. The value of a key is its newest row; the store remembers which row that is.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import quote

from attrs import frozen

from ...api.storage import (
    History,
    PastChange,
    StorageEvent,
    StoredValue,
)
from ..embedded import prefix_end
from ..errors import (
    RevisionCompacted,
    StorageCorrupt,
    StorageUnavailable,
    StorageUnwritable,
)
from ._checksums import (
    checked_value,
    head_sum,
)
from ._format import (
    FORMAT,
    PLACE_BITS,
    PLACES,
    migrate_schema,
    read_format,
    read_history,
    start_history,
)
from ._highwater import HighWaterMark
from ._wal import find_damage

#: The magic number of SQLite databases.
_MAGIC: Final = b"SQLite format 3\0"

#: Maximum number of rows that one statement inserts.
MAX_INSERT_ROWS: Final = 256

#: Size of a page in bytes, which is SQLite's default.
PAGE_SIZE: Final = 4096

#: Pages in the write-ahead log after which they are copied to the database.
CHECKPOINT_PAGES: Final = 2000

#: Revisions that are searched at a time for past changes.
PAST_REVISIONS: Final = 10_000

#: A row of C{log}: id, key, previous, expires, value, sum.
Row = tuple[int, str, int, float | None, bytes | None, int | None]
Connect = Callable[..., sqlite3.Connection]

#: The advice for a file that cannot be used any more.
RESTORE_ADVICE: Final = "twist kubeapi-restore puts a backup in its place"

#: Suffix of the file with the high-water mark.
HIGH_WATER_MARK_SUFFIX: Final = "-mark"

#: Number by which revisions are advanced after a loss of acknowledged writes is accepted.
LOST_WRITES_REVISION_GAP: Final = 1_000_000_000

#: Maximum number of changed keys that are kept between the pages of a list at a past revision.
MAX_KEPT_CHANGES: Final = 50_000

#: The keys that were changed after the revision of a list: revision and prefix of the list, the last revision of the
#: changes, and the revision of each changed key as of the list.
_Changed = tuple[tuple[int, str], int, dict[str, int]]
_NOTHING_CHANGED: Final[_Changed] = ((-1, ""), 0, {})

_NO_ROW: Final = (None,) * 6


def _insertion(rows: int) -> str:
    """
    Return a statement for up to C{rows} rows; those without an id are not inserted.

    One statement is one step and one transaction: the thread that writes hands the interpreter lock over once a batch.
    """
    if rows == 1:
        return "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)"
    values = ", ".join(["(?, ?, ?, ?, ?, ?)"] * rows)
    return f"INSERT INTO log SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL"


_INSERTIONS: Final = {1 << power: _insertion(1 << power) for power in range(MAX_INSERT_ROWS.bit_length())}


@frozen
class Contents:
    """
    The facts that a store needs about its file.

    @ivar latest_revisions: The newest revision of every key.
    @ivar expirations: The keys with a time to live: C{(key, when, revision)}.
    """

    latest_revisions: dict[str, int]
    expirations: list[tuple[str, float, int]]
    revision: int
    compacted: int


@contextmanager
def translate_sqlite_errors(path: str, *, writing: bool = False) -> Iterator[None]:
    """Raise errors of SQLite as errors of storage."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise corrupt_error(path, str(error)) from error
        if writing:
            raise StorageUnwritable(path, str(error)) from error
        raise StorageUnavailable(f"{path} cannot be used: {error}") from error


def corrupt_error(path: str, reason: str) -> StorageCorrupt:
    """Return the error for a file that is damaged or foreign."""
    return StorageCorrupt(f"{path} is damaged or no kubetwist store: {reason}; {RESTORE_ADVICE}")


def read_state(connection: sqlite3.Connection, name: str) -> int:
    """Return a number stored in the file."""
    (value,) = connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return int(value)


def newest_revision(connection: sqlite3.Connection) -> int:
    """Return the newest revision in the file."""
    (number,) = connection.execute("SELECT max(id) FROM log").fetchone()
    clock, compacted = read_state(connection, "clock"), read_state(connection, "compacted")
    return max((number or 0) >> PLACE_BITS, clock, compacted)


def find_loss(path: str, *, in_use: bool = False) -> str | None:
    """
    Return which acknowledged writes a store has lost; changes nothing.

    No connection of this process may be open, for the reason that L{LogFile.reopen} states.

    @param in_use: Whether another process may be writing: the log changes then, and is not verified.
    @return: The loss; L{None} if none is known.
    @raise StorageCorrupt: The store is damaged in another way.
    @raise StorageUnavailable: It cannot be read.
    """
    try:
        damage = None if in_use else find_damage(f"{path}-wal")
    except OSError as error:
        raise StorageUnavailable(f"{path}-wal cannot be read: {error.strerror}") from error
    if damage:
        return f"its write-ahead log is damaged: {damage}"
    mark = HighWaterMark(path + HIGH_WATER_MARK_SUFFIX).read()
    if not mark:
        return None
    with translate_sqlite_errors(path):
        # A read-only connection leaves the write-ahead log unchanged when it is closed. Without a log no file is made.
        url = f"file:{quote(os.path.abspath(path))}?mode=ro"
        if not in_use and not any(_has_content(f"{path}{suffix}") for suffix in ("-wal", "-journal")):
            url += "&immutable=1"
        connection = sqlite3.connect(url, uri=True, isolation_level=None)
        try:
            newest = newest_revision(connection) if read_format(connection, path) else 0
        finally:
            connection.close()
    if newest >= mark:
        return None
    return f"its newest revision is {newest}, and its high-water mark in {path}{HIGH_WATER_MARK_SUFFIX} is {mark}"


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False


def lost_writes_error(path: str, reason: str) -> StorageCorrupt:
    """Return the error for a store that has lost acknowledged writes."""
    return StorageCorrupt(
        f"{path} has lost acknowledged writes: {reason}; {RESTORE_ADVICE}, "
        "--allow-lost-writes starts with the remaining data"
    )


def load(connection: sqlite3.Connection, path: str, version: int = FORMAT) -> Contents:
    """
    Return all keys of a file.

    @param path: The path, for messages.
    @param version: The format of the file.
    @raise StorageCorrupt: A column other than the value was changed.
    """
    latest_revisions: dict[str, int] = {}
    due: dict[str, tuple[float, int]] = {}
    number = 0
    total = "sum" if version > 1 else "NULL"
    rows = connection.execute(f"SELECT id, key, previous, expires, value IS NULL, {total} FROM log ORDER BY id")
    for number, key, previous, expires, deleted, total in rows:
        if total is not None and total >> 32 != head_sum(number, key, previous, expires, deleted):
            raise corrupt_error(path, f"the row {number} was changed")
        revision = number >> PLACE_BITS
        if deleted:
            latest_revisions.pop(key, None)
        else:
            latest_revisions[key] = revision
        if expires is not None:
            due[key] = (expires, revision)
        elif due:
            due.pop(key, None)
    compacted = read_state(connection, "compacted")
    newest = newest_revision(connection)
    return Contents(
        latest_revisions, [(key, when, revision) for key, (when, revision) in due.items()], newest, compacted
    )


class LogFile:
    """
    A connection to the file, to be used by one thread only.

    @ivar path: Path of the file.
    @ivar interrupted: Whether the file had a write-ahead log when it was opened: the previous process was killed.
    @ivar loss: The loss of acknowledged writes that L{open} found and accepted; L{None} without one.
    """

    def __init__(
        self,
        path: str,
        connect: Connect = sqlite3.connect,
        *,
        allow_lost_writes: bool = False,
        synced: bool = True,
    ) -> None:
        """
        @param allow_lost_writes: Whether L{open} accepts a file that has lost acknowledged writes.
        @param synced: Whether a commit waits until it is on the disk. Otherwise a power failure can lose commits and
            damage the file; the end of the process cannot.
        """
        self.path = path
        self._synced = synced
        self.interrupted = False
        self.loss: str | None = None
        self._allow_lost_writes = allow_lost_writes
        self._mark = HighWaterMark(path + HIGH_WATER_MARK_SUFFIX, synced=synced)
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._changed = _NOTHING_CHANGED

    # --- start and stop

    def open(self) -> None:
        """
        Connect to the file; create it if it does not exist.

        @raise StorageCorrupt: It is damaged, not a store, of a newer format, or has lost acknowledged writes.
        @raise StorageUnavailable: It cannot be read or written.
        """
        empty = self._create_if_missing()
        self.loss = find_loss(self.path)
        if self.loss and not self._allow_lost_writes:
            raise lost_writes_error(self.path, self.loss)
        self.reopen()
        with translate_sqlite_errors(self.path):
            newest = newest_revision(self.connection)
            if not read_history(self.connection):
                # On a full disk the next start retries.
                with suppress(sqlite3.OperationalError):
                    start_history(self.connection)
        if self.loss:
            # Clients may hold revisions of lost writes, which must not be assigned again.
            newest = max(newest, self._mark.read() or 0) + LOST_WRITES_REVISION_GAP
            self.bump_revision(newest)
        self._mark.open(newest)
        if empty and self._synced:
            try:
                directory = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
                try:
                    os.fsync(directory)
                finally:
                    os.close(directory)
            except OSError as error:
                raise StorageUnavailable(f"the folder of {self.path} cannot be written: {error.strerror}") from error

    def exists(self) -> bool:
        """Return whether there is a file that is not empty and looks like a database of SQLite."""
        try:
            with open(self.path, "rb") as file:
                return file.read(len(_MAGIC)) == _MAGIC
        except OSError:
            return False

    def size(self) -> int:
        """
        Return the size of the file, in bytes.

        @raise StorageUnavailable: It does not exist.
        """
        try:
            return os.path.getsize(self.path)
        except OSError as error:
            raise StorageUnavailable(f"{self.path} cannot be read: {error.strerror}") from error

    def reopen(self) -> None:
        """
        Connect to the file, where another connection of this process has it open.

        Only SQLite may open the file then: closing any descriptor of it releases all locks that the process has
        on it, and another program that finds SQLite's locks released could remove the write-ahead log.
        """
        with translate_sqlite_errors(self.path):
            self._connection = connection = self._connect(self.path, isolation_level=None)
            try:
                self._configure(connection)
            except BaseException:
                self.close()
                raise

    def _create_if_missing(self) -> bool:
        """Create the file, as SQLite would make it readable for everyone; return whether it is empty."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                start = os.read(descriptor, len(_MAGIC))
            finally:
                os.close(descriptor)
            log = f"{self.path}-wal"
            self.interrupted = os.path.exists(log) and os.path.getsize(log) > 0
            if not start and self.interrupted:
                raise StorageCorrupt(f"{self.path} is empty, but its log {log} is not; {RESTORE_ADVICE}")
        except OSError as error:
            raise StorageUnavailable(f"{self.path} cannot be opened: {error.strerror}") from error
        if start not in (b"", _MAGIC):  # SQLite would take a file of a few bytes for an empty one.
            raise StorageCorrupt(f"{self.path} is no SQLite database, so no kubetwist store; {RESTORE_ADVICE}")
        return not start

    def _configure(self, connection: sqlite3.Connection) -> None:
        version = read_format(connection, self.path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._synced else 'OFF'}")
        # SQLite would copy the log within a commit, all of it at once after a long read.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {8 * CHECKPOINT_PAGES * PAGE_SIZE}")
        # Deleted data is overwritten where that costs no extra writes.
        connection.execute("PRAGMA secure_delete = FAST")
        # Temporary data of a sort must not need space on another disk, which may be full, too.
        connection.execute("PRAGMA temp_store = MEMORY")
        migrate_schema(connection, version)

    def check(self) -> None:
        """
        Check the whole file for damage.

        @raise StorageCorrupt: It is damaged.
        """
        with translate_sqlite_errors(self.path):
            (values,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
        if values != "ok":
            raise corrupt_error(self.path, " ".join(values.split()))

    def close(self) -> None:
        """Disconnect."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._mark.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection."""
        if self._connection is None:
            raise StorageUnavailable(f"{self.path} is closed")
        return self._connection

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        connection = self.connection
        connection.execute(begin)
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _state(self, name: str) -> int:
        return read_state(self.connection, name)

    def load(self) -> Contents:
        """Return all keys."""
        with translate_sqlite_errors(self.path):
            return load(self.connection, self.path)

    # --- writing

    def append(self, rows: list[Row]) -> None:
        """Write rows, all or none; they are synced when this returns."""
        with translate_sqlite_errors(self.path, writing=True):
            if len(rows) <= MAX_INSERT_ROWS:
                self._insert(rows)
            else:
                with self._transaction():
                    for first in range(0, len(rows), MAX_INSERT_ROWS):
                        self._insert(rows[first : first + MAX_INSERT_ROWS])
        self._mark.set(rows[-1][0] >> PLACE_BITS)

    def _insert(self, rows: list[Row]) -> None:
        places = 1 << (len(rows) - 1).bit_length()
        parameters: list[object] = []
        for row in rows:
            parameters += row
        for _ in range(places - len(rows)):
            parameters += _NO_ROW
        self.connection.execute(_INSERTIONS[places], parameters)

    def reserve_revision(self, revision: int) -> None:
        """
        Never assign a revision up to this one again.

        After a failed write, this also overwrites its place in the write-ahead log: if that write's pages stayed
        there, complete but refused, a crash could restore them.
        """
        with translate_sqlite_errors(self.path, writing=True):
            self.connection.execute("UPDATE state SET value = max(value, ?) WHERE name = 'clock'", (revision,))

    def probe(self) -> None:
        """
        Check that the disk can be written, with a row that has no other use.

        @raise StorageUnwritable: It cannot be written.
        """
        with translate_sqlite_errors(self.path, writing=True):
            # SQLite writes nothing where nothing changes.
            self.connection.execute("INSERT OR REPLACE INTO state VALUES ('probed', ?)", (time.time_ns(),))

    def bump_revision(self, revision: int) -> None:
        """Make C{revision} the newest, if it is greater, and compact all revisions before it."""
        with translate_sqlite_errors(self.path, writing=True), self._transaction():
            self.reserve_revision(revision)
            self.mark_compacted(revision)
        self._mark.set(revision)

    def copy_log(self) -> int:
        """
        Copy the write-ahead log to the database as far as no reader needs it, without holding up a writer.

        SQLite begins the log again with the first write that finds all of it copied.

        @return: The number of pages of the log that have been copied since it began; -1 if another checkpoint runs.
        @raise StorageUnwritable: The disk cannot be written.
        """
        with translate_sqlite_errors(self.path, writing=True):
            busy, _, copied = self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return -1 if busy else int(copied)

    def checkpoint(self) -> bool:
        """
        Copy the write-ahead log to the database and empty it, without waiting for readers.

        @return: Whether the log is empty; a reader, such as a backup, may still need it.
        @raise StorageUnwritable: The disk cannot be written.
        """
        with translate_sqlite_errors(self.path, writing=True):
            (patience,) = self.connection.execute("PRAGMA busy_timeout").fetchone()
            self.connection.execute("PRAGMA busy_timeout = 0")
            try:
                (busy, *_) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self.connection.execute(f"PRAGMA busy_timeout = {patience}")
        self._mark.sync()
        return not busy

    def mark_compacted(self, revision: int) -> None:
        """Record that states before C{revision} cannot be read any more."""
        with translate_sqlite_errors(self.path, writing=True):
            self.connection.execute("UPDATE state SET value = max(value, ?) WHERE name = 'compacted'", (revision,))

    def delete_superseded(self, rows: int) -> bool:
        """
        Remove superfluous rows after a compaction, processing up to C{rows} changes.

        @return: Whether more is left.
        """
        with translate_sqlite_errors(self.path, writing=True), self._transaction() as connection:
            cleaned = self._state("cleaned")
            end = (self._state("compacted") + 1) << PLACE_BITS
            slice_end, count = connection.execute(
                "SELECT max(id), count(*) FROM (SELECT id FROM log WHERE id > ? AND id < ? ORDER BY id LIMIT ?)",
                (cleaned, end, rows),
            ).fetchone()
            if not count:
                return False
            # Each change names the one that it supersedes. (The + keeps SQLite from building an index of all keys.)
            connection.execute(
                "DELETE FROM log WHERE id IN (SELECT old.id FROM log AS new CROSS JOIN log AS old "
                f"ON old.id BETWEEN (new.previous << {PLACE_BITS}) AND (new.previous << {PLACE_BITS}) + {PLACES - 1} "
                "AND +old.key = new.key WHERE new.id > ? AND new.id <= ? AND new.previous > 0)",
                (cleaned, slice_end),
            )
            connection.execute(
                "DELETE FROM log WHERE id > ? AND id <= ? AND value IS NULL",
                (cleaned, slice_end),
            )
            connection.execute("UPDATE state SET value = ? WHERE name = 'cleaned'", (slice_end,))
            return bool(count == rows)

    # --- reading

    def values(self, revisions: dict[str, int], at: int) -> list[StoredValue]:
        """
        Return the values of some keys at their revisions as of C{at}, in the order of C{revisions}.

        @raise RevisionCompacted: C{at} was compacted during the read.
        """
        with translate_sqlite_errors(self.path), self._transaction("BEGIN"):
            self._check(at)
            return self._values(revisions)

    def values_before(
        self, latest_revisions: dict[str, int], newest: int, prefix: str, start: str, end: str, limit: int, at: int
    ) -> tuple[list[StoredValue], bool]:
        """
        Return values as of C{at}, and whether more follow.

        @param latest_revisions: All keys below C{prefix} from C{start} on and before C{end}, with their revisions as of
            C{newest}.
        @param newest: A revision after C{at}.
        @param prefix: The prefix of the keys.
        @param start: The first key.
        @param end: The key before which the values end.
        @param limit: Maximum number of values; 0 for all.
        @param at: The revision to read at.
        """
        with translate_sqlite_errors(self.path), self._transaction("BEGIN"):
            self._check(at)
            undone = self._changed_after(at, newest, prefix)
            state = {**latest_revisions, **{key: revision for key, revision in undone.items() if start <= key < end}}
            keys = sorted(key for key, revision in state.items() if revision)
            more = bool(limit) and len(keys) > limit
            if more:
                del keys[limit:]
            return self._values({key: state[key] for key in keys}), more

    def _changed_after(self, at: int, newest: int, prefix: str) -> dict[str, int]:
        """
        Return the keys that were changed after C{at} and up to C{newest}, with their revisions as of C{at}.

        The pages of one list are read at one revision: each reads the changes since the page before it.
        """
        of, until, changed = self._changed
        if of != (at, prefix) or until > newest:
            until, changed = at, {}
        rows = self.connection.execute(
            "SELECT key, previous FROM log WHERE id >= ? AND id < ? AND key >= ? AND key < ? ORDER BY id",
            ((until + 1) << PLACE_BITS, (newest + 1) << PLACE_BITS, prefix, prefix_end(prefix)),
        )
        for key, previous in rows:
            changed.setdefault(key, previous)
        kept = len(changed) <= MAX_KEPT_CHANGES
        self._changed = ((at, prefix), newest, changed) if kept else _NOTHING_CHANGED
        return changed

    def changes(self, prefix: str, after: int, until: int) -> list[StorageEvent]:
        """
        Return the changes below C{prefix} after one revision and up to another.

        @raise RevisionCompacted: Changes after C{after} are compacted.
        """
        with translate_sqlite_errors(self.path), self._transaction("BEGIN"):
            self._check(after)
            rows = self.connection.execute(
                "SELECT key, value, id, previous, sum FROM log "
                "WHERE id >= ? AND id < ? AND key >= ? AND key < ? ORDER BY id",
                ((after + 1) << PLACE_BITS, (until + 1) << PLACE_BITS, prefix, prefix_end(prefix)),
            )
            return [
                StorageEvent(key, checked_value(value, total), number >> PLACE_BITS, previous)
                for key, value, number, previous, total in rows
            ]

    def past(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        Read changes below C{prefix}, see L{kubetwist.interfaces.IStorageHistory.read_changes}.

        @raise RevisionCompacted: Changes after C{after} are compacted.
        """
        until = min(until, after + PAST_REVISIONS)
        with translate_sqlite_errors(self.path), self._transaction("BEGIN"):
            self._check(after)
            # Compaction keeps the predecessor of each change that it keeps.
            rows = self.connection.execute(
                "SELECT new.id, new.key, new.value, (SELECT old.value FROM log AS old WHERE new.previous > 0 "
                f"AND old.id BETWEEN (new.previous << {PLACE_BITS}) AND (new.previous << {PLACE_BITS}) + {PLACES - 1} "
                "AND +old.key = new.key) FROM log AS new "
                "WHERE new.id >= ? AND new.id < ? AND new.key >= ? AND new.key < ? ORDER BY new.id",
                ((after + 1) << PLACE_BITS, (until + 1) << PLACE_BITS, prefix, prefix_end(prefix)),
            )
            changes: list[PastChange] = []
            for number, key, value, former in rows:
                revision = number >> PLACE_BITS
                if changes and revision > changes[-1].revision and (len(changes) >= max_changes or max_bytes <= 0):
                    return History(changes, changes[-1].revision)
                changes.append(PastChange(key, value, revision, former))
                max_bytes -= len(value or b"") + len(former or b"")
            return History(changes, until)

    def _check(self, revision: int) -> None:
        compacted = self._state("compacted")
        if revision < compacted:
            raise RevisionCompacted(revision, compacted)

    def _values(self, revisions: dict[str, int]) -> list[StoredValue]:
        values = {
            key: checked_value(value, total) or b""
            for number, key, value, total in self.connection.execute(
                "SELECT log.id, log.key, log.value, log.sum FROM json_each(?) AS wanted CROSS JOIN log "
                f"ON log.id BETWEEN (wanted.value << {PLACE_BITS}) AND (wanted.value << {PLACE_BITS}) + {PLACES - 1}",
                (json.dumps(sorted(set(revisions.values()))),),
            )
            if revisions.get(key) == number >> PLACE_BITS
        }
        try:
            return [StoredValue(key, values[key], revision) for key, revision in revisions.items()]
        except KeyError as error:
            raise corrupt_error(self.path, f"the newest state of {error.args[0]} is missing") from error
