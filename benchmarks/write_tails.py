"""
Measure the latencies of create, merge patch and server-side apply at several numbers of stored objects.

Prints the rate, the median, the 99th percentile and the maximum for 8 clients, the same of creates for one client, and
the CPU time (user and system) of the server per request. The directory should be on the disk of the data directory: on
tmpfs fsync has no cost.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
import time
from pathlib import Path

from growth import CONFIGMAPS, config_map, cpu_seconds, fill, name_of, namespace_of, start
from load import Target, send


def requests_of(kind: str, target: Target, count: int, seed: int) -> list[bytes]:
    """Return requests of a kind; patches change random objects."""
    drawn = random.Random(seed)
    if kind.startswith("create"):
        collection = CONFIGMAPS.format(namespace_of(0))
        names = (f"new-{seed}-{number}" for number in range(60_000))
        return [
            target.request("POST", collection, config_map(name, 600), Content_Type="application/json") for name in names
        ]
    requests = []
    for _ in range(10_000):
        number = drawn.randrange(count)
        path = f"{CONFIGMAPS.format(namespace_of(number))}/{name_of(number)}"
        data = {"data": {"key-1": f"{seed}-{drawn.random()}"}}
        if kind == "patch":
            requests.append(target.request("PATCH", path, data, Content_Type="application/merge-patch+json"))
        else:
            identity = {"name": name_of(number), "namespace": namespace_of(number)}
            applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": identity, **data}
            path += "?fieldManager=benchmark&force=true"
            requests.append(target.request("PATCH", path, applied, Content_Type="application/apply-patch+yaml"))
    return requests


def main() -> None:
    """Fill the stores, start one server after the other, measure, print."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="10000,100000", help="the numbers of objects")
    parser.add_argument("--folder", type=Path, help="keep the stores here, and use them again")
    parser.add_argument("--flag", action="append", default=[], help="a flag of the servers")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        parent = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for count in map(int, options.objects.split(",")):
            if not (parent / str(count)).exists():
                fill(parent / str(count), count)
            with contextlib.ExitStack() as running:
                target = start(count, parent / str(count), options.flag, running).target
                assert target.pid is not None
                for kind, connections in (("create alone", 1), ("create", 8), ("patch", 8), ("apply", 8)):
                    requests = requests_of(kind, target, count, int(time.time()))
                    before = cpu_seconds(target.pid)
                    load = send(target.url, requests, connections, options.seconds)
                    spent = (cpu_seconds(target.pid) - before) / max(1.0, load.rate * round(options.seconds))
                    print(
                        f"{count:>9} objects: {kind:12} {load.rate:7.0f}/s, p50 {load.p50:6.2f} ms, "
                        f"p99 {load.p99:6.1f} ms, longest {load.longest:6.1f} ms, CPU {spent * 1e6:5.0f} us"
                        f"{f', {load.failed} failed' if load.failed else ''}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
