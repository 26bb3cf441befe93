"""
Measure the memory and the CPU time that a server needs, by numbers of objects and of watches.

    python benchmarks/sizing.py [--objects 1000,10000,100000] [--watchers 0,100,1000,5000] [--folder STORES]

For each number of objects (config maps of 1 kB, written directly into the store) a server is started. For each
number of watches the script prints a row of a table in Markdown: the resident memory after the events, the CPU time of
the server (user and system) while it is idle, and per write that is delivered to all watches. Watches are of HTTP/2,
ten per connection, and all of one namespace; the writer changes config maps of that namespace.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from pathlib import Path

from fanout import Rounds, Setting, cpu_seconds
from growth import CONFIGMAPS, fill, namespace_of, read_first, settle
from load import Target

from kubetwist.testing import SubprocessServer

#: Watches of one connection, as of a client with informers.
STREAMS = 10
#: Events of a measurement, of all watches together.
EVENTS = 30_000
#: Writes of a measurement.
FEWEST, MOST = 20, 200
HEADER = (
    "| objects | watches | memory, MiB | idle, % of a core | CPU time per write, ms |",
    "|---|---|---|---|---|",
)


def row(target: Target, objects: int, watchers: int, seconds: float) -> str:
    """
    Return the row of one measurement.

    @param target: The server.
    @param objects: The number of its objects.
    @param watchers: The number of watches to open.
    @param seconds: Duration of the idle time, in seconds.
    """
    assert target.pid is not None, "the process of the server is known"
    path = CONFIGMAPS.format("sizing")
    version = target.call("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
    rounds = Rounds(target, path, version, Setting(watchers, 1, "http2", "json", STREAMS))
    try:
        time.sleep(1 + watchers / 1000)
        for _ in range(5):
            rounds.one()
        settle(target.pid)
        before = cpu_seconds(target.pid)
        time.sleep(seconds)
        idle = (cpu_seconds(target.pid) - before) / seconds
        count = max(FEWEST, min(MOST, EVENTS // max(watchers, 1)))
        before = cpu_seconds(target.pid)
        for _ in range(count):
            rounds.one()
        spent = (cpu_seconds(target.pid) - before) / count
        return f"| {objects:,} | {watchers:,} | {target.memory():.0f} | {idle * 100:.1f} | {spent * 1000:.1f} |"
    finally:
        rounds.close()


def main() -> None:
    """Fill the stores, start a server for each, measure, print."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="1000,10000,100000", help="the numbers of objects")
    parser.add_argument("--watchers", default="0,100,1000,5000", help="the numbers of watches")
    parser.add_argument("--folder", type=Path, help="keep the stores here, and use them again")
    parser.add_argument("--seconds", type=float, default=10, help="duration of the idle time")
    parser.add_argument("--flag", action="append", default=[], help="a flag of the servers")
    options = parser.parse_args()
    print(*HEADER, sep="\n", flush=True)
    with contextlib.ExitStack() as stack:
        parent = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for objects in map(int, options.objects.split(",")):
            folder = parent / str(objects)
            if not folder.exists():
                fill(folder, objects)
            with SubprocessServer(*options.flag, data_dir=folder, timeout=600) as server:
                target = Target(server.url, server.token, server.pid)
                read_first(target, f"{CONFIGMAPS.format(namespace_of(0))}?limit=500")
                if not (folder / "sizing").exists():
                    target.call("POST", "/api/v1/namespaces", {"metadata": {"name": "sizing"}})
                    data = {"count": "-", "filling": "x" * 1000}
                    target.call("POST", CONFIGMAPS.format("sizing"), {"metadata": {"name": "one-0"}, "data": data})
                    (folder / "sizing").touch()
                settle(server.pid)
                for watchers in map(int, options.watchers.split(",")):
                    print(row(target, objects, watchers, options.seconds), flush=True)


if __name__ == "__main__":
    main()
