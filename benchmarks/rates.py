"""
Measure the rates of the verbs on ConfigMaps of about 1.2 kB, and of creating pods and services, in a new namespace.

  create         POST, 8 connections, until --objects exist
  get            GET of one object, 8 connections
  list500        LIST with limit=500, 2 connections
  listall        LIST of all objects in one request, 1 connection
  listlabel      LIST of a tenth by label, 2 connections
  table500       LIST with limit=500 as a Table, 2 connections
  patch          merge PATCH, 8 connections, each object in turn
  fanout         events per second received by 100 watches of a tenth of the objects, while patching
  createpod      POST of pods with two containers, probes, environment and resources, 8 connections
  createservice  POST of services with a selector and two ports, 8 connections
  rss            resident memory of the server at the end, MB

The second column is the ratio to a static twisted.web site on the same machine in the same minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from load import Load, Target, arguments, send, target, trusting, yardstick

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"


class Rates:
    """The measurements of one server."""

    def __init__(self, target: Target, objects: int, seconds: float) -> None:
        self.target, self.objects, self.seconds = target, objects, seconds
        self.run = f"{random.randrange(1 << 32):08x}"
        namespace = f"rates-{self.run}"
        self.target.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.namespace = f"/api/v1/namespaces/{namespace}"
        # Pods need one, and nothing else makes it.
        self.target.call("POST", f"{self.namespace}/serviceaccounts", {"metadata": {"name": "default"}})
        self.path = f"{self.namespace}/configmaps"
        self.made = 0

    def name(self, number: int) -> str:
        """Return the name of one object of the run."""
        return f"cm-{number:07d}"

    def config_map(self, number: int) -> dict[str, object]:
        """Return an object with ten values of 60 characters, labels and an annotation."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name(number),
                "labels": {"app": f"a{number % 10}", "tier": "x"},
                "annotations": {"note": "n" * 100},
            },
            "data": {f"key{key}": "v" * 60 for key in range(10)},
        }

    def count(self) -> int:
        """Return the number of objects."""
        page = self.target.call("GET", f"{self.path}?limit=1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    def version(self) -> str:
        """Return the resourceVersion from which a watch sees further changes."""
        version: str = self.target.call("GET", f"{self.path}?limit=1")["metadata"]["resourceVersion"]
        return version

    def create(self) -> Load:
        """Create objects in rounds of new names until there are enough; the result is the middle round."""
        rounds = []
        while self.count() < self.objects:
            numbers = range(self.made, self.made + round(self.seconds * 6000))
            self.made = numbers.stop
            posts = [
                self.target.request("POST", self.path, self.config_map(number), Content_Type="application/json")
                for number in numbers
            ]
            rounds.append(send(self.target.url, posts, 8, self.seconds))
        rounds.sort(key=lambda load: load.rate)
        return rounds[len(rounds) // 2]

    def post(self, resource: str, make: Callable[[str], dict[str, object]]) -> Load:
        """Create objects of another kind, each under a new name."""
        posts = [
            self.target.request(
                "POST", f"{self.namespace}/{resource}", make(f"one-{number:07d}"), Content_Type="application/json"
            )
            for number in range(round(self.seconds * 6000))
        ]
        return send(self.target.url, posts, 8, self.seconds)

    def names(self) -> list[str]:
        """Return the names of all objects, page by page."""
        names, token = [], ""
        while True:
            page = self.target.call("GET", f"{self.path}?limit=1000" + (f"&continue={token}" if token else ""))
            names += [item["metadata"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
            if not token:
                return names

    def read(self, query: str, connections: int, accept: str = "application/json") -> Load:
        """GET one object repeatedly."""
        request = self.target.request("GET", self.path + query, Accept=accept)
        return send(self.target.url, [request], connections, self.seconds)

    def patch(self, names: list[str]) -> Load:
        """Patch objects in turn with new values."""
        chosen = random.sample(names, min(len(names), 2000))
        patches = [
            self.target.request(
                "PATCH", f"{self.path}/{name}", {"data": {"key0": f"{random.random()}"}}, Content_Type=MERGE
            )
            for _ in range(max(1, 20000 // len(chosen)))
            for name in chosen
        ]
        return send(self.target.url, patches, 8, self.seconds)

    async def fanout(self, names: list[str], version: str, watchers: int = 100) -> Load:
        """Count what all watchers receive while objects are patched."""
        parts = urlsplit(self.target.url)
        query = f"?watch=1&resourceVersion={version}&labelSelector=app%3Da1&timeoutSeconds=600"
        request = self.target.request("GET", self.path + query, Accept="application/json")
        events = 0

        async def follow() -> None:
            nonlocal events
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=trusting())
            writer.write(request)
            kept = b""
            try:
                while data := await reader.read(1 << 18):
                    data = kept + data
                    events += data.count(b'{"type":"')
                    kept = data[-8:] if not data.endswith(b"\n") else b""
            finally:
                writer.close()

        tasks = [asyncio.create_task(follow()) for _ in range(watchers)]
        await asyncio.sleep(2)
        began, before, last = time.perf_counter(), events, -1
        await asyncio.get_running_loop().run_in_executor(None, self.patch, names)
        while events != last:
            last = events
            await asyncio.sleep(0.5)
        rate = (events - before) / (time.perf_counter() - began - 0.5)
        ended = sum(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return Load(rate, ended, 0.0)

    def measure(self, expected: list[str]) -> dict[str, Load]:
        """Run the selected measurements, in the order in the head of this file."""
        loads = {"create": self.create()}
        names = self.names()
        middle = names[len(names) // 2]
        steps: dict[str, Callable[[], Load]] = {
            "get": lambda: self.read(f"/{middle}", 8),
            "list500": lambda: self.read("?limit=500", 2),
            "listall": lambda: self.read("", 1),
            "listlabel": lambda: self.read("?labelSelector=app%3Da1", 2),
            "table500": lambda: self.read("?limit=500", 2, TABLE),
            "patch": lambda: self.patch(names),
            "fanout": lambda: asyncio.run(self.fanout(names, self.version())),
            "createpod": lambda: self.post("pods", pod),
            "createservice": lambda: self.post("services", service),
        }
        for name, step in steps.items():
            if not expected or name in expected:
                loads[name] = step()
        return loads


def pod(name: str) -> dict[str, object]:
    """Return a pod as a chart for a web application creates it, with a sidecar."""
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "timeoutSeconds": 2}
    web = {
        "name": "web",
        "image": "registry.example.com/team/web:1.4.2",
        "args": ["--port=8080", "--log-format=json"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
        "livenessProbe": {**probe, "initialDelaySeconds": 15},
        "readinessProbe": probe,
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/web", "readOnly": True}],
        "securityContext": {"runAsNonRoot": True, "allowPrivilegeEscalation": False},
    }
    proxy = {
        "name": "proxy",
        "image": "envoyproxy/envoy:v1.31.0",
        "ports": [{"name": "metrics", "containerPort": 9901, "protocol": "TCP"}],
        "env": [{"name": "ENVOY_UID", "value": "0"}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"tcpSocket": {"port": 9901}, "periodSeconds": 5},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", "tier": "front"}, "annotations": {"scrape": "true"}},
        "spec": {
            "containers": [web, proxy],
            "volumes": [{"name": "settings", "configMap": {"name": "web"}}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}],
        },
    }


def service(name: str) -> dict[str, object]:
    """Return a service with two named ports."""
    ports = [
        {"name": "http", "port": 80, "targetPort": "http"},
        {"name": "metrics", "port": 9901, "targetPort": 9901, "protocol": "TCP"},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"selector": {"app": "web", "tier": "front"}, "ports": ports},
    }


def show(loads: dict[str, Load], unit: float, rss: float) -> None:
    """Print the table."""
    print(f"yardstick: {unit:.0f} static answers/s")
    print(f"{'measure':13} {'rate/s':>10} {'/yardstick':>11} {'p99 ms':>8} {'failed':>7}")
    for name, load in loads.items():
        print(f"{name:13} {load.rate:10.1f} {load.rate / unit:11.5f} {load.p99:8.1f} {load.failed:7}")
    print(f"{'rss':13} {rss:10.0f} MB")


def main() -> None:
    """Measure and print."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--objects", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default="", help="names of measures, with commas")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options: argparse.Namespace = parser.parse_args()
    # The default range holds fewer services than are made in a few seconds.
    options.flag.insert(0, "--service-cluster-ip-range=10.0.0.0/16")
    unit = yardstick()
    with target(options) as server:
        rates = Rates(server, options.objects, options.seconds)
        loads = rates.measure([name for name in options.only.split(",") if name])
        rss = server.memory()
    show(loads, unit, rss)
    if options.json:
        figures = {name: {"rate": load.rate, "ratio": load.rate / unit} for name, load in loads.items()}
        options.json.write_text(json.dumps({"yardstick": unit, "rss": rss, "measures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
