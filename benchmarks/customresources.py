"""
Measure the cost of custom resources: --definitions CRDs of --properties properties each, and --objects objects of 1 kB.

  create         seconds until all definitions are created and established, 4 connections
  memory         MB that they add to the server, some time later
  start          seconds from the start to ready without definitions, and the increase with them
  get            GETs of a ConfigMap per second, without and with definitions, 8 connections
  while creating, while openapi
                 latency of such a GET of another client in ms, while definitions are created, and while all of OpenAPI
                 is generated after a change of a definition: median, 99th percentile, maximum
  openapi v3, v2 seconds until the list of v3 documents, and the v2 document, are updated after a change
  one changed    the same for v3, after another change
  objects        MB that the objects add
  list           LISTs per second of 500 custom objects and of 500 ConfigMaps of the same size, and their ratio
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from load import Target, arguments, send, send_here, trusting

from kubetwist.testing import SubprocessServer

GROUPS = 20
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def definition(number: int, properties: int) -> dict[str, Any]:
    """Return a definition whose schema has this number of properties, in objects of ten."""
    leaves: list[dict[str, Any]] = [
        {
            "type": "string",
            "description": "A name that something goes by, at most as long as names are.",
            "maxLength": 253,
        },
        {"type": "integer", "format": "int32", "minimum": 0, "description": "How many there are to be."},
        {"type": "boolean", "description": "Whether it is on."},
        {"type": "array", "items": {"type": "string"}, "description": "Others that it depends on."},
        {"type": "string", "enum": ["Always", "Never", "IfNotPresent"], "description": "When it is to be done."},
    ]
    parts = {
        f"part{part}": {
            "type": "object",
            "description": f"What part {part} is made of.",
            "properties": {f"field{field}": leaves[field % len(leaves)] for field in range(9)},
        }
        for part in range(properties // 10)
    }
    group, plural = f"g{number % GROUPS}.bench.example.com", f"things{number}"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": f"thing{number}", "kind": f"Thing{number}"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "Field", "type": "string", "jsonPath": ".spec.part0.field0"}],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": parts},
                                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            },
                        }
                    },
                }
            ],
        },
    }


class Waits:
    """A client that reads an object periodically, and records the latency."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._over = threading.Event()
        self.times: list[float] = []

    def __enter__(self) -> Waits:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()))
        self._thread.start()
        return self

    async def _read(self) -> None:
        parts = urlsplit(self._target.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=trusting())
        request = self._target.request("GET", f"{CONFIG_MAPS}/one", Accept="application/json")
        while not self._over.is_set():
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            self.times.append(time.perf_counter() - began)
            await asyncio.sleep(0.004)
        writer.close()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        times = sorted(self.times)
        return f"{times[len(times) // 2] * 1e3:.1f} {times[int(len(times) * 0.99)] * 1e3:.1f} {times[-1] * 1e3:.1f} ms"


def post(target: Target, path: str, objects: list[Any], connections: int) -> None:
    """Create objects, each once."""
    requests = [target.request("POST", path, one, Content_Type="application/json") for one in objects]
    answers: list[bytes] = []
    asyncio.run(send_here(target.url, requests, connections, float("inf"), once=answers))
    bad = [answer for answer in answers if answer[9:12] != b"201"]
    if bad or len(answers) != len(objects):
        raise SystemExit(f"{path}: {len(answers)} answers, {bad[0][-500:] if bad else b''!r}")


def established(target: Target, expected: int) -> None:
    """Wait until this number of definitions is served."""
    while True:
        groups = target.call("GET", "/apis")["groups"]
        names = [group["name"] for group in groups if group["name"].endswith(".bench.example.com")]
        found = sum(
            sum("/" not in one["name"] for one in target.call("GET", f"/apis/{name}/v1")["resources"]) for name in names
        )
        if found >= expected:
            return
        time.sleep(0.2)


def fetch(target: Target, path: str, accept: str = "application/json") -> float:
    """Return the seconds until a condition is true."""
    began = time.perf_counter()
    answers: list[bytes] = []
    request = target.request("GET", path, Accept=accept, Accept_Encoding="gzip")
    asyncio.run(send_here(target.url, [request], 1, float("inf"), once=answers))
    if answers[0][9:12] != b"200":
        raise SystemExit(f"{path}: {answers[0][:300]!r}")
    return time.perf_counter() - began


def change(target: Target, number: int, properties: int) -> None:
    """Change a definition."""
    changed = definition(number, properties)
    path = f"{DEFINITIONS}/{changed['metadata']['name']}"
    stored = target.call("GET", path)
    spec = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["description"] = f"Changed at {time.time()}."
    target.call("PUT", path, stored)


def rate(target: Target) -> float:
    """Return the GETs of a ConfigMap per second."""
    request = target.request("GET", f"{CONFIG_MAPS}/one", Accept="application/json")
    return statistics.median(send(target.url, [request], 8, 2).rate for _ in range(3))


def lists(target: Target, path: str) -> float:
    """Return the LISTs of 500 objects per second."""
    request = target.request("GET", f"{path}?limit=500", Accept="application/json")
    return statistics.median(send(target.url, [request], 2, 2).rate for _ in range(3))


@contextlib.contextmanager
def running(folder: Path, flags: list[str]) -> Iterator[tuple[Target, float]]:
    """Start a server over a data directory, and measure its start."""
    server = SubprocessServer(*flags, data_dir=folder, timeout=120)
    began = time.perf_counter()
    with server:
        yield Target(server.url, server.token, server.pid), time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--definitions", type=int, default=1000)
    parser.add_argument("--properties", type=int, default=200)
    parser.add_argument("--objects", type=int, default=10000)
    options: argparse.Namespace = parser.parse_args()
    expected, properties = options.definitions, options.properties
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "data")
        with running(folder, options.flag) as (target, _):
            target.call("POST", CONFIG_MAPS, {"metadata": {"name": "one"}, "data": {"key": "v" * 500}})
            before_rate, before_memory = rate(target), target.memory()
        with running(folder, options.flag) as (target, plain_start):
            with Waits(target) as waits:
                began = time.perf_counter()
                post(target, DEFINITIONS, [definition(number, properties) for number in range(expected)], 4)
                established(target, expected)
                took = time.perf_counter() - began
            time.sleep(3)
            print(f"create         {took:.1f} s")
            print(f"while creating {waits}")
            print(f"memory         +{target.memory() - before_memory:.0f} MB")
            print(f"get            {before_rate:.0f}/s without, {rate(target):.0f}/s with", flush=True)
            with Waits(target) as waits:
                third, second = fetch(target, "/openapi/v3"), fetch(target, "/openapi/v2")
                change(target, 0, properties)
                fetch(target, "/openapi/v2")
                change(target, 1, properties)
                again = fetch(target, "/openapi/v3")
                fetch(target, "/openapi/v3/apis/g1.bench.example.com/v1")
            print(f"openapi v3     {third:.1f} s, v2 {second:.1f} s, one changed {again:.2f} s")
            print(f"while openapi  {waits}")
            print(f"memory         +{target.memory() - before_memory:.0f} MB, with OpenAPI", flush=True)
        with running(folder, options.flag) as (target, start):
            print(f"start          {plain_start:.2f} s, with definitions +{start - plain_start:.2f} s")
            print(f"memory         +{target.memory() - before_memory:.0f} MB after that start")
            data = {
                "spec": {
                    "part0": {f"field{field}": "v" * 120 for field in (0, 5)},
                    "part1": {"field3": ["x" * 100] * 6},
                }
            }
            path = "/apis/g0.bench.example.com/v1/namespaces/default/things0"
            target.call("GET", path)
            base = target.memory()
            for first in range(0, options.objects, 2000):
                numbers = range(first, min(first + 2000, options.objects))
                created = [
                    {
                        "apiVersion": "g0.bench.example.com/v1",
                        "kind": "Thing0",
                        "metadata": {"name": f"o{number}"},
                        **data,
                    }
                    for number in numbers
                ]
                post(target, path, created, 4)
            print(f"objects        +{target.memory() - base:.0f} MB for {options.objects}", flush=True)
            size = len(json.dumps(target.call("GET", f"{path}/o1"))) - len(
                json.dumps(target.call("GET", f"{CONFIG_MAPS}/one"))
            )
            maps = [{"metadata": {"name": f"m{number}"}, "data": {"key": "v" * (500 + size)}} for number in range(500)]
            post(target, CONFIG_MAPS, maps, 4)
            custom, plain = lists(target, path), lists(target, CONFIG_MAPS)
            print(f"list           {custom:.1f}/s, of ConfigMaps {plain:.1f}/s, {plain / custom:.2f} times as long")


if __name__ == "__main__":
    main()
