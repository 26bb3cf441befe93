"""Tests for F{benchmarks/requestflow.py}: the recorder of calls and the derived figures."""

from __future__ import annotations

import sys
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/requestflow.py")

PYPROJECT = """
[[tool.importlinter.contracts]]
type = "forbidden"

[[tool.importlinter.contracts]]
type = "layers"
containers = ["kubetwist"]
layers = ["server", "filters", "audit | registry", "api"]
"""
HEIGHTS = {"server": 3, "filters": 2, "audit": 1, "registry": 1, "api": 0}


def call(caller: str, file: str, place: str = "f:1", name: str = "g") -> Any:
    """Return a call."""
    return script.Call(0, caller, place, file, name)


class FigureTests(SynchronousTestCase):
    """Calls are counted by file, and by package."""

    def test_layers(self) -> None:
        """The heights of packages are read from the contract of layers; packages of one line have the same."""
        self.assertEqual(HEIGHTS, script.read_layers(PYPROJECT))

    def test_from_below(self) -> None:
        """A call from a lower layer is from below; a call from the same layer, from above or by the reactor is not."""
        for caller, expected in (("registry/a.py", True), ("server/a.py", False), ("filters/b.py", False), ("", False)):
            self.assertEqual(expected, script.enters_from_below(call(caller, "filters/a.py"), HEIGHTS))
        self.assertFalse(script.enters_from_below(call("audit/a.py", "registry/a.py"), HEIGHTS))

    def test_places(self) -> None:
        """Calls from one place are counted by place and by call."""
        calls = [
            call("registry/a.py", "filters/a.py", "f:1", "g"),
            call("registry/a.py", "filters/a.py", "f:1", "h"),
            call("registry/a.py", "filters/b.py", "f:2"),
            call("server/a.py", "filters/b.py"),
        ]
        figures = script.measure(calls, HEIGHTS)
        self.assertEqual({"filters": (2, 3, 1)}, figures.entries)

    def test_changes(self) -> None:
        """Files are counted once, changes of file as often as they happen, also without the lowest layer."""
        calls = [call("", file) for file in ("audit/a.py", "audit/b.py", "audit/b.py", "api/a.py", "audit/b.py")]
        figures = script.measure(calls, HEIGHTS)
        self.assertEqual((5, 3, 3, 1), figures[:4])

    def test_repetitions(self) -> None:
        """The calls of a loop count once, where the first of them is."""
        first, second, third = (call("", file) for file in ("api/a.py", "api/b.py", "api/c.py"))
        calls = [first, second, third, first._replace(depth=3), second]
        self.assertEqual([first, second, third], script.without_repetitions(calls))


class RecorderTests(SynchronousTestCase):
    """Calls of functions in a folder are recorded."""

    def record(self, function: Any) -> list[tuple[str, str, str]]:
        """Call a function, and return what was recorded: the place, the file and the name."""
        recorder = script.Recorder(__file__.rpartition("/")[0] + "/")
        previous = sys.getprofile()
        recorder.start()
        try:
            function()
        finally:
            recorder.stop()
            sys.setprofile(previous)
        return [(one.place.rpartition(":")[0], one.file, one.name) for one in recorder.calls]

    def test_coroutine(self) -> None:
        """A resumed coroutine is one call; code elsewhere and comprehensions are left out."""
        sorted_by = [3, 1, 2]

        def key(number: int) -> int:
            return -number

        class Suspension:
            def __await__(self) -> Any:
                yield

        async def waits() -> None:
            await Suspension()
            sorted_by.sort(key=key)

        def run() -> None:
            coroutine = waits()
            coroutine.send(None)
            try:
                coroutine.send(None)
            except StopIteration:
                [-number for number in sorted_by]

        names = [(place.rpartition(".")[2], name.rpartition(".")[2]) for place, _, name in self.record(run)]
        self.assertEqual(("record", "run"), names[0])
        self.assertEqual(
            [("run", "waits"), ("waits", "__await__"), ("waits", "key"), ("waits", "key"), ("waits", "key")], names[1:]
        )

    def test_began_before(self) -> None:
        """A coroutine that began before the recording is not recorded."""

        class Suspension:
            def __await__(self) -> Any:
                yield

        async def waits() -> None:
            await Suspension()

        coroutine = waits()
        coroutine.send(None)

        def resume() -> None:
            with self.assertRaises(StopIteration):
                coroutine.send(None)

        self.assertEqual(["resume"], [name.rpartition(".")[2] for _, _, name in self.record(resume)])
