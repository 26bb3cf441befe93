"""
Measure controllers that delete: a namespace with many objects, an owner with many dependents, and the latency of a
client.

During this a separate client reads and writes objects one at a time and records the latency of each request. With
C{--graph} also the memory of the graph of owners and the time to process a change.

Usage: python benchmarks/controllers.py [--objects 1000] [--dependents 10000] [--storage-backend sqlite] [--graph]
"""

from __future__ import annotations

import argparse
import http.client
import json
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kubetwist.api.resource import GroupResource
from kubetwist.controllers.garbagecollection.ownergraph import (
    ObjectKey,
    OwnerGraph,
    Reference,
)
from kubetwist.testing import SubprocessServer

MAPS = "/api/v1/namespaces/{}/configmaps"


class Client:
    """A persistent connection."""

    def __init__(self, server: SubprocessServer) -> None:
        connection = server.connection
        self._http = http.client.HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context())
        self._headers = {"Authorization": f"Bearer {connection.token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request."""
        self._http.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._http.getresponse()
        return answer.status, json.loads(answer.read())


class Bystander(threading.Thread):
    """A client that reads and writes, and records latencies."""

    def __init__(self, server: SubprocessServer) -> None:
        super().__init__(daemon=True)
        self.times: dict[str, list[float]] = {"GET": [], "PUT": []}
        self.ended = threading.Event()
        self._client = Client(server)
        self._client("POST", MAPS.format("default"), {"metadata": {"generateName": "bystander-"}})
        self._client("POST", MAPS.format("default"), {"metadata": {"name": "bystander"}})

    def run(self) -> None:
        """Run until stopped."""
        path = f"{MAPS.format('default')}/bystander"
        number = 0
        while not self.ended.is_set():
            for method in self.times:
                number += 1
                started = time.perf_counter()
                if method == "GET":
                    self._client("GET", path)
                else:
                    self._client("PUT", path, {"metadata": {"name": "bystander"}, "data": {"n": str(number)}})
                self.times[method].append(time.perf_counter() - started)
                time.sleep(0.002)

    def report(self) -> str:
        """Print the maximum and the usual latency."""
        self.ended.set()
        self.join()
        parts = []
        for method, times in self.times.items():
            times.sort()
            parts.append(
                f"{method} p50 {times[len(times) // 2] * 1e3:.1f} p99 {times[len(times) * 99 // 100] * 1e3:.1f} "
                f"max {times[-1] * 1e3:.1f} ms of {len(times)}"
            )
        return "; ".join(parts)


def fill(server: SubprocessServer, namespace: str, number: int, owner: Any = None, group: str = "") -> None:
    """Create objects."""
    local = threading.local()

    def one(index: int) -> None:
        client = getattr(local, "client", None) or Client(server)
        local.client = client
        meta: dict[str, Any] = {"name": f"{group}m{index:06}"}
        if owner is not None:
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}
            reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
            meta["ownerReferences"] = [reference]
        code, created = client("POST", MAPS.format(namespace), {"metadata": meta, "data": {"text": "x" * 500}})
        assert code == 201, created

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(number)))


def wait(client: Client, path: str, done: Any) -> None:
    """Poll until a condition is true."""
    while not done(*client("GET", path)):
        time.sleep(0.02)


def measure(options: argparse.Namespace) -> None:
    """Measure a server in a separate process."""
    with SubprocessServer(f"--storage-backend={options.storage_backend}", *options.flags) as server:
        client = Client(server)
        client("POST", "/api/v1/namespaces", {"metadata": {"name": "big"}})
        fill(server, "big", options.objects)
        bystander = Bystander(server)
        bystander.start()
        started = time.perf_counter()
        client("DELETE", "/api/v1/namespaces/big")
        wait(client, "/api/v1/namespaces/big", lambda code, _: code == 404)
        print(f"a namespace with {options.objects} objects is gone in {time.perf_counter() - started:.2f} s")
        print(f"  meanwhile: {bystander.report()}")
        client("POST", "/api/v1/namespaces", {"metadata": {"name": "tree"}})
        maps = MAPS.format("tree")
        for policy in ("Background", "Foreground", "Orphan"):
            _, owner = client("POST", maps, {"metadata": {"name": "owner"}})
            fill(server, "tree", options.dependents, owner, policy.lower())
            bystander = Bystander(server)
            bystander.start()
            started = time.perf_counter()
            client("DELETE", f"{maps}/owner", {"propagationPolicy": policy})
            if policy == "Orphan":
                wait(client, f"{maps}/owner", lambda code, _: code == 404)
            else:
                # What every namespace has is left.
                wait(client, f"{maps}?limit=1", lambda _, found: not found["metadata"].get("continue"))
            seconds = time.perf_counter() - started
            print(f"{policy}: an owner of {options.dependents} is done with in {seconds:.2f} s")
            print(f"  meanwhile: {bystander.report()}")


def measure_graph(number: int) -> None:
    """Measure the memory of the graph for dependents of owners with ten each."""
    tracemalloc.start()
    graph, pods = OwnerGraph(), GroupResource("", "pods")
    keys = [f"ns-{index // 100}/object-{index}" for index in range(number)]
    before = tracemalloc.get_traced_memory()[0]
    started = time.perf_counter()
    for index, key in enumerate(keys):
        reference = Reference("apps/v1", "ReplicaSet", f"set-{index // 10}", f"{index // 10:036}", True)
        graph.put(ObjectKey(pods, key), f"{index:036}", [reference])
    seconds = time.perf_counter() - started
    kept = tracemalloc.get_traced_memory()[0] - before
    print(f"graph: {kept / number:.0f} bytes and {seconds / number * 1e6:.1f} us (traced) per dependent, ten per owner")


def main() -> None:
    """Parse the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--dependents", type=int, default=10_000)
    parser.add_argument("--storage-backend", default="sqlite")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("flags", nargs="*", help="further flags of twist kubeapi, behind --")
    options = parser.parse_args()
    if options.graph:
        measure_graph(100_000)
    measure(options)


if __name__ == "__main__":
    main()
