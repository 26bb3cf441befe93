"""
Measure the gain of a second server with the same etcd: rates of one server, and of two concurrently.

  get        GET of one object, 8 connections to each server
  getmany    the same, 32 connections to each server, so that more requests share a query to etcd
  list500    LIST with limit=500, 2 connections to each server
  getany     GET with resourceVersion=0, without a query to etcd, 8 connections to each server

Alternately, one and two servers receive requests for --seconds, --rounds times; the results are medians. The script
prints the rates, their ratio, and the CPU time per request in ms: of the server, alone and with a second one, of etcd
and of the load generator. The last two run on the same machine. Therefore the last column is the maximum of the
ratio: the rate that all cores together could reach, divided by that of one server.
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
    "getmany": (f"{MAPS}/cm-0000", 32),
    "list500": (f"{MAPS}?limit=500", 2),
    "getany": (f"{MAPS}/cm-0000?resourceVersion=0", 8),
}
TICKS = os.sysconf("SC_CLK_TCK")


def processor_time(pid: int) -> float:
    """Return the CPU seconds of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def generator_time() -> float:
    """Return the CPU seconds of the load generator: of this process and of its children."""
    return sum(os.times()[:4])


class Measured:
    """
    Rounds of one kind of request with a number of servers.

    @ivar rates: Requests per second.
    @ivar costs: CPU seconds per request: of servers, etcd and generator.
    """

    def __init__(self, etcd: int) -> None:
        """
        @param etcd: Its process.
        """
        self._etcd = etcd
        self.rates: list[float] = []
        self.costs: list[tuple[float, float, float]] = []
        self.failed = 0

    def _spent(self, targets: list[Target]) -> tuple[float, float, float]:
        servers = sum(processor_time(target.pid) for target in targets if target.pid is not None)
        return servers, processor_time(self._etcd), generator_time()

    def round(self, targets: list[Target], path: str, connections: int, seconds: float) -> None:
        """Send requests to all servers concurrently."""
        before, began = self._spent(targets), time.perf_counter()
        with ThreadPoolExecutor(len(targets)) as pool:
            loads = list(pool.map(lambda one: send(one.url, [one.request("GET", path)], connections, seconds), targets))
        took = time.perf_counter() - began
        rate = sum(load.rate for load in loads)
        self.rates.append(rate)
        requests = max(rate * min(seconds, took), 1)
        servers, etcd, generator = (now - then for now, then in zip(self._spent(targets), before, strict=True))
        self.costs.append((servers / requests, etcd / requests, generator / requests))
        self.failed += sum(load.failed for load in loads)


def fill(target: Target) -> None:
    """Create the objects."""
    values = [
        {"metadata": {"name": f"cm-{number:04d}"}, "data": {f"key{key}": "v" * 60 for key in range(10)}}
        for number in range(OBJECTS)
    ]
    posts = [target.request("POST", MAPS, value, Content_Type="application/json") for value in values]
    load = asyncio.run(send_here(target.url, posts, 16, float("inf"), once=[]))
    assert not load.failed, load


def main() -> None:
    """Measure and print."""
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
            print(f"{'':10}{'one/s':>10}{'two/s':>10}{'ratio':>8}{'one':>8}{'two':>8}{'etcd':>8}{'load':>8}{'most':>8}")
            for kind, (path, connections) in KINDS.items():
                alone, both = Measured(etcd.members[0].pid), Measured(etcd.members[0].pid)
                for number in range(options.rounds):
                    alone.round([targets[number % 2]], path, connections, options.seconds)
                    both.round(targets, path, connections, options.seconds)
                failed = f"  {alone.failed + both.failed} failed" if alone.failed + both.failed else ""
                rate, rate_of_two = (statistics.median(each.rates) for each in (alone, both))
                (cost, _, _), costs = (
                    [statistics.median(part) for part in zip(*each.costs, strict=True)] for each in (alone, both)
                )
                shown = "".join(f"{each * 1000:8.3f}" for each in (cost, *costs))
                most = (os.cpu_count() or 1) / sum(costs) / rate
                print(f"{kind:10}{rate:10.1f}{rate_of_two:10.1f}{rate_of_two / rate:8.2f}{shown}{most:8.2f}{failed}")
            print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
