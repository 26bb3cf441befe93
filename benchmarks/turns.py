"""
Find iterations of the reactor that take long: the first uses of groups, kinds and documents, and large caches.

    python benchmarks/turns.py [--objects 5000] [--limit 10]

A server runs in this process. The CPU time of the reactor's thread is measured, so that other load of the machine
hardly matters; the client runs in another thread. For each phase the script prints the number of iterations, how many
are above the limit, and the longest ones in ms.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twisted.internet import reactor as global_reactor

from kubetwist.testing import KubeAPI

reactor: Any = global_reactor
POD = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}
#: The requests of the first phases: method, path and body.
FIRST: dict[str, list[tuple[str, str, Any]]] = {
    "discovery": [
        ("GET", "/api", None),
        ("GET", "/apis", None),
        ("GET", "/api/v1", None),
        ("GET", "/apis/apps/v1", None),
    ],
    "lists of each group": [
        ("GET", path, None)
        for path in (
            "/api/v1/pods",
            "/apis/apps/v1/deployments",
            "/apis/batch/v1/jobs",
            "/apis/rbac.authorization.k8s.io/v1/roles",
            "/apis/networking.k8s.io/v1/ingresses",
            "/apis/storage.k8s.io/v1/storageclasses",
            "/apis/resource.k8s.io/v1/deviceclasses",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        )
    ],
    "first objects": [
        ("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}),
        ("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "a"}, "spec": POD}),
        ("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}}),
        ("POST", "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "a"}, "spec": TEMPLATE}),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/default/deployments/a?fieldManager=m",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": {"a": "b"}}},
        ),
    ],
    "openapi": [
        ("GET", "/openapi/v3/apis/apps/v1", None),
        ("GET", "/openapi/v3/api/v1", None),
        ("GET", "/openapi/v2", None),
    ],
}


class Turns:
    """
    The CPU time of the iterations of the reactor.

    @ivar times: The times of the iterations, in seconds.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self._before = 0.0

    def install(self) -> None:
        """Measure from now on; runs in the reactor's thread."""
        run = reactor.runUntilCurrent

        def measured() -> None:
            # An iteration reads the sockets after the delayed calls of the iteration before.
            now = time.thread_time()
            if self._before:
                self.times.append(now - self._before)
            self._before = now
            run()

        reactor.runUntilCurrent = measured

    def take(self) -> list[float]:
        """Return the times since the last call, longest first."""
        taken, self.times = self.times, []
        return sorted(taken, reverse=True)


class Client:
    """A connection to the server."""

    def __init__(self, url: str, token: str) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        parts = urlsplit(url)
        self._connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context)
        self._token = token

    def call(self, method: str, path: str, body: Any) -> None:
        """Send a request, and read the response."""
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        data = response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {data[:300]!r}")


def report(phase: str, turns: Turns, limit: float) -> None:
    """Print the iterations of a phase."""
    times = turns.take()
    longest = " ".join(f"{1000 * one:.1f}" for one in times[:5])
    print(f"{phase:24} {len(times):8} {sum(one > limit for one in times):8}   {longest}", flush=True)


def measure(server: KubeAPI, turns: Turns, limit: float, objects: int) -> None:
    """
    Send the requests of all phases to a new server, and print their iterations.

    @param server: The server.
    @param turns: Measures its reactor.
    @param limit: Seconds above which an iteration is counted.
    @param objects: The number of objects to create; 0 if they exist.
    """
    client = Client(server.url, server.token)
    path = "/api/v1/namespaces/default/configmaps"
    if objects:
        for name, requests in FIRST.items():
            for request in requests:
                client.call(*request)
            report(name, turns, limit)
        for _ in range(objects):
            client.call("POST", path, {"metadata": {"generateName": "m-"}})
        report(f"{objects} creations", turns, limit)
    client.call("GET", path, None)
    report("large list" if objects else "fill and large list", turns, limit)


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=5_000, help="the number of objects of the large cache")
    parser.add_argument("--limit", type=float, default=10.0, help="the limit in ms")
    options = parser.parse_args()
    limit = options.limit / 1000
    turns = Turns()
    installed = threading.Event()

    def install() -> None:
        turns.install()
        installed.set()

    print(f"{'phase':24} {'turns':>8} {'above':>8}   longest, ms")
    with tempfile.TemporaryDirectory(prefix="kubetwist-") as folder:
        flags = "--storage-backend=sqlite", "--controllers=", "--disable-admission-plugins=ServiceAccount"
        with KubeAPI(*flags, data_dir=Path(folder)) as server:
            reactor.callFromThread(install)
            installed.wait()
            measure(server, turns, limit, options.objects)
        turns.take()
        with KubeAPI(*flags, data_dir=Path(folder)) as server:
            report("start with objects", turns, limit)
            measure(server, turns, limit, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
