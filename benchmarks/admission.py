"""
Measure admission alone: microseconds that its plugins take per write, all together and each.

Usage: python benchmarks/admission.py [--each]

The plugins are those enabled by default, in a server with its initial objects, a namespace and its service account.
There is also a webhook configuration for other resources, which must have no cost.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.task import react
from zope.interface import implementer

from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission.plugins import build_chain
from kubetwist.api.admission import (
    AdmissionAttributes,
    AdmissionContext,
)
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.options import CreateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.client.factory import ClientFactory
from kubetwist.interfaces import IMutatingAdmission
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.registry.core.namespace.bootstrap import system_namespaces
from kubetwist.registry.kinds import kinds_for
from kubetwist.registry.scheduling.bootstrap import ensure_priority_classes
from kubetwist.schema.definitions import Definitions
from kubetwist.storage.memory import MemoryStorage

COUNT = 2000
USER = UserInfo("alice", groups=("system:authenticated",))


@implementer(IMutatingAdmission)
class Trivial:
    """A plugin of a few lines, which reads a label."""

    name = "Trivial"

    def handles(self, operation: str) -> bool:
        """Return whether the operation is CREATE."""
        return operation == "CREATE"

    async def admit(self, attributes: Any) -> None:
        """Reject some objects."""
        if (attributes.object["metadata"].get("labels") or {}).get("forbidden"):
            raise attributes.forbidden("it says so itself")


def config_map() -> JSONObject:
    """Return a ConfigMap."""
    return {"metadata": {"name": "m", "namespace": "work", "labels": {"a": "b"}}, "data": {"key": "value"}}


def pod() -> JSONObject:
    """Return a pod as a Deployment creates it, with its defaults."""
    container = {
        "name": "main",
        "image": "example.org/main:1",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": f"N{number}", "value": str(number)} for number in range(5)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
    return {"metadata": {"generateName": "web-", "namespace": "work", "labels": {"app": "web"}}, "spec": spec}


def measured(
    chain: AdmissionChain,
    context: AdmissionContext,
    resource: str,
    kind: str,
    make: Callable[[], JSONObject],
) -> float:
    """Return the microseconds of one creation, without the creation of the object."""
    bodies = orjson.dumps(make())

    def run(work: bool) -> float:
        began = time.perf_counter()
        for _ in range(COUNT):
            obj = orjson.loads(bodies)
            attributes = AdmissionAttributes(
                "CREATE", "", "v1", resource, "", kind, "work", "", obj, None, USER, False, context, CreateOptions()
            )
            if work:
                for ask in (chain.admit, chain.validate):
                    try:
                        ask(attributes).send(None)
                    except StopIteration:
                        continue
                    raise AssertionError("nothing here should have to wait")
        return (time.perf_counter() - began) / COUNT * 1e6

    return min(run(True) for _ in range(5)) - min(run(False) for _ in range(5))


async def measure(reactor: Any, options: argparse.Namespace) -> None:
    """Create a server's objects, and measure."""
    backend = MemoryStorage(reactor)
    definitions = Definitions.load("1.36")
    registry = ResourceRegistry(
        backend,
        reactor,
        kinds_for(definitions.gvks(), FeatureGates()),
        definitions=definitions,
        outgoing=ClientFactory(reactor, lambda namespace, name: None),
    )
    stores = registry.stores
    await backend.open()
    await registry.start()
    await system_namespaces(stores)
    await ensure_priority_classes(stores)
    scope = RequestScope("work")
    await stores.get("", "namespaces").create(
        RequestScope(), {"metadata": {"name": "work"}, "spec": {}}, CreateOptions()
    )
    account = {"metadata": {"name": "default", "namespace": "work"}}
    await stores.get("", "serviceaccounts").create(scope, account, CreateOptions())
    rule = {"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["*"], "scope": "*"}
    hook = {
        "name": "a.example.org",
        "rules": [rule],
        "clientConfig": {"url": "https://localhost"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    for kind in ("mutating", "validating"):
        store = stores.get("admissionregistration.k8s.io", f"{kind}webhookconfigurations")
        await store.create(RequestScope(), {"metadata": {"name": "w"}, "webhooks": [dict(hook)]}, CreateOptions())
    chain = build_chain((), (), registry.context)
    for resource, kind, make in (("configmaps", "ConfigMap", config_map), ("pods", "Pod", pod)):
        took = measured(chain, registry.context, resource, kind, make)
        print(f"{'create ' + kind + ', default plugins':44} {took:8.1f} us")
    nothing = measured(AdmissionChain(), registry.context, "configmaps", "ConfigMap", config_map)
    trivial = measured(AdmissionChain([Trivial()]), registry.context, "configmaps", "ConfigMap", config_map)
    print(f"{'no plugin at all':44} {nothing:8.1f} us")
    print(f"{'a trivial plugin':44} {trivial - nothing:8.1f} us")
    if options.each:
        for plugin in chain.plugins:
            alone = AdmissionChain([plugin])
            costs = [
                measured(alone, registry.context, resource, kind, make)
                for resource, kind, make in (("configmaps", "ConfigMap", config_map), ("pods", "Pod", pod))
            ]
            print(f"  {plugin.name:42} {costs[0]:8.1f} us {costs[1]:8.1f} us (pod)")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--each", action="store_true", help="each plugin by itself, too")
    options = parser.parse_args()
    react(lambda reactor: Deferred.fromCoroutine(measure(reactor, options)))


if __name__ == "__main__":
    main()
