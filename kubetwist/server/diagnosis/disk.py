"""Checks of the disk below the data directory: space, inodes, file system, and the latency of fsync."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from attrs import frozen

from .findings import Finding, error, note, ok, warning

#: Free space, in bytes, below which the server soon cannot write, and below which an operator should act.
LEAST_SPACE: Final = 64 << 20
LITTLE_SPACE: Final = 1 << 30
#: The same for inodes.
LEAST_INODES: Final = 100
LITTLE_INODES: Final = 10_000
#: p99 of fsync, in seconds. Like etcd, the server should have less than 10 ms.
GOOD_SYNC: Final = 0.010
SLOW_SYNC: Final = 0.050
#: Median below which no disk has written anything: a cache without a battery acknowledged it, or the file system lies.
_TOO_FAST: Final = 20e-6
#: Syncs of a measurement, its maximum duration in seconds, and the bytes of each.
_SYNCS: Final = 50
_SECONDS: Final = 3.0
_BLOCK: Final = b"\0" * 4096

_NETWORK: Final = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse.sshfs", "ceph", "fuse.glusterfs", "afs", "lustre")
)
_VOLATILE: Final = frozenset(("tmpfs", "ramfs"))


@frozen
class DiskFacts:
    """
    Facts about a file system.

    @ivar path: A directory in it.
    @ivar kind: The type, such as C{ext4}; C{""} if it is not known.
    @ivar free: Free bytes for this user.
    @ivar inodes: Free inodes; L{None} for a file system without a limit.
    @ivar syncs: Seconds of each measured fsync, sorted.
    @ivar problem: Why fsync could not be measured; C{""} if it was.
    """

    path: str
    kind: str
    free: int
    inodes: int | None
    syncs: tuple[float, ...] = ()
    problem: str = ""


def read_disk(path: Path, *, measure: bool = True) -> DiskFacts:
    """
    Read the facts of the file system of a directory.

    fsync is measured with a file that has no name, so that nothing remains after a kill.

    @param measure: Whether to measure fsync.
    @raise OSError: The directory cannot be read.
    """
    state = os.statvfs(path)
    syncs: tuple[float, ...] = ()
    problem = ""
    if measure:
        try:
            syncs = measure_syncs(path)
        except OSError as failure:
            problem = failure.strerror or str(failure)
    return DiskFacts(
        str(path),
        file_system(path),
        state.f_bavail * state.f_frsize,
        state.f_favail if state.f_files else None,
        syncs,
        problem,
    )


def measure_syncs(path: Path) -> tuple[float, ...]:
    """
    Return the sorted seconds of some fsyncs, each after 4 KiB were written.

    @raise OSError: The directory cannot be written.
    """
    took: list[float] = []
    with tempfile.TemporaryFile(dir=path, prefix=".kubetwist-doctor-") as file:
        descriptor = file.fileno()
        began = perf_counter()
        while len(took) < _SYNCS and perf_counter() - began < _SECONDS:
            os.write(descriptor, _BLOCK)
            before = perf_counter()
            os.fsync(descriptor)
            took.append(perf_counter() - before)
    return tuple(sorted(took))


def file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """
    Return the type of the file system of a path; C{""} if it is not known.

    @param mounts: The table of mounts, see proc_pid_mountinfo(5).
    """
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = -1, ""
    for line in lines:
        fields, _, more = line.partition(" - ")
        columns = fields.split()
        if len(columns) < 5 or not more:
            continue
        mounted = columns[4].encode().decode("unicode_escape", "replace")
        inside = real == mounted or real.startswith(mounted.rstrip("/") + "/")
        if inside and len(mounted) >= best:
            best, kind = len(mounted), more.split()[0]
    return kind


def percentile(values: tuple[float, ...], share: float) -> float:
    """Return a percentile of sorted values."""
    return values[min(int(len(values) * share), len(values) - 1)]


def judge_disk(facts: DiskFacts, *, durable: bool) -> Iterator[Finding]:
    """
    Judge the facts of a file system.

    @param durable: Whether the server stores objects there, and waits for the disk.
    """
    yield _space(facts)
    if facts.inodes is not None:
        yield _inodes(facts)
    if durable:
        yield _kind(facts)
        yield _latency(facts)


def _space(facts: DiskFacts) -> Finding:
    message = f"{facts.free >> 20} MiB are free at {facts.path}"
    if facts.free < LEAST_SPACE:
        return error("disk/space", message, "free space: writes fail when the disk is full")
    if facts.free < LITTLE_SPACE:
        return warning("disk/space", message, "free space or enlarge the file system before it is full")
    return ok("disk/space", message)


def _inodes(facts: DiskFacts) -> Finding:
    message = f"{facts.inodes} inodes are free at {facts.path}"
    assert facts.inodes is not None
    if facts.inodes < LEAST_INODES:
        return error("disk/inodes", message, "remove files: no file can be created without a free inode")
    if facts.inodes < LITTLE_INODES:
        return warning("disk/inodes", message, "look for directories with many small files, and remove them")
    return ok("disk/inodes", message)


def _kind(facts: DiskFacts) -> Finding:
    message = f"{facts.path} is on {facts.kind or 'an unknown file system'}"
    if facts.kind in _NETWORK:
        return error(
            "disk/filesystem",
            f"{message}, a file system of the network",
            "use a local disk: the store shares memory between processes and needs dependable locks and fsync",
        )
    if facts.kind in _VOLATILE:
        return warning(
            "disk/filesystem",
            f"{message}, which is lost when the machine stops",
            "use a disk, or --in-memory to state that nothing is kept",
        )
    return ok("disk/filesystem", message)


def _latency(facts: DiskFacts) -> Finding:
    if facts.problem or not facts.syncs:
        return warning(
            "disk/fsync",
            f"fsync could not be measured at {facts.path}: {facts.problem or 'no sync ended'}",
            "run the command as the user of the server, while the disk can be written",
        )
    p50, p99 = percentile(facts.syncs, 0.5), percentile(facts.syncs, 0.99)
    message = f"fsync takes {p50 * 1000:.2f} ms (p50) and {p99 * 1000:.2f} ms (p99) in {len(facts.syncs)} syncs"
    if p99 > SLOW_SYNC:
        return warning(
            "disk/fsync",
            message,
            f"use a faster disk, less than {GOOD_SYNC * 1000:.0f} ms: each group of writes waits for one fsync",
        )
    if p99 > GOOD_SYNC:
        return note("disk/fsync", message, f"writes are faster with less than {GOOD_SYNC * 1000:.0f} ms")
    if p50 < _TOO_FAST and facts.kind not in _VOLATILE:
        return note(
            "disk/fsync",
            f"{message}: too fast for a disk",
            "make sure that the write cache of the disk is protected against a power failure",
        )
    return ok("disk/fsync", message)
