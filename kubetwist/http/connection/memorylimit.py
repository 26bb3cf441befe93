"""
Limit the memory of the process: measure it, and decide which requests are admitted.

Requests are refused before the limit is reached. At the limit the kernel kills the process, or allocations fail at any
directory, also in libraries that cannot handle that.
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

from ...api.quantity import parse_quantity
from .memoryrelease import find_trim

#: Seconds for which a measurement of the used memory is valid.
_SAMPLE_INTERVAL: Final = 0.01
#: Minimum seconds between two attempts to release memory, and between two garbage collections, during a shortage.
_TRIM_INTERVAL: Final = 1.0
_COLLECT_INTERVAL: Final = 10.0
#: Bytes that are kept for the case of a failed allocation.
_BALLAST: Final = 4 << 20
#: The share of the limit that is kept free, and its maximum in bytes.
_HEADROOM: Final = 1 / 8
_MAX_HEADROOM: Final = 64 << 20
#: Limits of at least this value mean unlimited.
_NO_LIMIT: Final = 1 << 60
#: C{M_ARENA_MAX} of glibc's C{mallopt}.
_ARENA_MAX: Final = -8
_PAGE: Final = resource.getpagesize()


def parse_memory(text: str) -> int | None:
    """
    Parse the value of C{--memory-limit}: a quantity such as 512Mi.

    @return: Bytes; 0 for no limit, L{None} for the limit of the control group.
    @raise ValueError: The value is not a quantity of bytes.
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


def group_limit(cgroup_file: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """
    Return the memory limit of this process's control group and its parents, in bytes; 0 for none.

    @param cgroup_file: The file that names the group, see cgroups(7).
    @param root: The mount point of the groups, version 1 or 2.
    """
    try:
        lines = cgroup_file.read_text("utf-8", "replace").splitlines()
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
        # In a container the path may be the one on the host, while the group is mounted at the root.
        folder = top / path.strip("/")
        for directory in (folder, *folder.parents):
            with suppress(OSError, ValueError):
                limits.append(int((directory / name).read_text("ascii")))
            if directory == top:
                break
    return min((limit for limit in limits if 0 < limit < _NO_LIMIT), default=0)


@frozen
class Usage:
    """
    Memory of a process, in bytes.

    @ivar resident: The resident set, which the limit of a control group counts.
    @ivar mapped: The address space, which C{RLIMIT_AS} counts.
    @ivar mapped_limit: The value of C{RLIMIT_AS}; 0 for none.
    """

    resident: int
    mapped: int = 0
    mapped_limit: int = 0


def read_usage() -> Usage:
    """Return the memory of this process."""
    with open("/proc/self/statm", "rb") as file:
        mapped, resident, *_ = file.read().split()
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return Usage(int(resident) * _PAGE, int(mapped) * _PAGE, 0 if limit == resource.RLIM_INFINITY else limit)


class MemoryGuard:
    """
    Admission of requests by the free memory.

    @ivar limit: Maximum resident bytes of the process; 0 if only its address space is limited.
    @ivar reserved: Bytes that admitted requests may still need.
    @ivar refused: The number of requests that were refused.
    @ivar on_shortage: Functions that free what is kept for later requests.
    """

    _log = Logger()

    def __init__(
        self, limit: int, usage: Callable[[], Usage] = read_usage, now: Callable[[], float] = monotonic
    ) -> None:
        self.limit = limit
        self.reserved = self.refused = 0
        self.on_shortage: list[Callable[[], object]] = []
        self._usage = usage
        self._now = now
        self._sampled = float("-inf")
        self._free_bytes = 0
        self._headroom = 0
        self._trimmed = self._collected = float("-inf")
        self._short = False
        self._ballast: bytearray | None = bytearray(_BALLAST)

    def admit(self, cost: int, *, urgent: bool = False) -> bool:
        """
        Return whether there is enough memory for a request.

        @param cost: Bytes that it may need at a time.
        @param urgent: Whether it may use most of the reserve: it frees memory, or needs little.
        """
        now = self._now()
        if now - self._sampled >= _SAMPLE_INTERVAL:
            self._sampled = now
            self._measure()
        free = self._headroom // 4 if urgent else self._headroom
        fits = self._free_bytes - (0 if urgent else self.reserved) - cost >= free
        if not fits:
            self._relieve(now)
        elif self._short and not urgent:
            self._short = False
            self._log.info("there is enough memory again")
        return fits

    def _measure(self) -> None:
        usage = self._usage()
        free_by_limit = []
        if self.limit:
            free_by_limit.append((self.limit - usage.resident, self.limit))
        if usage.mapped_limit:
            free_by_limit.append((usage.mapped_limit - usage.mapped, usage.mapped_limit))
        if not free_by_limit:
            self._free_bytes, self._headroom = _NO_LIMIT, 0
            return
        self._free_bytes, limit = min(free_by_limit)
        self._headroom = min(int(limit * _HEADROOM), _MAX_HEADROOM)

    def _relieve(self, now: float) -> None:
        """Release freed memory to the system, which the C library keeps otherwise."""
        if not self._short:
            self._short = True
            self._log.warn(
                "there is too little memory: requests are answered 429; {room} MiB are left of the limit",
                room=max(self._free_bytes, 0) >> 20,
            )
        if now - self._trimmed < _TRIM_INTERVAL:
            return
        self._trimmed = now
        for release in self.on_shortage:
            release()
        if now - self._collected >= _COLLECT_INTERVAL:
            self._collected = now
            gc.collect()
        trim()
        self._sampled = float("-inf")

    def exhausted(self) -> None:
        """Free the reserve after a failed allocation, so that the request can be answered."""
        self._ballast = None
        trim()

    def recover(self) -> None:
        """Allocate the reserve again, if there is room for it."""
        if self._ballast is None and self.admit(_BALLAST):
            with suppress(MemoryError):
                self._ballast = bytearray(_BALLAST)


def make_guard(configured_limit: int | None, processes: int = 1) -> MemoryGuard | None:
    """
    Return the guard of a process.

    @param configured_limit: The result of L{parse_memory} for C{--memory-limit}.
    @param processes: The number of processes of the server, which have equal shares of the limit.
    @return: The guard; L{None} without a limit.
    """
    limit = group_limit() if configured_limit is None else configured_limit
    if not limit and not (configured_limit is None and read_usage().mapped_limit):
        return None
    limit_arenas()
    return MemoryGuard(limit // processes)


def trim() -> None:
    """Release free memory to the system, if the C library can."""
    usage = find_trim()
    if usage is not None:
        usage(0)


def limit_arenas() -> None:
    """
    Limit the C library to one arena besides the main one.

    Otherwise each thread has an arena whose free memory other threads cannot use.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)
