"""
Measure RBAC alone: microseconds per decision, cached and not, with many roles and bindings.

Usage: python benchmarks/rbac.py [--bindings 2000] [--roles 500]

Bindings are spread over users, groups and namespaces; C{crowded} is a group to which all roles are bound.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet.task import react

from kubetwist.api.authorization import AuthorizerAttributes
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.options import CreateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.authorization.rbac import RBAC
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.registry.kinds import kinds_for
from kubetwist.registry.rbac.bootstrap import reconcile as bootstraprbac
from kubetwist.registry.rbac.ruleresolver import GROUP
from kubetwist.schema.definitions import Definitions
from kubetwist.storage.memory import MemoryStorage

VERBS = ("get", "list", "watch")


def role(number: int) -> JSONObject:
    """Return a cluster role of five rules."""
    rules = [
        {"verbs": list(VERBS), "apiGroups": [f"g{part}.example.com"], "resources": [f"things{number}", f"parts{part}"]}
        for part in range(5)
    ]
    return {"metadata": {"name": f"role-{number}"}, "rules": rules}


def binding(number: int, roles: int) -> JSONObject:
    """Return a binding for one of a hundred users or groups in one of fifty namespaces, or for the crowded group."""
    kind, name = ("User", f"user-{number % 100}") if number % 2 else ("Group", f"group-{number % 100}")
    subjects = [{"kind": kind, "apiGroup": GROUP, "name": name}]
    if number < roles:
        subjects.append({"kind": "Group", "apiGroup": GROUP, "name": "crowded"})
    return {
        "metadata": {"name": f"binding-{number}", "namespace": "crowd" if number < roles else f"ns-{number % 50}"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": f"role-{number % roles}"},
        "subjects": subjects,
    }


def timed(what: str, count: int, call: Callable[[], Any]) -> None:
    """Print the time of a call: the means of five runs, the minimum."""
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - started) / count)
    print(f"{what:34} {best * 1e6:8.1f} us")


async def measure(reactor: Any, options: argparse.Namespace) -> None:
    """Create the objects and measure."""
    backend = MemoryStorage(reactor)
    registry = ResourceRegistry(backend, reactor, kinds_for(Definitions.load("1.36").gvks(), FeatureGates()))
    stores = registry.stores
    await backend.open()
    await registry.start()
    started = time.perf_counter()
    await bootstraprbac.reconcile(stores, FeatureGates())
    print(f"{'bootstrap, all objects':34} {(time.perf_counter() - started) * 1e3:8.1f} ms")
    started = time.perf_counter()
    await bootstraprbac.reconcile(stores, FeatureGates())
    print(f"{'bootstrap, nothing to do':34} {(time.perf_counter() - started) * 1e3:8.1f} ms")

    async def create(resource: str, objects: list[JSONObject]) -> None:
        store = stores.get(GROUP, resource)
        for obj in objects:
            await store.create(RequestScope(obj["metadata"].get("namespace", "")), obj, CreateOptions())

    await create("clusterroles", [role(number) for number in range(options.roles)])
    await create("rolebindings", [binding(number, options.roles) for number in range(options.bindings)])
    rbac = RBAC(registry.grants)
    typical = UserInfo("user-7", groups=("group-8", "group-10", "system:authenticated"))
    crowded_user = UserInfo("somebody", groups=("crowded", "system:authenticated"))

    def ask(user: UserInfo, namespace: str, name: str) -> Any:
        return rbac.authorize(AuthorizerAttributes(user, "get", resource="pods", namespace=namespace, name=name))

    def ask_uncached(user: UserInfo, namespace: str, name: str) -> Any:
        rbac._decisions.clear()
        return ask(user, namespace, name)

    started = time.perf_counter()
    registry.grants.sync()
    print(f"{'index, once':34} {(time.perf_counter() - started) * 1e3:8.1f} ms")
    for name, user, namespace in (("usual", typical, "ns-7"), ("crowded", crowded_user, "crowd")):
        timed(f"{name}, cached", 20000, partial(ask, user, namespace, "pod-0"))
        timed(f"{name}, not cached", 500, partial(ask_uncached, user, namespace, "pod-0"))
    registry.stop()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bindings", type=int, default=2000)
    parser.add_argument("--roles", type=int, default=500)
    options = parser.parse_args()

    async def run(reactor: Any) -> None:
        await measure(reactor, options)

    react(run)


if __name__ == "__main__":
    main()
