"""
Back up and restore data directories. Blocking, for tools.

A backup is a directory: F{store.sqlite}, F{pki/} if requested, and F{backup.json} with the checksums of all files. It
is written under another name, synced and verified, then renamed, so that it is complete or absent. It is not a data
directory, so that no server is started on it by mistake.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from ..api.times import now
from ..storage.sqlite.backup import STORE_FORMAT, Progress, Summary, copy_store, restore_copy, verify_copy
from ..storage.sqlite.logfile import HIGH_WATER_MARK_SUFFIX
from ..storage.sqlite.segments import Segment, apply_segments
from .datadir import MARKER, RESTORE_MARKER, DataDirectory
from .errors import StartError
from .files import sync_directory, write_file

STORE: Final = "store.sqlite"
KEYS: Final = "pki"
MANIFEST: Final = "backup.json"
FORMAT: Final = 1

#: Names of files that SQLite or the store may create beside a store.
_STORE_SUFFIXES: Final = ("", "-wal", "-shm", "-journal", HIGH_WATER_MARK_SUFFIX)


@frozen
class Backup:
    """
    The content of F{backup.json}.

    @ivar taken: Time of the backup.
    @ivar files: SHA-256 in hexadecimal, by path in the backup.
    @ivar history: The number of the store's history, see L{kubetwist.storage.sqlite._format.read_history}; 0 if the
        backup was taken by a kubetwist without such numbers.
    @ivar damaged: The number of objects whose values differ from their checksums, and which are unreadable.
    """

    taken: str
    revision: int
    keys: int
    files: dict[str, str]
    history: int = 0
    damaged: int = 0

    @property
    def has_keys(self) -> bool:
        """Return whether the backup contains keys and certificates."""
        return any(name.startswith(f"{KEYS}/") for name in self.files)


def back_up(source: Path, target: Path, progress: Progress, *, keys: bool = True, step_pages: int = 0) -> Backup:
    """
    Take a backup of the data directory C{source}, which may be in use.

    @param target: The directory of the backup; must not exist.
    @param progress: Called after each step of the copy, with the copied and the total number of pages.
    @param keys: Whether keys and certificates are included.
    @param step_pages: Pages copied in one step; 0 for the default.
    @raise StartError: Something cannot be read or written.
    @raise StorageError: The store is damaged or cannot be read.
    """
    if not (source / MARKER).is_file():
        raise StartError(f"{source} is not a data directory of kubetwist: it has no {MARKER} in it")
    DataDirectory(source).check_restored()
    if not (source / STORE).is_file():
        raise StartError(
            f"there is no {STORE} in {source}: only the embedded store can be backed up; for etcd use etcdctl snapshot"
            " save, and keep a copy of pki/ with it"
        )
    if os.path.lexists(target):
        raise StartError(f"{target} already exists")
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        new.mkdir(mode=0o700, parents=True)
        copy_store(str(source / STORE), str(new / STORE), progress, step_pages)
        summary = verify_copy(str(new / STORE))
        if keys:
            _copy_keys(source / KEYS, new / KEYS)
        backup = _write_manifest(new, summary)
        new.rename(target)
        sync_directory(target.absolute().parent)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise StartError(f"cannot write {target}: {error.strerror or error}") from error
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return backup


def _copy_keys(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    for path in sorted(source.iterdir()):
        # An incomplete backup has a name that begins with a dot.
        if path.is_file() and not path.name.startswith("."):
            write_file(target / path.name, path.read_bytes(), path.stat().st_mode & 0o777)


def _write_manifest(folder: Path, summary: Summary) -> Backup:
    files = {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    backup = Backup(now(), summary.revision, summary.keys, files, summary.history, summary.damaged)
    content = {
        "format": FORMAT,
        "kubetwist": version("kubetwist"),
        "taken": backup.taken,
        "revision": backup.revision,
        "keys": backup.keys,
        "history": backup.history,
        "damaged": backup.damaged,
        "files": files,
    }
    write_file(folder / MANIFEST, json.dumps(content, indent=2).encode() + b"\n")
    return backup


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_backup(folder: Path) -> Backup:
    """
    Read the description of a backup, and verify its files.

    @raise StartError: The backup is missing, damaged, or of a newer kubetwist.
    """
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_bytes())
        if manifest["format"] > FORMAT:
            raise StartError(f"the backup {folder} was created by a newer version of kubetwist")
        backup = _parse_manifest(manifest)
        if STORE not in backup.files:
            raise ValueError
        for name, digest in backup.files.items():
            if ".." in Path(name).parts or Path(name).is_absolute():
                raise ValueError
            if _digest(folder / name) != digest:
                raise StartError(f"the backup {folder} is damaged: {name} has changed")
    except OSError as error:
        if not (folder / MANIFEST).exists():
            raise StartError(f"{folder} is not a backup: it has no {MANIFEST} in it") from None
        raise StartError(f"the backup {folder} cannot be read: {error.strerror}: {error.filename}") from error
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StartError(f"the backup {folder} is damaged: {MANIFEST} in it cannot be read") from None
    return backup


def _parse_manifest(manifest: Any) -> Backup:
    return Backup(
        str(manifest["taken"]),
        int(manifest["revision"]),
        int(manifest["keys"]),
        dict(manifest["files"]),
        int(manifest.get("history", 0)),
        int(manifest.get("damaged", 0)),
    )


def read_manifest(folder: Path) -> Backup | None:
    """Return the description of a backup without a check of its files; L{None} if it is none, or unreadable."""
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_bytes())
        return _parse_manifest(manifest) if manifest["format"] <= FORMAT else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def verify_backup(folder: Path) -> Backup:
    """
    Check all files of a backup against its manifest, and each row of its store against its checksum.

    @raise StartError: The backup is missing, damaged, or of a newer kubetwist.
    @raise StorageError: Its store is damaged.
    """
    backup = read_backup(folder)
    summary = verify_copy(str(folder / STORE))
    if (summary.revision, summary.keys) != (backup.revision, backup.keys):
        raise StartError(f"the backup {folder} is damaged: {MANIFEST} does not describe its store")
    return backup


def restore(
    source: Path,
    target: Path,
    bump: int,
    *,
    replace: bool = False,
    report: Callable[[str], object],
    changes: Sequence[Segment] = (),
    revision: int = 0,
    store_format: int = STORE_FORMAT,
) -> Summary:
    """
    Create the data directory C{target} from a backup.

    Previous content is kept in a subdirectory. After an interruption no server starts on the directory, and the
    restore can be repeated.

    @param bump: See L{kubetwist.storage.sqlite.backup.restore_copy}.
    @param replace: Whether a directory with a store may be used.
    @param report: Prints a line about the content that is kept.
    @param changes: Later changes to apply, see L{apply_segments}.
    @param revision: The revision up to which they are applied.
    @param store_format: The format of the restored store; a former one for an older kubetwist.
    @raise StartError: Something cannot be read or written, or the directory is in use.
    @raise StorageError: The backup's store is damaged.
    """
    backup = read_backup(source)
    data = DataDirectory(target)
    data.lock()
    try:
        restore_interrupted = (data.path / RESTORE_MARKER).exists()
        if (data.path / STORE).exists() and not (replace or restore_interrupted):
            raise StartError(f"there is a {STORE} in {target} already: --replace moves it aside")
        for leftover in data.path.glob(".restored.*"):
            shutil.rmtree(leftover)
        new = data.path / f".restored.{os.getpid()}"
        new.mkdir(mode=0o700)
        try:
            for name in backup.files:
                (new / name).parent.mkdir(mode=0o700, exist_ok=True)
                _copy_file(source / name, new / name)
            verify_copy(str(new / STORE))
            if changes:
                apply_segments(str(new / STORE), changes, revision)
                verify_copy(str(new / STORE))
            restored = restore_copy(str(new / STORE), bump, store_format)
            _install_restored(data, new, backup, report)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise StartError(f"cannot restore into {target}: {error.strerror or error}") from error
    finally:
        data.close()
    return restored


def _copy_file(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    mode = 0o644 if target.suffix in (".crt", ".pub") else 0o600
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _install_restored(data: DataDirectory, new: Path, backup: Backup, report: Callable[[str], object]) -> None:
    folder = data.path
    write_file(folder / RESTORE_MARKER, b"")
    old = [f"{STORE}{suffix}" for suffix in _STORE_SUFFIXES]
    if backup.has_keys:
        # The kubeconfig is created again, with the restored certificates.
        old += [KEYS, data.kubeconfig.name]
    present = [name for name in old if (folder / name).exists()]
    if present:
        replaced_folder = _unused(folder / f"replaced-{now().replace(':', '')}")
        replaced_folder.mkdir(mode=0o700)
        for name in present:
            (folder / name).rename(replaced_folder / name)
        report(f"what was in {folder} is in {replaced_folder}")
    for path in sorted(new.iterdir()):
        path.rename(folder / path.name)
        sync_directory(folder)
    (folder / RESTORE_MARKER).unlink()
    sync_directory(folder)


def _unused(path: Path) -> Path:
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
