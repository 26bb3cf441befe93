"""Tests for L{kubetwist.server.watchedfiles}."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.server.watchedfiles import MAX_FILE_SIZE, POLL_INTERVAL, FileReloader


def _upper(contents: Sequence[bytes]) -> str:
    text = b"+".join(contents).decode()
    if "bad" in text:
        raise ValueError(f"{text} is bad")
    return text.upper()


class FileReloaderTests(SynchronousTestCase):
    """Files that change, with a clock of the test's, and threads that are none."""

    def setUp(self) -> None:
        """A file, and somebody who looks at it."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.path = self.folder / "file"
        self.clock = Clock()
        self.told: list[Any] = []
        self.lines: list[str] = []
        self.files = FileReloader(self.clock, in_thread=lambda call: maybeDeferred(call))
        self.files._log = self  # type: ignore[assignment]
        self.files.start()
        self.addCleanup(self.files.stop)

    def error(self, text: str, **fields: Any) -> None:
        """A line of the log."""
        self.lines.append(text.format(**fields))

    def info(self, text: str, **fields: Any) -> None:
        """Nothing is wrong."""

    def failure(self, text: str, failure: Any = None, **fields: Any) -> None:
        """A bug."""
        raise AssertionError((text, fields, failure))

    def write(self, content: str, path: Path | None = None) -> None:
        """Replace a file, as those who mount secrets do."""
        path = path or self.path
        new = path.with_suffix(".new")
        new.write_text(content)
        os.replace(new, path)

    def watch(self, **others: Any) -> Any:
        """Begin to watch the file."""
        return self.files.watch([self.path], _upper, self.told.append, "--flag", **others)

    def look(self) -> None:
        """Let the time pass until the next look."""
        self.clock.advance(POLL_INTERVAL)

    def test_first(self) -> None:
        """What is there at the start is returned, and is no news."""
        self.write("one")
        self.assertEqual(self.watch(), "ONE")
        self.look()
        self.assertEqual(self.told, [])

    def test_change(self) -> None:
        """New content is told of once."""
        self.write("one")
        self.watch()
        self.write("two")
        self.look()
        self.look()
        self.assertEqual(self.told, ["TWO"])

    def test_look_now(self) -> None:
        """Files are checked immediately on request; the next check follows after the usual time."""
        self.write("one")
        self.files.poll_now()
        self.watch()
        self.clock.advance(POLL_INTERVAL / 2)
        self.write("two")
        self.files.poll_now()
        self.assertEqual(self.told, ["TWO"])
        self.write("three")
        self.clock.advance(POLL_INTERVAL / 2)
        self.assertEqual(self.told, ["TWO"])
        self.clock.advance(POLL_INTERVAL / 2)
        self.assertEqual(self.told, ["TWO", "THREE"])
        self.files.stop()
        self.write("four")
        self.files.poll_now()
        self.assertEqual(self.told, ["TWO", "THREE"])

    def test_look_now_while_looking(self) -> None:
        """A check that is requested during another one follows it."""
        looks: list[Deferred[Any]] = []

        def in_thread(call: Callable[[], Any]) -> Deferred[Any]:
            looks.append(Deferred())
            return looks[-1].addCallback(lambda _: call())

        files = FileReloader(self.clock, in_thread=in_thread)
        self.write("one")
        files.watch([self.path], _upper, self.told.append, "--flag")
        files.start()
        self.addCleanup(files.stop)
        files.poll_now()
        files.poll_now()
        self.assertEqual(len(looks), 1)
        looks[0].callback(None)
        self.write("two")
        self.assertEqual(len(looks), 2)
        looks[1].callback(None)
        self.assertEqual((self.told, len(looks)), (["TWO"], 2))

    def test_in_place(self) -> None:
        """A file that is written anew without being replaced is seen, too; one that is touched is no news."""
        self.write("one")
        self.watch()
        self.path.write_text("four")
        self.look()
        os.utime(self.path, (1, 1))
        self.look()
        self.assertEqual(self.told, ["FOUR"])

    def test_bad_file(self) -> None:
        """A bad new file is not told of, and the log says why, once."""
        self.write("one")
        self.watch()
        self.write("bad")
        self.look()
        self.look()
        self.assertEqual(self.told, [])
        self.assertEqual(
            self.lines,
            ["cannot reload files, keeping the previous content source=--flag error=bad is bad"],
        )
        self.write("three")
        self.look()
        self.assertEqual(self.told, ["THREE"])
        counts = {key: count for key, (count, _) in self.files.reloads.items()}
        self.assertEqual(counts, {("--flag", "failure"): 1, ("--flag", "success"): 1})

    def test_refused(self) -> None:
        """A callback that rejects the new content keeps the previous one."""

        def use(value: Any) -> None:
            raise ValueError("not with me")

        self.write("one")
        self.files.watch([self.path], _upper, use, "--flag")
        self.write("two")
        self.look()
        self.assertTrue(self.lines[0].endswith("error=not with me"), self.lines)

    def test_used_later(self) -> None:
        """The Deferred of a callback is awaited before the reload is logged; other files do not wait."""
        infos: list[str] = []
        self.info = lambda text, **fields: infos.append(text.format(**fields))  # type: ignore[method-assign]
        answers: list[Deferred[None]] = []

        def use(value: str) -> Deferred[None]:
            answers.append(Deferred())
            return answers[-1]

        self.write("one")
        self.files.watch([self.path], _upper, use, "--flag")
        for content in ("two", "three", "four"):
            self.write(content)
            self.look()
        self.assertEqual((len(answers), infos, self.lines), (3, [], []))
        answers[0].callback(None)
        answers[1].errback(ValueError("not now"))
        self.assertEqual(infos, [f"reloaded files source=--flag paths={self.path}"])
        self.assertEqual(self.lines, ["cannot reload files, keeping the previous content source=--flag error=not now"])
        with self.assertRaises(AssertionError):
            answers[2].errback(ZeroDivisionError())
            self.failureResultOf(answers[2]).raiseException()

    def test_missing_file(self) -> None:
        """A file that is gone changes nothing; the log says so once, and its return is seen."""
        self.write("one")
        self.watch()
        self.path.unlink()
        for _ in range(3):
            self.look()
        self.assertEqual((len(self.lines), self.told), (1, []))
        self.assertIn("No such file or directory", self.lines[0])
        self.write("two")
        self.look()
        self.assertEqual(self.told, ["TWO"])

    def test_too_long(self) -> None:
        """A file without end is refused."""
        self.write("one")
        self.watch()
        with self.path.open("wb") as file:
            file.truncate(MAX_FILE_SIZE + 1)
        self.look()
        self.assertIn(f"longer than {MAX_FILE_SIZE} bytes", self.lines[0])

    def test_pipe(self) -> None:
        """A pipe is read once, at the start; a pipe that takes the place of a file is not waited for."""
        descriptors = os.pipe()
        os.write(descriptors[1], b"one")
        os.close(descriptors[1])
        pipe = f"/dev/fd/{descriptors[0]}"
        self.assertEqual(self.files.watch([pipe], _upper, self.told.append, "--flag"), "ONE")
        os.close(descriptors[0])
        self.look()
        self.assertEqual((self.told, self.lines), ([], []))
        self.write("one")
        self.watch()
        self.path.unlink()
        os.mkfifo(self.path)
        self.look()
        self.assertEqual(self.told, [])
        self.assertIn("is no file", self.lines[0])

    def test_start(self) -> None:
        """At the start all that is wrong is raised."""
        self.assertRaises(FileNotFoundError, self.watch)
        self.write("bad")
        self.assertRaises(ValueError, self.watch)

    def test_several_files(self) -> None:
        """Files that belong together are read together."""
        other = self.folder / "other"
        self.write("a")
        self.write("b", other)
        both = self.files.watch([self.path, other], _upper, self.told.append, "--flag")
        self.write("c", other)
        self.look()
        self.assertEqual((both, self.told), ("A+B", ["A+C"]))

    def test_named_files(self) -> None:
        """A change of a file that a watched file names counts as one of the file itself; so does another name."""
        inner, second = self.folder / "inner", self.folder / "second"
        self.write("x", inner)
        self.write("y", second)
        self.write("inner")
        self.watch(also=lambda value: [self.folder / value.lower()])
        self.write("z", inner)
        self.look()
        self.assertEqual(self.told, ["INNER"])
        self.write("second")
        self.look()
        self.look()
        self.assertEqual(self.told, ["INNER", "SECOND"])
        self.write("q", second)
        self.look()
        self.assertEqual(self.told, ["INNER", "SECOND", "SECOND"])

    def test_stop(self) -> None:
        """After the end nobody is told anything, even if a look was under way."""
        pending: list[Callable[[], Any]] = []
        waiting: Deferred[Any] = Deferred()

        def in_thread(call: Callable[[], Any]) -> Deferred[Any]:
            pending.append(call)
            return waiting

        files = FileReloader(self.clock, in_thread=in_thread)
        self.write("one")
        files.watch([self.path], _upper, self.told.append, "--flag")
        files.start()
        self.write("two")
        self.look()
        files.stop()
        waiting.callback(pending[0]())
        self.look()
        self.assertEqual((self.told, len(pending)), ([], 1))

    def test_nothing_to_watch(self) -> None:
        """Without files nothing is ever looked at."""
        self.assertEqual(self.clock.getDelayedCalls(), [])


class ThreadTests(TestCase):
    """Files that change, looked at by a thread."""

    async def test_threads(self) -> None:
        """Files are read by another thread, and told of in the reactor's."""
        import threading

        from twisted.internet import reactor

        path = Path(self.mktemp())
        path.write_text("one")
        threads = []
        told: Deferred[Any] = Deferred()

        def load(contents: Sequence[bytes]) -> bytes:
            threads.append(threading.get_ident())
            return contents[0]

        def use(value: bytes) -> None:
            threads.append(threading.get_ident())
            told.callback(value)

        files = FileReloader(reactor, 0.01)
        files.watch([path], load, use, "--flag")
        path.write_text("four")
        files.start()
        self.addCleanup(files.stop)
        self.assertEqual(await told, b"four")
        here = threading.get_ident()
        self.assertEqual([thread == here for thread in threads], [True, False, True])
