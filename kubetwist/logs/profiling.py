"""
Profiling of a running process: sampled stacks of threads, and numbers of objects by type.

The profiles contain names of code and types, but no values, and so no secrets.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from time import perf_counter
from types import FrameType
from typing import Final

import orjson

from twisted.internet.interfaces import IDelayedCall

#: Seconds between two samples.
SAMPLE_INTERVAL: Final = 0.01
#: Maximum number of frames of a stack. The outer ones are dropped.
MAX_STACK_DEPTH: Final = 200
#: Maximum number of distinct stacks.
MAX_STACKS: Final = 20_000
_MOST_TYPES: Final = 200
_MOST_CALLS: Final = 500

_Place = tuple[str, str, int]


def place(frame: FrameType) -> _Place:
    """Return the function, file and line of a frame."""
    code = frame.f_code
    return code.co_qualname if sys.version_info >= (3, 11) else code.co_name, code.co_filename, frame.f_lineno


def stack_of(frame: FrameType | None) -> tuple[_Place, ...]:
    """Return the frames of a stack, innermost last."""
    frames: list[_Place] = []
    while frame is not None and len(frames) < MAX_STACK_DEPTH:
        frames.append(place(frame))
        frame = frame.f_back
    return tuple(reversed(frames))


class Sampler:
    """
    Samples the stack of a thread from another thread.

    @ivar stacks: Seconds per stack.
    """

    def __init__(self, thread: int, seconds: float, interval: float = SAMPLE_INTERVAL) -> None:
        """
        @param thread: Identifier of the sampled thread.
        @param seconds: Duration of the profile.
        @param interval: Seconds between two samples.
        """
        self._thread = thread
        self._seconds = seconds
        self._interval = interval
        self._stopped = threading.Event()
        self.stacks: dict[tuple[_Place, ...], float] = {}

    def stop(self) -> None:
        """Stop sampling."""
        self._stopped.set()

    def run(self) -> bytes:
        """Sample until the duration is over, and return the profile."""
        begun = before = perf_counter()
        while not self._stopped.wait(self._interval):
            now = perf_counter()
            self.sample(now - before)
            before = now
            if now - begun >= self._seconds:
                break
        return speedscope(self.stacks)

    def sample(self, weight: float) -> None:
        """Take one sample."""
        stack = stack_of(sys._current_frames().get(self._thread))
        if stack and (stack in self.stacks or len(self.stacks) < MAX_STACKS):
            self.stacks[stack] = self.stacks.get(stack, 0.0) + weight


def speedscope(stacks: dict[tuple[_Place, ...], float]) -> bytes:
    """Return a profile in the format of https://www.speedscope.app."""
    numbers: dict[_Place, int] = {}
    samples = [[numbers.setdefault(one, len(numbers)) for one in stack] for stack in stacks]
    total = sum(stacks.values())
    return orjson.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": "kubetwist",
            "name": "reactor",
            "activeProfileIndex": 0,
            "shared": {"frames": [{"name": name, "file": file, "line": line} for name, file, line in numbers]},
            "profiles": [
                {
                    "type": "sampled",
                    "name": "reactor",
                    "unit": "seconds",
                    "startValue": 0,
                    "endValue": total,
                    "samples": samples,
                    "weights": list(stacks.values()),
                }
            ],
        }
    )


def heap_text() -> str:
    """Return a table of the objects known to the garbage collector, by type. Call it in a thread."""
    counts: Counter[type] = Counter()
    sizes: Counter[type] = Counter()
    objects = gc.get_objects()
    for one in objects:
        kind = type(one)
        counts[kind] += 1
        try:
            sizes[kind] += sys.getsizeof(one)
        except Exception:  # noqa: S112 - types of libraries may fail to state their size
            continue
    del objects
    lines = [
        f"# objects: {counts.total()} ({sizes.total()} bytes, without referenced objects)",
        f"# frozen objects, not listed: {gc.get_freeze_count()}",
        f"# maximum resident set: {_resident()} bytes",
        f"# collections by generation: {' '.join(str(one['collections']) for one in gc.get_stats())}",
        f"{'count':>10} {'bytes':>12} type",
    ]
    lines += [
        f"{count:>10} {sizes[kind]:>12} {kind.__module__}.{kind.__qualname__}"
        for kind, count in counts.most_common(_MOST_TYPES)
    ]
    return "\n".join(lines) + "\n"


def _resident() -> int:
    from resource import RUSAGE_SELF, getrusage

    return getrusage(RUSAGE_SELF).ru_maxrss * 1024


def stacks_text(calls: Iterable[IDelayedCall], now: float) -> str:
    """
    Return the stacks of all threads, and the delayed calls of the reactor.

    @param calls: Delayed calls.
    @param now: Current time, of the clock of the calls.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines = []
    for number, frame in sys._current_frames().items():
        lines.append(f"thread {number} [{names.get(number, '?')}]:")
        lines += [f"    {name}\n        {file}:{line}" for name, file, line in reversed(stack_of(frame))]
        lines.append("")
    planned = sorted(calls, key=lambda call: call.getTime())
    lines.append(f"delayed calls: {len(planned)}")
    lines += [
        f"    in {call.getTime() - now:.3f}s {_callable(getattr(call, 'func', call))}" for call in planned[:_MOST_CALLS]
    ]
    return "\n".join(lines) + "\n"


def _callable(function: object) -> str:
    function = getattr(function, "func", function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"
