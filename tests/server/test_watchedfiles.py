"""Tests of L{kubetwist.server.watchedfiles}."""

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
    """L{FileReloader} with a fake clock and synchronous threads."""

    def setUp(self) -> None:
        """Create a reloader for a file."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.path = self.folder / "file"
        self.clock = Clock()
        self.reported: list[Any] = []
        self.lines: list[str] = []
        self.files = FileReloader(self.clock, in_thread=lambda call: maybeDeferred(call))
        self.files._log = self  # type: ignore[assignment]
        self.files.start()
        self.addCleanup(self.files.stop)

    def error(self, text: str, **fields: Any) -> None:
        """Record an error that is logged."""
        self.lines.append(text.format(**fields))

    def info(self, text: str, **fields: Any) -> None:
        """Ignore a log line."""

    def failure(self, text: str, failure: Any = None, **fields: Any) -> None:
        """Fail the test."""
        raise AssertionError((text, fields, failure))

    def write(self, content: str, path: Path | None = None) -> None:
        """Replace a file by renaming, as mounted secrets are updated."""
        path = path or self.path
        new = path.with_suffix(".new")
        new.write_text(content)
        os.replace(new, path)

    def watch(self, **options: Any) -> Any:
        """Watch the file."""
        return self.files.watch([self.path], _upper, self.reported.append, "--flag", **options)

    def poll(self) -> None:
        """Advance the clock to the next poll."""
        self.clock.advance(POLL_INTERVAL)

    def test_initial(self) -> None:
        """The initial content is returned, and not reported as a change."""
        self.write("one")
        self.assertEqual(self.watch(), "ONE")
        self.poll()
        self.assertEqual(self.reported, [])

    def test_change(self) -> None:
        """A change is reported once."""
        self.write("one")
        self.watch()
        self.write("two")
        self.poll()
        self.poll()
        self.assertEqual(self.reported, ["TWO"])

    def test_poll_now(self) -> None:
        """Files are checked immediately on request; the next poll follows after the interval."""
        self.write("one")
        self.files.poll_now()
        self.watch()
        self.clock.advance(POLL_INTERVAL / 2)
        self.write("two")
        self.files.poll_now()
        self.assertEqual(self.reported, ["TWO"])
        self.write("three")
        self.clock.advance(POLL_INTERVAL / 2)
        self.assertEqual(self.reported, ["TWO"])
        self.clock.advance(POLL_INTERVAL / 2)
        self.assertEqual(self.reported, ["TWO", "THREE"])
        self.files.stop()
        self.write("four")
        self.successResultOf(self.files.poll_now())
        self.assertEqual(self.reported, ["TWO", "THREE"])

    def test_poll_now_while_polling(self) -> None:
        """A check that is requested during another one follows it."""
        looks: list[Deferred[Any]] = []

        def in_thread(call: Callable[[], Any]) -> Deferred[Any]:
            looks.append(Deferred())
            return looks[-1].addCallback(lambda _: call())

        files = FileReloader(self.clock, in_thread=in_thread)
        self.write("one")
        files.watch([self.path], _upper, self.reported.append, "--flag")
        files.start()
        self.addCleanup(files.stop)
        requests = [files.poll_now(), files.poll_now()]
        self.assertEqual(len(looks), 1)
        looks[0].callback(None)
        self.write("two")
        self.assertEqual(len(looks), 2)
        self.assertNoResult(requests[1])
        looks[1].callback(None)
        for request in requests:
            self.successResultOf(request)
        self.assertEqual((self.reported, len(looks)), (["TWO"], 2))

    def test_in_place(self) -> None:
        """A file that is rewritten in place is reported; a file whose time changes is not."""
        self.write("one")
        self.watch()
        self.path.write_text("four")
        self.poll()
        os.utime(self.path, (1, 1))
        self.poll()
        self.assertEqual(self.reported, ["FOUR"])

    def test_invalid_file(self) -> None:
        """An invalid file is not used, and its error is logged once."""
        self.write("one")
        self.watch()
        self.write("bad")
        self.poll()
        self.poll()
        self.assertEqual(self.reported, [])
        self.assertEqual(
            self.lines,
            ["cannot reload files, keeping the previous content source=--flag error=bad is bad"],
        )
        self.write("three")
        self.poll()
        self.assertEqual(self.reported, ["THREE"])
        counts = {key: count for key, (count, _) in self.files.reloads.items()}
        self.assertEqual(counts, {("--flag", "failure"): 1, ("--flag", "success"): 1})

    def test_refused(self) -> None:
        """A callback that rejects the new content keeps the previous one."""

        def use(value: Any) -> None:
            raise ValueError("not with me")

        self.write("one")
        self.files.watch([self.path], _upper, use, "--flag")
        self.write("two")
        self.poll()
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
            self.poll()
        self.assertEqual((len(answers), infos, self.lines), (3, [], []))
        answers[0].callback(None)
        answers[1].errback(ValueError("not now"))
        self.assertEqual(infos, [f"reloaded files source=--flag paths={self.path}"])
        self.assertEqual(self.lines, ["cannot reload files, keeping the previous content source=--flag error=not now"])
        with self.assertRaises(AssertionError):
            answers[2].errback(ZeroDivisionError())
            self.failureResultOf(answers[2]).raiseException()

    def test_missing_file(self) -> None:
        """A missing file keeps the previous content and is logged once; its return is reported."""
        self.write("one")
        self.watch()
        self.path.unlink()
        for _ in range(3):
            self.poll()
        self.assertEqual((len(self.lines), self.reported), (1, []))
        self.assertIn("No such file or directory", self.lines[0])
        self.write("two")
        self.poll()
        self.assertEqual(self.reported, ["TWO"])

    def test_too_long(self) -> None:
        """A file above the size limit is refused."""
        self.write("one")
        self.watch()
        with self.path.open("wb") as file:
            file.truncate(MAX_FILE_SIZE + 1)
        self.poll()
        self.assertIn(f"longer than {MAX_FILE_SIZE} bytes", self.lines[0])

    def test_pipe(self) -> None:
        """A pipe is read once at the start; a pipe that replaces a file is not read."""
        descriptors = os.pipe()
        os.write(descriptors[1], b"one")
        os.close(descriptors[1])
        pipe = f"/dev/fd/{descriptors[0]}"
        self.assertEqual(self.files.watch([pipe], _upper, self.reported.append, "--flag"), "ONE")
        os.close(descriptors[0])
        self.poll()
        self.assertEqual((self.reported, self.lines), ([], []))
        self.write("one")
        self.watch()
        self.path.unlink()
        os.mkfifo(self.path)
        self.poll()
        self.assertEqual(self.reported, [])
        self.assertIn("is no file", self.lines[0])

    def test_start(self) -> None:
        """Errors at the start are raised."""
        self.assertRaises(FileNotFoundError, self.watch)
        self.write("bad")
        self.assertRaises(ValueError, self.watch)

    def test_several_files(self) -> None:
        """Files of one watch are read together."""
        other = self.folder / "other"
        self.write("a")
        self.write("b", other)
        both = self.files.watch([self.path, other], _upper, self.reported.append, "--flag")
        self.write("c", other)
        self.poll()
        self.assertEqual((both, self.reported), ("A+B", ["A+C"]))

    def test_dependent_files(self) -> None:
        """A change of a dependent file, or of the set of dependent files, is a change."""
        inner, second = self.folder / "inner", self.folder / "second"
        self.write("x", inner)
        self.write("y", second)
        self.write("inner")
        self.watch(also=lambda value: [self.folder / value.lower()])
        self.write("z", inner)
        self.poll()
        self.assertEqual(self.reported, ["INNER"])
        self.write("second")
        self.poll()
        self.poll()
        self.assertEqual(self.reported, ["INNER", "SECOND"])
        self.write("q", second)
        self.poll()
        self.assertEqual(self.reported, ["INNER", "SECOND", "SECOND"])

    def test_stop(self) -> None:
        """After a stop nothing is reported, also for a poll in progress."""
        pending: list[Callable[[], Any]] = []
        waiting: Deferred[Any] = Deferred()

        def in_thread(call: Callable[[], Any]) -> Deferred[Any]:
            pending.append(call)
            return waiting

        files = FileReloader(self.clock, in_thread=in_thread)
        self.write("one")
        files.watch([self.path], _upper, self.reported.append, "--flag")
        files.start()
        self.write("two")
        self.poll()
        files.stop()
        waiting.callback(pending[0]())
        self.poll()
        self.assertEqual((self.reported, len(pending)), ([], 1))

    def test_no_files(self) -> None:
        """Without files nothing is polled."""
        self.assertEqual(self.clock.getDelayedCalls(), [])


class ThreadTests(TestCase):
    """L{FileReloader} with real threads."""

    async def test_threads(self) -> None:
        """Files are read in another thread, and changes are reported in the reactor's."""
        import threading

        from twisted.internet import reactor

        path = Path(self.mktemp())
        path.write_text("one")
        threads = []
        reported: Deferred[Any] = Deferred()

        def load(contents: Sequence[bytes]) -> bytes:
            threads.append(threading.get_ident())
            return contents[0]

        def use(value: bytes) -> None:
            threads.append(threading.get_ident())
            reported.callback(value)

        files = FileReloader(reactor, 0.01)
        files.watch([path], load, use, "--flag")
        path.write_text("four")
        files.start()
        self.addCleanup(files.stop)
        self.assertEqual(await reported, b"four")
        here = threading.get_ident()
        self.assertEqual([thread == here for thread in threads], [True, False, True])
