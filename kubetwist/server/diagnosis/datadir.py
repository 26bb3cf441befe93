"""Checks of the data directory: owner, permissions, format, leftovers, its process, and the embedded store."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen

from ...storage.errors import StorageError
from ...storage.sqlite.logfile import find_loss
from ..backups import STORE
from ..datadir import FORMAT, MARKER, PID_FILE, RESTORE_MARKER
from .findings import Finding, error, note, ok, warning

#: Seconds for the verification of the structure of the store.
_VERIFY_SECONDS: Final = 5.0
#: Instructions of SQLite's virtual machine between two readings of the clock.
_STEP: Final = 100_000
_RESTORE: Final = "restore a backup (docs: backup)"


@frozen
class DirectoryFacts:
    """
    Facts about a data directory.

    @ivar path: The directory.
    @ivar exists: Whether it exists.
    @ivar usable: Whether this user may read, write and search it.
    @ivar owner: The numbers of its owner and of this user.
    @ivar mode: Its permissions.
    @ivar exposed: Files with secrets that other users may read or write, with their permissions.
    @ivar format: The number in its marker; L{None} if there is no marker, 0 if it is damaged.
    @ivar empty: Whether it is empty.
    @ivar restoring: Whether a restore was interrupted.
    @ivar leftovers: Names of files that an interrupted program left, and of replaced stores.
    @ivar holder: The process that uses it; 0 for none.
    """

    path: str
    exists: bool
    usable: bool = True
    owner: tuple[int, int] = (0, 0)
    mode: int = 0o700
    exposed: tuple[tuple[str, int], ...] = ()
    format: int | None = FORMAT
    empty: bool = False
    restoring: bool = False
    leftovers: tuple[str, ...] = ()
    holder: int = 0


def read_directory(path: Path) -> DirectoryFacts:
    """
    Read the facts; nothing is locked.

    @raise OSError: It cannot be read.
    """
    if not path.exists():
        return DirectoryFacts(str(path), exists=False)
    state = path.stat()
    names = sorted(os.listdir(path))
    return DirectoryFacts(
        str(path),
        exists=True,
        usable=os.access(path, os.R_OK | os.W_OK | os.X_OK),
        owner=(state.st_uid, os.geteuid()),
        mode=stat.S_IMODE(state.st_mode),
        exposed=tuple(exposed_files(path)),
        format=read_marker(path / MARKER),
        empty=not names,
        restoring=RESTORE_MARKER in names,
        leftovers=tuple(one for one in names if one.startswith((".pki.", f".{MARKER}.", f".{STORE}.", "replaced-"))),
        holder=holder_of(path),
    )


def exposed_files(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the files with secrets that other users may read or change, and their permissions."""
    for file in (*sorted(path.glob("pki/*.key")), path / "admin.kubeconfig", *sorted(path.glob(f"{STORE}*"))):
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except FileNotFoundError:
            continue
        inside = file.parent == path and path.stat().st_mode & 0o077 == 0
        # The directory itself keeps other users away from the files of the store.
        if mode & (0o022 if inside and file.name.startswith(STORE) else 0o077):
            yield str(file.relative_to(path)), mode


def read_marker(path: Path) -> int | None:
    """Return the format in the marker of a data directory; L{None} without a marker, 0 if it is damaged."""
    try:
        content: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return 0
    number = content.get("format") if isinstance(content, dict) else None
    return number if isinstance(number, int) else 0


def holder_of(path: Path, locks: Path = Path("/proc/locks"), processes: Path = Path("/proc")) -> int:
    """
    Return the process that uses a data directory; 0 for none.

    The lock itself is not tried, as a server that starts at the same time would be refused.

    @param locks: The table of locks, see proc_locks(5).
    @param processes: The directory of processes.
    """
    try:
        marker = (path / MARKER).stat()
        number = int((path / PID_FILE).read_text("ascii"))
    except (OSError, ValueError):
        return 0
    if not (processes / str(number)).exists():
        return 0
    try:
        inodes = {
            line.split()[5].rpartition(":")[2] for line in locks.read_text("ascii").splitlines() if "FLOCK" in line
        }
    except (OSError, IndexError, ValueError):
        return number
    return number if str(marker.st_ino) in inodes else 0


def judge_directory(facts: DirectoryFacts) -> Iterator[Finding]:
    """Judge the facts."""
    path = facts.path
    if not facts.exists:
        yield note("data-directory/exists", f"{path} does not exist", "the first start of the server creates it")
        return
    if not facts.usable:
        yield error(
            "data-directory/access",
            f"{path} cannot be read and written by this user",
            "run the server and this command as the owner of the directory",
        )
        return
    if facts.format is None and facts.empty:
        yield note("data-directory/format", f"{path} is empty", "the first start of the server fills it")
    elif facts.format is None:
        yield error(
            "data-directory/format", f"{path} has other files and no {MARKER}", "set --data-dir to an empty directory"
        )
        return
    elif not facts.format:
        yield error("data-directory/format", f"{MARKER} in {path} is damaged", _RESTORE)
    elif facts.format > FORMAT:
        yield error(
            "data-directory/format",
            f"{path} has format {facts.format}, and this version reads formats up to {FORMAT}",
            "use the newer kubetwist that wrote it",
        )
    else:
        yield ok("data-directory/format", f"{path} is a data directory of format {facts.format}")
    if facts.restoring:
        yield error("data-directory/restore", f"a restore into {path} was interrupted", "run the restore again")
    if facts.leftovers:
        yield note(
            "data-directory/leftovers",
            f"{path} has files of interrupted or replaced work: {', '.join(facts.leftovers[:5])}",
            "remove folders replaced-* when the restored server works; the next start removes the rest",
        )
    yield from _permissions(facts)
    if facts.holder:
        yield ok("data-directory/lock", f"process {facts.holder} uses {path}")
    else:
        yield ok("data-directory/lock", f"no server uses {path}")


def _permissions(facts: DirectoryFacts) -> Iterator[Finding]:
    owner, user = facts.owner
    if owner != user:
        yield warning(
            "data-directory/owner",
            f"{facts.path} belongs to user {owner}, and this is user {user}",
            "let one user own the directory and run the server",
        )
    if facts.mode & 0o077:
        yield warning(
            "data-directory/mode",
            f"other users may enter {facts.path} (mode {facts.mode:04o})",
            f"chmod 0700 {facts.path}",
        )
    for name, mode in facts.exposed:
        yield error(
            "data-directory/secrets",
            f"{name} can be read or written by other users (mode {mode:04o})",
            f"chmod 0600 {Path(facts.path) / name}; if someone may have read it, replace the key",
        )
    if not facts.exposed:
        yield ok("data-directory/secrets", "keys and the store are readable by their owner only")


def check_store(path: Path, *, in_use: bool, seconds: float = _VERIFY_SECONDS) -> Iterator[Finding]:
    """
    Check the embedded store: its high-water mark, its write-ahead log, and the structure of the database.

    @param path: The file of the store.
    @param in_use: Whether a server uses it.
    @param seconds: Maximum duration of the verification of the structure.
    """
    if not path.exists():
        yield note("store/exists", f"{path} does not exist", "the first start of the server creates it")
        return
    try:
        loss = find_loss(str(path), in_use=in_use)
    except StorageError as problem:
        yield error("store/readable", str(problem), _RESTORE)
        return
    if loss is not None:
        yield error("store/mark", f"{path} has lost acknowledged writes: {loss}", _RESTORE)
        return
    yield ok("store/mark", f"{path} is as new as its high-water mark")
    yield _verify(path, in_use=in_use, seconds=seconds)


def _verify(path: Path, *, in_use: bool, seconds: float) -> Finding:
    log = path.with_name(f"{path.name}-wal")
    if not in_use and log.exists() and log.stat().st_size:
        return note(
            "store/structure",
            f"{path} was not closed and is not verified here",
            "the next start verifies it before it serves",
        )
    # Without a log, an immutable file is read without creating files.
    url = f"file:{quote(str(path.absolute()))}?mode=ro" + ("" if in_use else "&immutable=1")
    deadline = monotonic() + seconds
    try:
        with closing(sqlite3.connect(url, uri=True, isolation_level=None)) as connection:
            connection.set_progress_handler(lambda: monotonic() > deadline, _STEP)
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as problem:
        if monotonic() > deadline:
            return note(
                "store/structure",
                f"{path} is too large to be verified within {seconds:g} s",
                "back it up: a backup is verified completely",
            )
        return error("store/structure", f"{path} cannot be read: {problem}", _RESTORE)
    except sqlite3.DatabaseError as problem:
        return error("store/structure", f"{path} is damaged: {problem}", _RESTORE)
    if result != "ok":
        return error("store/structure", f"{path} is damaged: {result}", _RESTORE)
    return ok("store/structure", f"the structure of {path} is intact")
