"""
Measure servers with 10,000, 100,000 and 1,000,000 stored objects of 1 kB.

Each store is written directly: a server creates one ConfigMap, and its row is repeated with other names and checksums.
For each size: the seconds from the start of the process to ready, the seconds until the first list of the resource is
answered, the longest time for which another request waited, and the memory per object. Then the CPU time (user
and system) of the server per request, for all servers in turns, and the ratio to the smallest size.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import random
import sqlite3
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from attrs import define, field
from load import Target, send, trusting

from kubetwist.storage.sqlite._checksums import row_sum
from kubetwist.storage.sqlite._format import PLACE_BITS
from kubetwist.testing import SubprocessServer

NAMESPACE_OBJECTS = 10_000
TEMPLATE = "template-000000000"
#: Bytes of the stored JSON of an object.
SIZE = 1024
CONFIGMAPS = "/api/v1/namespaces/{}/configmaps"


def namespace_of(number: int) -> str:
    """Return the namespace of an object."""
    return f"growth-{number // NAMESPACE_OBJECTS:03}"


def name_of(number: int) -> str:
    """Return the name of an object; its length is constant."""
    return f"{TEMPLATE[:-9]}{number:09}"


def config_map(name: str, padding: int) -> dict[str, object]:
    """Return an object with C{padding} bytes of data in four keys."""
    data = {f"key-{number}": "v" * (padding // 4) for number in range(4)}
    return {"metadata": {"name": name, "labels": {"app": f"a-{name[-1]}", "tier": "x"}}, "data": data}


def fill(folder: Path, count: int) -> None:
    """Create a data directory with C{count} objects."""
    with SubprocessServer("--controllers=", data_dir=folder) as server:
        target = Target(server.url, server.token, server.pid)
        for number in range(0, count, NAMESPACE_OBJECTS):
            target.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace_of(number)}})
        target.call("POST", CONFIGMAPS.format(namespace_of(0)), config_map(TEMPLATE, 0))
    path = folder / "store.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    key, value = connection.execute("SELECT key, value FROM log WHERE key LIKE ?", (f"%{TEMPLATE}",)).fetchone()
    (newest,) = connection.execute("SELECT max(id) >> ? FROM log", (PLACE_BITS,)).fetchone()
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", _rows(key, value, count, newest + 1))
    connection.execute("COMMIT")
    connection.close()


def _rows(key: str, value: bytes, count: int, revision: int) -> Iterator[tuple[object, ...]]:
    """Yield rows of the log: the template with other names, in random order, as clients would create them."""
    body = value.replace(b'"key-0":""', b'"key-0":"%b"' % (b"v" * (SIZE - len(value))))
    uid = body.partition(b'"uid":"')[2].partition(b'"')[0]
    numbers = list(range(count))
    random.Random(1).shuffle(numbers)
    for place, number in enumerate(numbers):
        namespace, name = namespace_of(number), name_of(number)
        other = body.replace(TEMPLATE.encode(), name.encode()).replace(namespace_of(0).encode(), namespace.encode())
        other = other.replace(uid, str(uuid.UUID(int=number)).encode())
        other = other.replace(b'"app":"a-0"', b'"app":"a-%d"' % (number % 10))
        row = (revision + place) << PLACE_BITS, key.replace(TEMPLATE, name).replace(namespace_of(0), namespace), 0, None
        yield *row, other, row_sum(*row, other)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process: user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(pid: int) -> None:
    """Wait until a process is idle: controllers process all objects when the cache is filled."""
    spent = -1.0
    while cpu_seconds(pid) - spent > 0.05:
        spent = cpu_seconds(pid)
        time.sleep(1)


def read_first(target: Target, path: str) -> float:
    """Return the seconds until a GET succeeds; it is repeated while the server fills the cache."""
    began = time.perf_counter()
    while True:
        status = read(target, path)
        if status == 200:
            return time.perf_counter() - began
        if status != 429:
            raise SystemExit(f"GET {path}: {status}")


def read(target: Target, path: str) -> int:
    """Send a GET over a new connection; return the status."""
    parts = urlsplit(target.url)
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=trusting(), timeout=600)
    connection.request("GET", path, headers={"Authorization": f"Bearer {target.token}"})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def measure_waits(target: Target, stop: threading.Event, waits: list[float]) -> None:
    """Send small requests over one connection until C{stop} is set, and note the seconds of each."""
    parts = urlsplit(target.url)
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=trusting(), timeout=600)
    connection.connect()
    while not stop.is_set():
        began = time.perf_counter()
        connection.request("GET", "/version", headers={"Authorization": f"Bearer {target.token}"})
        connection.getresponse().read()
        waits.append(time.perf_counter() - began)
        time.sleep(0.001)
    connection.close()


@define
class Grown:
    """
    A server with many objects.

    @ivar rates: CPU milliseconds per request, by kind of request, one for each round.
    """

    count: int
    target: Target
    rates: dict[str, list[float]] = field(factory=dict)

    def requests(self, kind: str, round_number: int) -> tuple[list[bytes], int]:
        """Return requests of one kind for random objects, and the number of connections to send them on."""
        drawn = random.Random(round_number)
        numbers = [drawn.randrange(self.count) for _ in range(2000)]
        paths = [f"{CONFIGMAPS.format(namespace_of(number))}/{name_of(number)}" for number in numbers]
        request = self.target.request
        if kind == "get":
            return [request("GET", path) for path in paths], 8
        if kind == "list500":
            return [request("GET", f"{path.rpartition('/')[0]}?limit=500") for path in paths[:20]], 2
        if kind == "patch":
            merge = {"Content_Type": "application/merge-patch+json"}
            patches = ({"data": {"key-1": f"{round_number}-{number}"}} for number in numbers)
            return [request("PATCH", path, patch, **merge) for path, patch in zip(paths, patches, strict=True)], 8
        names = (f"new-{round_number}-{place}" for place in range(30_000))
        json_type = {"Content_Type": "application/json"}
        collection = CONFIGMAPS.format(namespace_of(numbers[0]))
        return [request("POST", collection, config_map(name, 600), **json_type) for name in names], 8

    def measure(self, kind: str, round_number: int, seconds: float) -> None:
        """Add the CPU time per request of one round."""
        assert self.target.pid is not None
        requests, connections = self.requests(kind, round_number)
        before = cpu_seconds(self.target.pid)
        load = send(self.target.url, requests, connections, seconds)
        if load.failed:
            raise SystemExit(f"{kind}: {load.failed} requests failed")
        spent = cpu_seconds(self.target.pid) - before
        self.rates.setdefault(kind, []).append(spent / (load.rate * max(1, round(seconds))) * 1000)
        self.rates.setdefault(f"{kind} p99", []).append(load.p99)


def start(count: int, folder: Path, flags: list[str], stack: contextlib.ExitStack) -> Grown:
    """Start a server over C{count} objects; print its start, its first list, and its memory."""
    began = time.perf_counter()
    server = stack.enter_context(SubprocessServer(*flags, data_dir=folder, timeout=600))
    ready = time.perf_counter() - began
    target = Target(server.url, server.token, server.pid)
    before, start_cpu = target.memory(), cpu_seconds(server.pid)
    waits: list[float] = []
    stop = threading.Event()
    thread = threading.Thread(target=measure_waits, args=(target, stop, waits))
    thread.start()
    first = read_first(target, f"{CONFIGMAPS.format(namespace_of(0))}?limit=500")
    stop.set()
    thread.join()
    settle(server.pid)
    memory = target.memory()
    per_object = memory * 1.048576 * 1000 / count
    print(f"{count:>9} objects: ready after {ready:.2f} s, CPU {start_cpu:.1f} s, {before:.0f} MiB")
    print(f"{'':17} first list after {first:.2f} s")
    print(f"{'':17} waits: median {statistics.median(waits) * 1000:.1f} ms, longest {max(waits) * 1000:.1f} ms")
    print(
        f"{'':17} then {memory:.0f} MiB, {per_object:.2f} kB per object, CPU {cpu_seconds(server.pid):.1f} s",
        flush=True,
    )
    return Grown(count, target)


def main() -> None:
    """Fill the stores, start the servers, measure in turns, print."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="10000,100000,1000000", help="the numbers of objects")
    parser.add_argument("--folder", type=Path, help="keep the stores here, and use them again")
    parser.add_argument("--flag", action="append", default=[], help="a flag of the servers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    counts = list(map(int, options.objects.split(",")))
    with contextlib.ExitStack() as stack:
        parent = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for count in counts:
            if not (parent / str(count)).exists():
                began = time.perf_counter()
                fill(parent / str(count), count)
                print(f"{count:>9} objects: written in {time.perf_counter() - began:.1f} s", flush=True)
        servers = [start(count, parent / str(count), options.flag, stack) for count in counts]
        for kind in ("get", "list500", "patch", "create"):
            for round_number in range(options.rounds):
                for server in servers:
                    server.measure(kind, round_number + int(time.time()), options.seconds)
            smallest = statistics.median(servers[0].rates[kind])
            for server in servers:
                spent = statistics.median(server.rates[kind])
                p99 = statistics.median(server.rates[f"{kind} p99"])
                print(
                    f"{kind:8} {server.count:>9} objects: {spent:7.3f} ms of CPU, {1000 / spent:8.0f}/s on one core, "
                    f"{smallest / spent:5.2f} of the smallest; p99 {p99:.1f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
