"""Base classes of tests of connect subresources."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kubetwist.api.errors import APIStatusError
from kubetwist.api.targets import Target
from kubetwist.interfaces import IGetterWithOptions
from kubetwist.registry.core.node.kubelets import ConnectionRules
from kubetwist.registry.generic.parts import status_rules
from kubetwist.registry.subresources import subresource_storage
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod


class ConnectionCase(StoreTestCase):
    """Base class of tests with pods, services and nodes that requests are proxied to."""

    resources = ("pods", "services", "endpoints", "nodes")
    rules = ConnectionRules()

    def connect(self, resource: str, subresource: str, name: str, path: str = "", **query: Any) -> Target | None:
        """Return the target of a request."""
        info = self.store(resource).info
        part = info.subresource(subresource)
        assert part is not None
        context = evolve(self.server.context, connection_rules=self.rules)
        storage: Any = subresource_storage(info, "v1", part, context)
        lists = {key: value if isinstance(value, list) else [value] for key, value in query.items()}
        results: list[Any] = []
        if IGetterWithOptions.providedBy(storage):
            found = storage.get_with_options(self.scope, name, storage.decode_options(lists))
        else:
            found = storage.connect(self.scope, name, path, lists)
        Deferred.fromCoroutine(found).addBoth(results.append)
        if isinstance(results[0], Failure):
            results[0].raiseException()
        target: Target | None = results[0]
        return target

    def target_url(self, resource: str, subresource: str, name: str, path: str = "", **query: Any) -> str:
        """Return the URL of the target of a request."""
        target = self.connect(resource, subresource, name, path, **query)
        assert target is not None
        behind = "" if target.query is None else f"?{target.query}"
        return f"{target.scheme}://{target.host}:{target.port}{target.path}{behind}"

    def connection_error(self, resource: str, subresource: str, name: str, **query: Any) -> tuple[int, str]:
        """Return the code and message of the error of a request."""
        with self.assertRaises(APIStatusError) as caught:
            self.connect(resource, subresource, name, **query)
        return caught.exception.code, caught.exception.message

    def set_status(self, resource: str, name: str, **status: Any) -> None:
        """Change the status of an object."""
        store = self.store(resource)
        self.changed(store, name, lambda obj: obj["status"].update(status), rules=status_rules(store))

    def running(self, name: str = "p", node: str = "n", **spec: Any) -> None:
        """Create a pod on a node."""
        obj = pod(name)
        obj["spec"].update(nodeName=node, **spec)
        self.made(self.store("pods"), obj)

    def node(self, name: str = "n", **status: Any) -> None:
        """Create a node with a status."""
        self.made(self.store("nodes"), {"metadata": {"name": name}})
        status.setdefault("addresses", [{"type": "InternalIP", "address": "10.1.2.3"}])
        self.set_status("nodes", name, **status)


class ProxyTestCase(ConnectionCase):
    """Base class of tests of proxies."""

    def endpoints(self, name: str, ports: Any = ({"port": 8080, "name": "w"},), **subset: Any) -> None:
        """Create or replace the endpoints of a service."""
        store = self.store("endpoints")
        subsets = [{**subset, "ports": list(ports)}]
        if self.stores.get_copy("", "endpoints", "default", name) is None:
            self.made(store, {"metadata": {"name": name}, "subsets": subsets})
        else:
            self.changed(store, name, lambda obj: obj.update(subsets=subsets))
