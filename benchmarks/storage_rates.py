"""
Measure the storage alone: commits, and lists, watches and memory of the watch cache.

Usage: python benchmarks/storage_rates.py [--seconds 3] [--directory DIR] [--backend sqlite|memory]

The directory should be on the disk of the data directory: on tmpfs fsync has no cost.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react
from zope.interface import implementer

from kubetwist.api.record import (
    Draft,
    Record,
)
from kubetwist.api.storage import Write
from kubetwist.interfaces import IWatchSink
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.sqlite import SQLiteStorage

PREFIX = "/registry/configmaps/"


def draft(number: int) -> Draft:
    """Return a ConfigMap of 1.3 kB."""
    labels = {"app": f"a{number % 10}", "tier": "x"}
    obj = {
        "metadata": {"name": f"cm-{number:06}", "namespace": "default", "uid": f"{number:032x}", "labels": labels},
        "data": {f"key{index}": "v" * 100 for index in range(10)},
    }
    return Draft(orjson.dumps(obj), labels, {})


def decode(key: str, value: bytes, revision: int) -> Record:
    """Decode a stored value as a registry does."""
    obj = orjson.loads(value)
    return Record.from_draft(
        key,
        revision,
        Draft(
            b'{"metadata":{' + value[len('{"kind":"ConfigMap","metadata":{') :], obj["metadata"].get("labels") or {}, {}
        ),
    )


def write(number: int, name: int | None = None) -> Write:
    """Create or overwrite an object."""
    created = draft(number)
    key = f"{PREFIX}default/cm-{number if name is None else name:06}"
    return Write(key, b'{"kind":"ConfigMap",' + created.body[1:], 0 if name is None else None, attachment=created)


@implementer(IWatchSink)
class NullSink:
    """Sink that counts events."""

    def __init__(self) -> None:
        self.sent = 0

    def send(self, event_type: str, record: Any, event: Any) -> None:
        """See L{kubetwist.interfaces.IWatchSink}."""
        self.sent += 1

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """See L{kubetwist.interfaces.IWatchSink}."""

    def end(self, error: Any) -> None:
        """See L{kubetwist.interfaces.IWatchSink}."""


async def commits(storage: Any, writers: int, seconds: float, first: int) -> int:
    """Write with this number of concurrent writers; return the number of writes."""
    end = time.perf_counter() + seconds
    busy = time.process_time()
    counter = first

    async def writer() -> None:
        nonlocal counter
        while time.perf_counter() < end:
            counter += 1
            await storage.commit([write(counter)])

    await gatherResults([Deferred.fromCoroutine(writer()) for _ in range(writers)])
    busy = time.process_time() - busy
    done = counter - first
    print(f"{writers:4} writers: {done / seconds:8.0f} commits/s, {1e6 * busy / done:6.0f} us of CPU each, all threads")
    return counter


def timed(name: str, call: Callable[[], object], times: int) -> None:
    """Time a call."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    print(f"{name:42} {1e6 * (time.perf_counter() - start) / times:10.1f} us")


async def measure(reactor: Any, options: argparse.Namespace) -> None:
    """Run all measurements."""
    path = os.path.join(tempfile.mkdtemp(dir=options.directory), "store")
    make: Callable[[], Any] = {
        "sqlite": lambda: SQLiteStorage(path, reactor),
        "memory": lambda: MemoryStorage(reactor),
    }[options.backend]
    storage = make()
    await storage.open()
    cache = WatchCache(storage, PREFIX, decode, reactor)
    await cache.start()
    other_caches = [WatchCache(storage, f"/registry/other{number}/", decode, reactor) for number in range(60)]
    for other in other_caches:
        await other.start()
    counter = 0
    for writers in (1, 8, 100):
        counter = await commits(storage, writers, options.seconds, counter)
    start = time.perf_counter()
    await storage.compact(storage.revision)
    print(f"compaction of {storage.revision} revisions: {time.perf_counter() - start:.2f} s")
    await storage.close()
    if options.backend == "memory":
        return

    os.unlink(path)
    storage = make()
    await storage.open()
    await gatherResults([storage.commit([write(number)]) for number in range(10_000)])
    await storage.close()
    storage = make()
    start = time.perf_counter()
    await storage.open()
    opened = time.perf_counter()
    cache = WatchCache(storage, PREFIX, decode, reactor)
    await cache.start()
    print(
        f"opening with 10,000 objects: {opened - start:.3f} s, filling the cache: {time.perf_counter() - opened:.3f} s"
    )
    tracemalloc.start()
    other = WatchCache(storage, PREFIX, decode, reactor)
    await other.start()
    held, _ = tracemalloc.get_traced_memory()
    print(f"memory of a cache of 10,000 objects of {len(draft(1).body)} bytes: {held / 1e6:.1f} MB")
    tracemalloc.stop()
    timed("list of 10,000", cache.list, 100)
    timed("list of 500", lambda: cache.list("default/", limit=500, start_after="default/cm-004321"), 1000)
    timed("list of a tenth by label", lambda: cache.list(match=lambda record: record.labels.get("app") == "a3"), 100)
    for name in range(1000):
        await storage.commit([write(name, name)])
    timed(
        "list of 500, undoing 1,000 events",
        lambda: cache.list("default/", limit=500, start_after="default/cm-004321", revision=cache.revision - 1000),
        100,
    )

    fan = MemoryStorage(reactor)
    await fan.open()
    cache = WatchCache(fan, PREFIX, decode, reactor)
    await cache.start()
    writes = [write(number, number % 1000) for number in range(5000)]
    for watchers in (0, 100):
        sink = NullSink()
        for number in range(watchers):
            cache.watch("default/", sink=sink)
            for _ in range(10):
                cache.watch(f"elsewhere-{number}/", sink=sink)
        start = time.perf_counter()
        for one in writes:
            fan.commit([one])
        cost = 1e6 * (time.perf_counter() - start) / len(writes)
        print(f"commit to memory with {watchers} watchers (and 10 times as many elsewhere): {cost:.1f} us")


def main(reactor: Any) -> Any:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--directory", default=".")
    parser.add_argument("--backend", choices=("sqlite", "memory"), default="sqlite")
    work: Coroutine[Any, Any, None] = measure(reactor, parser.parse_args(sys.argv[1:]))
    return Deferred.fromCoroutine(work)


if __name__ == "__main__":
    react(main, [])
