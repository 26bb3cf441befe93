"""
Reload files while the server runs (Go: C{dynamiccertificates}).

Files are polled and loaded in a thread; callbacks run in the reactor's thread. If new content is invalid, the previous
content stays in use and the error is logged.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import define

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.times import posix_now
from ..interfaces import IServerReactor

T = TypeVar("T")

#: Seconds between two polls.
POLL_INTERVAL: Final = 5.0
#: Maximum size of a file in bytes.
MAX_FILE_SIZE: Final = 16 * 1024 * 1024

#: Parses the contents of files; raises L{ValueError} if they are invalid. Called in a thread, except the first time.
Load = Callable[[Sequence[bytes]], Any]
Stamp = tuple[object, ...]


@define(eq=False)
class _Watch:
    """
    A set of files that are read together.

    @ivar dependent_paths: Files that the content refers to, and whose changes count, too.
    @ivar stamp: File metadata of all files at the last read.
    @ivar digest: Digest of their contents at that time, or of the error if they could not be read.
    """

    paths: tuple[Path, ...]
    load: Load
    use: Callable[[Any], object]
    source: str
    also: Callable[[Any], Sequence[Path]]
    dependent_paths: tuple[Path, ...] = ()
    stamp: Stamp = ()
    digest: bytes = b""


@define
class _Change:
    """The result of reloading changed files: a value or an error."""

    watch: _Watch
    value: Any = None
    error: str = ""
    dependent_paths: tuple[Path, ...] = ()


class FileReloader:
    """Watcher that polls files and reloads them when they change."""

    _log = Logger()

    def __init__(
        self,
        reactor: IServerReactor,
        interval: float | None = None,
        in_thread: Callable[[Callable[[], list[_Change]]], Deferred[list[_Change]]] | None = None,
    ) -> None:
        """
        @param interval: Seconds between two polls; L{None} for L{POLL_INTERVAL}.
        @param in_thread: Runs a function in a thread; L{None} for the reactor's thread pool.
        """
        self._reactor = reactor
        self._interval = POLL_INTERVAL if interval is None else interval
        self._in_thread = in_thread or self._in_reactors_thread
        self.reloads: dict[tuple[str, str], tuple[int, float]] = {}
        self._watches: list[_Watch] = []
        self._timer: IDelayedCall | None = None
        self._running = False
        self._polling = False
        self._again = False
        #: Callers of L{poll_now}.
        self._waiting: list[Deferred[None]] = []

    def watch(
        self,
        paths: Sequence[str | Path],
        load: Callable[[Sequence[bytes]], T],
        use: Callable[[T], object],
        source: str,
        also: Callable[[T], Sequence[Path]] = lambda value: (),
    ) -> T:
        """
        Read files now, and reload them when they change.

        @param load: Parses the contents; called now, and later in a thread.
        @param use: Called in the reactor's thread with the result of C{load} after a change; raises L{ValueError} if it
            is invalid. A Deferred is awaited before the reload is logged.
        @param source: Source in log lines and metrics: the name of a flag.
        @param also: Returns dependent files, given the loaded value; their changes cause a reload, too.
        @return: The loaded value.
        @raise OSError: A file cannot be read.
        @raise ValueError: The contents are invalid or too long.
        """
        watch = _Watch(tuple(map(Path, paths)), load, use, source, also)
        watch.stamp = _stamp(watch.paths)
        contents = [_read(path) for path in watch.paths]
        value = load(contents)
        watch.dependent_paths = tuple(also(value))
        watch.digest = _digest(contents, watch.dependent_paths)
        watch.stamp += _stamp(watch.dependent_paths)
        if not all(map(_is_regular, watch.paths)):
            # A pipe cannot be read twice.
            return value
        self._watches.append(watch)
        if self._running and self._timer is None and not self._polling:
            self._later()
        return value

    def start(self) -> None:
        """Start polling."""
        self._running = True
        self._later()

    def poll_now(self) -> Deferred[None]:
        """
        Check the files now, or again after a check that is in progress.

        @return: Fires after the check, when changed files are in use or refused.
        """
        if not self._running or not self._watches:
            return succeed(None)
        checked: Deferred[None] = Deferred()
        self._waiting.append(checked)
        if self._polling:
            self._again = True
        else:
            if self._timer is not None:
                self._timer.cancel()
            self._poll()
        return checked

    def stop(self) -> None:
        """Stop polling. Idempotent."""
        self._running = False
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _later(self) -> None:
        if self._running and self._watches:
            self._timer = self._reactor.callLater(self._interval, self._poll)

    def _poll(self) -> None:
        self._timer = None
        self._polling = True
        checking = self._in_thread(self._changes)
        checking.addCallback(self._apply_changes)
        checking.addErrback(lambda failure: self._log.failure("checking files for changes failed", failure))
        checking.addCallback(self._polled)

    def _polled(self, _: object) -> None:
        self._polling = False
        again, self._again = self._again, False
        if again and self._running:
            self._poll()
            return
        self._later()
        waiting, self._waiting = self._waiting, []
        for checked in waiting:
            checked.callback(None)

    def _in_reactors_thread(self, call: Callable[[], T]) -> Deferred[T]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), call)

    def _changes(self) -> list[_Change]:
        """Return the changes; runs in a thread."""
        results = (_check(watch) for watch in list(self._watches))
        return [change for change in results if change is not None]

    def _apply_changes(self, changes: list[_Change]) -> None:
        for change in changes:
            watch = change.watch
            if not self._running:
                return
            if not change.error:
                watch.dependent_paths = change.dependent_paths
                try:
                    result = watch.use(change.value)
                    if isinstance(result, Deferred):
                        result.addCallbacks(self._used, self._refused, (watch,), {}, (watch,))
                        continue
                except ValueError as error:
                    change.error = str(error)
                except Exception:
                    self._log.failure("using the new content of {source} failed", source=watch.source)
                    continue
            if change.error:
                self._log_refused(watch, change.error)
            else:
                self._used(None, watch)

    def _count(self, watch: _Watch, status: str) -> None:
        count, _ = self.reloads.get((watch.source, status), (0, 0.0))
        self.reloads[watch.source, status] = (count + 1, posix_now())

    def _used(self, _: object, watch: _Watch) -> None:
        self._count(watch, "success")
        self._log.info(
            "reloaded files source={source} paths={paths}", source=watch.source, paths=", ".join(map(str, watch.paths))
        )

    def _refused(self, failure: Failure, watch: _Watch) -> None:
        if failure.check(ValueError):
            self._log_refused(watch, str(failure.value))
        else:
            self._log.failure("using the new content of {source} failed", failure, source=watch.source)

    def _log_refused(self, watch: _Watch, error_text: str) -> None:
        self._count(watch, "failure")
        self._log.error(
            "cannot reload files, keeping the previous content source={source} error={error}",
            source=watch.source,
            error=error_text,
        )


def _check(watch: _Watch) -> _Change | None:
    stamp = _stamp((*watch.paths, *watch.dependent_paths))
    if stamp == watch.stamp:
        return None
    watch.stamp = stamp
    try:
        contents = [_read_again(path) for path in watch.paths]
        digest = _digest(contents, watch.dependent_paths)
    except (OSError, ValueError) as error:
        contents, digest = [], b""
        error_text = f"cannot read {error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        digest = sha256(error_text.encode("utf-8", "replace")).digest()
        if digest == watch.digest:
            return None
        watch.digest = digest
        return _Change(watch, error=error_text)
    if digest == watch.digest:
        return None
    watch.digest = digest
    try:
        value = watch.load(contents)
        dependent_paths = tuple(watch.also(value))
    except (OSError, ValueError) as error:
        return _Change(watch, error=str(error))
    except RecursionError:
        return _Change(watch, error="it nests too deep")
    if dependent_paths != watch.dependent_paths:
        try:
            watch.digest = _digest(contents, dependent_paths)
        except (OSError, ValueError) as error:
            return _Change(watch, error=str(error))
        watch.stamp = _stamp((*watch.paths, *dependent_paths))
    return _Change(watch, value, dependent_paths=dependent_paths)


def _stamp(paths: Sequence[Path]) -> Stamp:
    results: list[object] = []
    for path in paths:
        try:
            state = os.stat(path)
        except OSError as error:
            results.append(error.errno)
        else:
            results.append((state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
    return tuple(results)


def _is_regular(path: Path) -> bool:
    return stat.S_ISREG(os.stat(path).st_mode)


def _read_again(path: Path) -> bytes:
    # Opening a pipe would block until a writer opens it.
    if not _is_regular(path):
        raise ValueError(f"{path} is no file")
    return _read(path)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_FILE_SIZE + 1)
    if len(content) > MAX_FILE_SIZE:
        raise ValueError(f"{path} is longer than {MAX_FILE_SIZE} bytes")
    return content


def _digest(contents: Sequence[bytes], dependent_paths: Sequence[Path]) -> bytes:
    digest = sha256()
    for content in (*contents, *map(_read_again, dependent_paths)):
        digest.update(sha256(content).digest())
    return digest.digest()
