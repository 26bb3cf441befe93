"""
Measure the storage over a connection: CPU of a front process and of the storage process, per write and per barrier.

Usage: python benchmarks/remote_storage.py [--seconds 2] [--directory DIR] [--backend sqlite|memory] [--caches 60]

A storage process serves a store. A front writes to it, with a watch cache of the written objects and caches of other
resources; another front has the same caches and receives the changes. The same writes are made in one process for
comparison.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from storage_rates import PREFIX, decode, write

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react

from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.remote import RemoteStorage, StorageServer, connect
from kubetwist.storage.sqlite import SQLiteStorage

#: The other processes.
ROLES = ("storage process", "other front")


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_backend(options: argparse.Namespace, directory: str, reactor: Any) -> Any:
    """Return a store."""
    return MemoryStorage(reactor) if options.backend == "memory" else SQLiteStorage(f"{directory}/store", reactor)


async def serve(reactor: Any, options: argparse.Namespace, directory: str) -> None:
    """Be the storage process, until it is killed."""
    storage = make_backend(options, directory, reactor)
    await storage.open()
    server = StorageServer(storage, reactor)
    await server.start()
    server.listen(reactor, directory)
    await Deferred()


async def follow(reactor: Any, options: argparse.Namespace, directory: str) -> None:
    """Be a front that does not write, until it is killed."""
    storage = RemoteStorage(connect(reactor, directory), reactor)
    await storage.open()
    await fill(storage, reactor, options)
    print("following", flush=True)
    await Deferred()


async def commits(
    storage: Any, name: str, writers: int, options: argparse.Namespace, first: int, children: Sequence[int]
) -> int:
    """
    Write with some concurrent writers, and print CPU and rate.

    @param storage: The storage.
    @param name: What is measured.
    @param writers: The number of writers.
    @param options: The command line.
    @param first: The number of the first object.
    @param children: The storage process and the other front, if there are any.
    @return: The number of the last object.
    """
    end = time.perf_counter() + options.seconds
    counter = first
    busy, before = time.process_time(), [cpu_of(child) for child in children]

    async def writer() -> None:
        nonlocal counter
        while time.perf_counter() < end:
            counter += 1
            await storage.commit([write(counter)])

    await gatherResults([Deferred.fromCoroutine(writer()) for _ in range(writers)])
    busy = time.process_time() - busy
    done = counter - first
    costs = [1e6 * (cpu_of(child) - start) / done for child, start in zip(children, before, strict=True)]
    print(
        f"{name}, {writers:3} writers: {done / options.seconds:7.0f} commits/s, {1e6 * busy / done:5.0f} us here",
        *(
            f"{cost:5.0f} us in the {role}"
            for cost, role in zip(costs, ("storage process", "other front"), strict=False)
        ),
        sep=", ",
    )
    return counter


async def barriers(storage: RemoteStorage) -> None:
    """Measure the newest revision from shared memory, and requested by eight readers at a time."""
    count = 200_000
    busy = time.process_time()
    for _ in range(count):
        storage.newest_revision()
    print(f"newest revision in shared memory: {1e6 * (time.process_time() - busy) / count:.2f} us")
    client = storage._client
    assert client is not None
    page, client.revision_page = client.revision_page, None
    count, readers = 3000, 8
    busy = time.process_time()
    for _ in range(count):
        await gatherResults([Deferred.fromCoroutine(storage.current_revision()) for _ in range(readers)])
    busy = time.process_time() - busy
    print(f"requested for {readers} readers: {1e6 * busy / count / readers:.1f} us each in this process")
    client.revision_page = page


async def measure(reactor: Any, options: argparse.Namespace) -> None:
    """Run all measurements."""
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        os.mkdir(f"{directory}/alone")
        alone = make_backend(options, f"{directory}/alone", reactor)
        await alone.open()
        await fill(alone, reactor, options)
        counter = 0
        for writers in (1, 8, 100):
            counter = await commits(alone, "one process", writers, options, counter, ())
        await alone.close()
        with start(options, "--serve", directory) as server:
            storage = RemoteStorage(connect(reactor, directory), reactor)
            await storage.open()
            await fill(storage, reactor, options)
            counter = 0
            for writers in (1, 8, 100):
                counter = await commits(storage, "one front", writers, options, counter, [server.pid])
            with start(options, "--follow", directory) as follower:
                assert follower.stdout is not None
                follower.stdout.readline()
                children = [server.pid, follower.pid]
                for writers in (1, 8, 100):
                    counter = await commits(storage, "two fronts", writers, options, counter, children)
            await barriers(storage)
            await storage.close()


@contextmanager
def start(options: argparse.Namespace, role: str, directory: str) -> Iterator[subprocess.Popen[bytes]]:
    """
    Run this program in another role.

    @param options: The command line.
    @param role: The option that selects the role.
    @param directory: The directory of the socket.
    """
    arguments = [role, directory, "--backend", options.backend, "--caches", str(options.caches)]
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def fill(storage: Any, reactor: Any, options: argparse.Namespace) -> None:
    """Start caches."""
    await WatchCache(storage, PREFIX, decode, reactor).start()
    for number in range(options.caches):
        await WatchCache(storage, f"/registry/other{number}/", decode, reactor).start()


def main(reactor: Any) -> Any:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--directory", default=".")
    parser.add_argument("--backend", choices=("sqlite", "memory"), default="sqlite")
    parser.add_argument("--caches", type=int, default=60)
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    parser.add_argument("--follow", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(sys.argv[1:])
    work: Coroutine[Any, Any, None]
    if options.serve:
        work = serve(reactor, options, options.serve)
    elif options.follow:
        work = follow(reactor, options, options.follow)
    else:
        work = measure(reactor, options)
    return Deferred.fromCoroutine(work)


if __name__ == "__main__":
    react(main, [])
