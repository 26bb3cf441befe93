"""
Measure the CPU time of requests in the fronts and the storage process of a server (C{--workers}), and in one process.

The model in docs/operations.md is computed from these figures. On a busy machine, CPU times can be compared.
The clients are threads of this process.

Usage: workers.py [--workers 2] [--clients 8] [--objects 2000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from threading import Thread

from kubetwist.testing import SubprocessServer

MAPS = "/api/v1/namespaces/default/configmaps"
_TICK = 1_000_000 / os.sysconf("SC_CLK_TCK")
#: The name of a measurement, its requests in one round, and the method and path of a request with a number.
MEASUREMENTS: Sequence[tuple[str, int, Callable[[int], tuple[str, str]]]] = (
    ("get", 6000, lambda number: ("GET", f"{MAPS}/object-{number % 1000}")),
    ("list500", 300, lambda number: ("GET", f"{MAPS}?limit=500")),
    ("create", 2000, lambda number: ("POST", MAPS)),
)


def config_map(name: str) -> str:
    """Return a config map of 1.2 kB."""
    return json.dumps({"metadata": {"name": name, "labels": {"app": "benchmark"}}, "data": {"text": "x" * 1000}})


def cpu(pid: int) -> float:
    """Return the CPU time of a process in µs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat")]
    return [int(stat.split()[0]) for stat in stats if int(stat.rpartition(")")[2].split()[1]) == pid]


class Clients:
    """Clients with a connection each."""

    def __init__(self, server: SubprocessServer, number: int) -> None:
        self.headers = {"Authorization": f"Bearer {server.connection.token}", "Content-Type": "application/json"}
        port, context = server.connection.port, server.connection.ssl_context()
        self.connections = [http.client.HTTPSConnection("127.0.0.1", port, context=context) for _ in range(number)]
        self.names = count()

    def run(self, requests: int, target: Callable[[int], tuple[str, str]]) -> None:
        """Send requests, the same number over each connection."""

        def send(connection: http.client.HTTPSConnection) -> None:
            for number in range(requests // len(self.connections)):
                method, path = target(number)
                body = config_map(f"object-{next(self.names)}") if method == "POST" else None
                connection.request(method, path, body, self.headers)
                response = connection.getresponse()
                response.read()
                assert response.status in (200, 201), response.status

        threads = [Thread(target=send, args=(connection,)) for connection in self.connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> None:
    """Measure both kinds of servers in turn, and print the median of the rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    figures: dict[tuple[str, str], list[float]] = {}
    with SubprocessServer(timeout=120) as one, SubprocessServer(f"--workers={arguments.workers}", timeout=120) as many:
        servers = (
            (Clients(one, arguments.clients), {"one process": [one.pid]}),
            (Clients(many, arguments.clients), {"front": children(many.pid), "storage process": [many.pid]}),
        )
        for clients, _ in servers:
            clients.run(arguments.objects, lambda number: ("POST", MAPS))
        for _ in range(arguments.rounds):
            for name, requests, target in MEASUREMENTS:
                for clients, processes in servers:
                    before = {process: sum(map(cpu, pids)) for process, pids in processes.items()}
                    clients.run(requests, target)
                    for process, pids in processes.items():
                        used = (sum(map(cpu, pids)) - before[process]) / requests
                        figures.setdefault((name, process), []).append(used)
    columns = ("one process", "front", "storage process")
    print(f"CPU of a request in µs, {arguments.workers} fronts, {arguments.clients} clients")
    print(" " * 10 + "".join(f"{column:>16}" for column in columns))
    for name, _, _ in MEASUREMENTS:
        print(f"{name:10}" + "".join(f"{statistics.median(figures[name, column]):>16.0f}" for column in columns))


if __name__ == "__main__":
    main()
