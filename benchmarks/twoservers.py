"""
What a second server over the same etcd adds: rates of one server, and of two at the same time.

  get        GET of one object, 8 connections to each server
  list500    LIST with limit=500, 2 connections to each server
  getany     GET with resourceVersion=0, for which etcd is not asked, 8 connections to each server

In turns, one and two servers are sent requests for --seconds, --rounds times; medians count. Beside the rates stands
what they are to each other, and the processor time of a server per request. The rest of the machine matters:
generator and etcd run on it, too, and two servers need two processors that nobody else uses.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from load import Target, arguments, send, send_here

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer

MAPS = "/api/v1/namespaces/default/configmaps"
OBJECTS = 500
KINDS = {
    "get": (f"{MAPS}/cm-0000", 8),
    "list500": (f"{MAPS}?limit=500", 2),
    "getany": (f"{MAPS}/cm-0000?resourceVersion=0", 8),
}
TICKS = os.sysconf("SC_CLK_TCK")


def processor_time(pid: int) -> float:
    """Seconds of the processor that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Measured:
    """Rounds of one kind of request with a number of servers."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.costs: list[float] = []
        self.failed = 0

    def round(self, targets: list[Target], path: str, connections: int, seconds: float) -> None:
        """Send to all at once."""
        pids = [target.pid for target in targets if target.pid is not None]
        before, began = sum(map(processor_time, pids)), time.perf_counter()
        with ThreadPoolExecutor(len(targets)) as pool:
            loads = list(pool.map(lambda one: send(one.url, [one.request("GET", path)], connections, seconds), targets))
        took = time.perf_counter() - began
        rate = sum(load.rate for load in loads)
        self.rates.append(rate)
        self.costs.append((sum(map(processor_time, pids)) - before) / max(rate * min(seconds, took), 1))
        self.failed += sum(load.failed for load in loads)


def fill(target: Target) -> None:
    """Make the objects."""
    values = [
        {"metadata": {"name": f"cm-{number:04d}"}, "data": {f"key{key}": "v" * 60 for key in range(10)}}
        for number in range(OBJECTS)
    ]
    posts = [target.request("POST", MAPS, value, Content_Type="application/json") for value in values]
    load = asyncio.run(send_here(target.url, posts, 16, float("inf"), once=[]))
    assert not load.failed, load


def main() -> None:
    """Measure, and print."""
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with EtcdServer() as etcd:
        flags = [f"--etcd-servers={etcd.urls[0]}", "--controllers=", *options.flag]
        with SubprocessServer(*flags) as one, SubprocessServer(*flags) as other:
            targets = [Target(server.url, server.token, server.pid) for server in (one, other)]
            fill(targets[0])
            print(f"load average before: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
            print(f"{'':10}{'one/s':>10}{'two/s':>10}{'ratio':>8}{'one ms':>9}{'two ms':>9}")
            for kind, (path, connections) in KINDS.items():
                alone, both = Measured(), Measured()
                for number in range(options.rounds):
                    alone.round([targets[number % 2]], path, connections, options.seconds)
                    both.round(targets, path, connections, options.seconds)
                failed = f"  {alone.failed + both.failed} failed" if alone.failed + both.failed else ""
                rates = [statistics.median(each.rates) for each in (alone, both)]
                costs = [statistics.median(each.costs) * 1000 for each in (alone, both)]
                print(
                    f"{kind:10}{rates[0]:10.1f}{rates[1]:10.1f}{rates[1] / rates[0]:8.2f}"
                    f"{costs[0]:9.3f}{costs[1]:9.3f}{failed}"
                )
            print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
