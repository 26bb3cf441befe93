"""
Measure the Node authorizer alone: the time to build its graph, its memory, and microseconds per decision and per
change.

Usage: python benchmarks/nodes.py [--pods 5000] [--nodes 100]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from functools import partial
from typing import Any
from unittest.mock import patch

from rbac import timed

from twisted.internet.task import deferLater, react

from kubetwist.api.authorization import AuthorizerAttributes
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.record import (
    Draft,
    without_kind,
)
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.api.storage import Write
from kubetwist.authorization.node import NodeAuthorizer
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.registry.core.node.graph import NodeGraph
from kubetwist.registry.kinds import kinds_for
from kubetwist.schema.definitions import Definitions
from kubetwist.storage.memory import MemoryStorage


def pod(number: int, nodes: int) -> JSONObject:
    """Return a pod of a deployment of ten, with shared references and its own claim."""
    app, namespace = number // 10, f"ns-{number // 100}"
    env = [{"name": f"V{one}", "value": f"value {one}"} for one in range(20)]
    container = {
        "name": "main",
        "image": "example.org/app:1",
        "env": env,
        "envFrom": [{"configMapRef": {"name": f"app-{app}"}}, {"secretRef": {"name": f"app-{app}"}}],
    }
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}},
        {"name": "tls", "secret": {"secretName": f"tls-{app}"}},
        {"name": "token", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}},
    ]
    return {
        "metadata": {"name": f"app-{app}-{number}", "namespace": namespace, "uid": str(number)},
        "spec": {
            "nodeName": f"node-{number % nodes}",
            "serviceAccountName": f"app-{app}",
            "containers": [container],
            "volumes": volumes,
        },
    }


async def measure(reactor: Any, options: argparse.Namespace) -> None:
    """Create the objects and measure."""
    backend = MemoryStorage(reactor)
    registry = ResourceRegistry(backend, reactor, kinds_for(Definitions.load("1.36").gvks(), FeatureGates()))
    stores = registry.stores
    await backend.open()
    await registry.start()
    store = stores.get("", "pods")

    async def put(obj: JSONObject) -> None:
        fields = {"spec.nodeName": obj["spec"]["nodeName"]}
        draft = Draft(without_kind(obj), {}, fields)
        key = f"/registry/pods/{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        await backend.commit([Write(key, store.encode_value(draft), None, None, draft)])

    for number in range(options.pods):
        await put(pod(number, options.nodes))
    graph = NodeGraph(stores, reactor)
    authorizer = NodeAuthorizer(graph)
    user = UserInfo("system:node:node-7", groups=("system:nodes", "system:authenticated"))

    def ask(verb: str, resource: str, namespace: str, name: str) -> Any:
        return authorizer.authorize(AuthorizerAttributes(user, verb, resource=resource, namespace=namespace, name=name))

    tracemalloc.start()
    began = time.perf_counter()
    longest = 0.0
    proceed = graph._proceed

    def timed_slice(filling: Any) -> None:
        nonlocal longest
        at = time.thread_time()
        proceed(filling)
        longest = max(longest, time.thread_time() - at)

    async def learn() -> None:
        with patch.object(graph, "_proceed", timed_slice):
            waiting = graph.ready()
            if waiting is not None:
                await waiting
                await deferLater(reactor, 0, lambda: None)  # What comes next is no part of the last slice.

    await learn()
    took = time.perf_counter() - began
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{'learning, all pods (traced)':34} {took * 1e3:8.1f} ms, longest slice {longest * 1e3:.1f} ms")
    print(f"{'memory':34} {size / 1024:8.0f} KiB, {size / options.pods:.0f} bytes a pod")
    graph.stop()
    began, longest = time.perf_counter(), 0.0
    await learn()
    print(
        f"{'learning, all pods':34} {(time.perf_counter() - began) * 1e3:8.1f} ms, longest slice {longest * 1e3:.1f} ms"
    )
    timed("a secret that a pod names", 20000, partial(ask, "get", "secrets", "ns-0", "app-0"))
    timed("a secret that none names", 20000, partial(ask, "get", "secrets", "ns-0", "other"))
    timed("its own node", 20000, partial(ask, "get", "nodes", "", "node-7"))
    timed("what all nodes may", 20000, partial(ask, "list", "services", "", ""))
    user = UserInfo("somebody", groups=("system:authenticated",))
    timed("who is no node", 20000, partial(ask, "get", "secrets", "ns-0", "app-0"))
    record = store.cache.list().records[0]
    timed("a pod whose status changes", 5000, partial(graph.changed, "pods", record))
    registry.stop()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=100)
    options = parser.parse_args()

    async def run(reactor: Any) -> None:
        await measure(reactor, options)

    react(run)


if __name__ == "__main__":
    main()
