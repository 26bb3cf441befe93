"""
How much memory the process may have, how much it has, and what may still be begun with the rest.

Work is refused before the limit is reached. At the limit the kernel kills the process, or allocations fail in the
middle of anything, in libraries that do not survive that.
"""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from attrs import frozen

from twisted.logger import Logger

from ..api.quantity import parse_quantity
from .memoryrelease import find_trim

#: Seconds for which a reading of the memory in use counts.
_SAMPLE: Final = 0.01
#: Seconds between two attempts to give memory back, and between two collections of garbage, while there is too little.
_TRIM: Final = 1.0
_COLLECT: Final = 10.0
#: Bytes that are kept for the moment when an allocation fails all the same.
_BALLAST: Final = 4 << 20
#: The part of the limit that is left free, and how many bytes of it are enough.
_HEADROOM: Final = 1 / 8
_ENOUGH: Final = 64 << 20
#: Limits from here on are none.
_NO_LIMIT: Final = 1 << 60
#: C{M_ARENA_MAX} of glibc's C{mallopt}.
_ARENA_MAX: Final = -8
_PAGE: Final = resource.getpagesize()


def parse_memory(text: str) -> int | None:
    """
    Read the value of C{--memory-limit}: a quantity such as 512Mi.

    @return: Bytes; 0 for no limit, L{None} for that of the control group.
    @raise ValueError: It is no quantity of bytes.
    """
    if not text:
        return None
    try:
        value = parse_quantity(text)
    except ValueError:
        raise ValueError("it must be a quantity such as 512Mi") from None
    if value < 0:
        raise ValueError("it must not be negative")
    return int(value)


def group_limit(own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """
    Return the limit of memory of the control group of this process, and of those around it, in bytes; 0 for none.

    @param own: Names the group, see cgroups(7).
    @param root: Where the groups are, of version 1 or 2.
    """
    try:
        lines = own.read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    limits = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            top, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        # In a container the path may be the host's, and the group stands at the root.
        folder = top / path.strip("/")
        for place in (folder, *folder.parents):
            with suppress(OSError, ValueError):
                limits.append(int((place / name).read_text("ascii")))
            if place == top:
                break
    return min((limit for limit in limits if 0 < limit < _NO_LIMIT), default=0)


@frozen
class Usage:
    """
    Memory of a process, in bytes.

    @ivar resident: What the limit of a control group counts.
    @ivar mapped: What C{RLIMIT_AS} counts.
    @ivar mapped_limit: That limit; 0 for none.
    """

    resident: int
    mapped: int = 0
    mapped_limit: int = 0


def read_usage() -> Usage:
    """The memory of this process."""
    with open("/proc/self/statm", "rb") as file:
        mapped, resident, *_ = file.read().split()
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return Usage(int(resident) * _PAGE, int(mapped) * _PAGE, 0 if limit == resource.RLIM_INFINITY else limit)


class MemoryGuard:
    """
    Says what may be begun.

    @ivar limit: Bytes that the process may have resident; 0 for no limit but that of its address space.
    @ivar reserved: Bytes that requests which were admitted may need yet.
    """

    _log = Logger()

    def __init__(
        self, limit: int, usage: Callable[[], Usage] = read_usage, now: Callable[[], float] = monotonic
    ) -> None:
        self.limit = limit
        self.reserved = 0
        self._usage = usage
        self._now = now
        self._sampled = float("-inf")
        self._room = 0
        self._headroom = 0
        self._trimmed = self._collected = float("-inf")
        self._short = False
        self._ballast: bytearray | None = bytearray(_BALLAST)

    def admit(self, cost: int, *, urgent: bool = False) -> bool:
        """
        Whether there is memory for a request.

        @param cost: Bytes that it may need at a time.
        @param urgent: Whether it may have most of what is left free for others: it gives memory back, or needs little.
        """
        now = self._now()
        if now - self._sampled >= _SAMPLE:
            self._sampled = now
            self._measure()
        free = self._headroom // 4 if urgent else self._headroom
        fits = self._room - (0 if urgent else self.reserved) - cost >= free
        if not fits:
            self._relieve(now)
        elif self._short and not urgent:
            self._short = False
            self._log.info("there is enough memory again")
        return fits

    def _measure(self) -> None:
        found = self._usage()
        rooms = []
        if self.limit:
            rooms.append((self.limit - found.resident, self.limit))
        if found.mapped_limit:
            rooms.append((found.mapped_limit - found.mapped, found.mapped_limit))
        if not rooms:
            self._room, self._headroom = _NO_LIMIT, 0
            return
        self._room, limit = min(rooms)
        self._headroom = min(int(limit * _HEADROOM), _ENOUGH)

    def _relieve(self, now: float) -> None:
        """Give back what was freed: the C library keeps it otherwise."""
        if not self._short:
            self._short = True
            self._log.warn(
                "there is too little memory: requests are answered 429; {room} MiB are left of the limit",
                room=max(self._room, 0) >> 20,
            )
        if now - self._trimmed < _TRIM:
            return
        self._trimmed = now
        if now - self._collected >= _COLLECT:
            self._collected = now
            gc.collect()
        trim()
        self._sampled = float("-inf")

    def exhausted(self) -> None:
        """An allocation has failed: free what is kept for this, so that the request can be answered."""
        self._ballast = None
        trim()

    def recover(self) -> None:
        """Keep something for the next time, where there is room for it."""
        if self._ballast is None and self.admit(_BALLAST):
            with suppress(MemoryError):
                self._ballast = bytearray(_BALLAST)


def make_guard(given: int | None) -> MemoryGuard | None:
    """
    Make the guard of a server.

    @param given: What L{parse_memory} made of C{--memory-limit}.
    @return: L{None} where there is no limit.
    """
    limit = group_limit() if given is None else given
    if not limit and not (given is None and read_usage().mapped_limit):
        return None
    limit_arenas()
    return MemoryGuard(limit)


def trim() -> None:
    """Give free memory back to the system, where the C library can."""
    found = find_trim()
    if found is not None:
        found(0)


def limit_arenas() -> None:
    """
    Have the C library use one arena more than the main one at most.

    Each thread has one of its own otherwise, and what is free in one is of no use to another.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)
