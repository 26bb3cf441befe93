"""A kind whose versions a plugin converts, for tests."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.client.factory import ClientFactory
from kubetwist.interfaces import IConversionPlugin
from kubetwist.registry.customresources.conversion import CRConverterFactory
from kubetwist.registry.customresources.crd import PLUGIN_ANNOTATION
from tests.resources.customserver import CustomServer, definition
from tests.resources.server import JSONClient

OLD = "/apis/example.com/v1/namespaces/default/kites"


NEW = "/apis/example.com/v2/namespaces/default/kites"


@implementer(IConversionPlugin)
class HostAndPort:
    """Version 1 has C{spec.address}, version 2 C{spec.host} and C{spec.port}."""

    name = "host-and-port"

    def __init__(self) -> None:
        self.calls: list[tuple[int, str]] = []
        self.waiting: list[Deferred[Any]] | None = None

    def convert(self, objects: list[dict[str, Any]], api_version: str) -> Any:
        """See L{IConversionPlugin.convert}."""
        self.calls.append((len(objects), api_version))
        if self.waiting is None:
            return self.converted(objects, api_version)
        waiting: Deferred[Any] = Deferred()
        self.waiting.append(waiting)
        return waiting.addCallback(lambda _: self.converted(objects, api_version))

    def converted(self, objects: list[dict[str, Any]], api_version: str) -> list[dict[str, Any]]:
        """Return the converted object."""
        for obj in objects:
            spec = obj["spec"]
            if api_version.endswith("/v2"):
                host, _, port = spec.pop("address").partition(":")
                if not port:
                    raise ValueError(f"{obj['metadata']['name']} has no port")
                spec["host"], spec["port"] = host, int(port)
            else:
                spec["address"] = f"{spec.pop('host')}:{spec.pop('port')}"
            obj["apiVersion"] = api_version
        return objects


def texts(*names: str) -> dict[str, Any]:
    """Return a schema whose C{spec} has these string fields."""
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {name: {"type": "string"} for name in names}}},
    }


def two_versions(storage: str = "v1", plugin: str = "host-and-port") -> dict[str, Any]:
    """Return a definition that is converted by the plugin."""
    crd = definition()
    crd["metadata"]["annotations"] = {PLUGIN_ANNOTATION: plugin}
    v2 = texts("host")
    v2["properties"]["spec"]["properties"]["port"] = {"type": "integer"}
    column = {"name": "Host", "type": "string", "jsonPath": ".spec.host"}
    crd["spec"]["versions"] = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
            "additionalPrinterColumns": [column],
        }
        for name, schema in (("v1", texts("address", "note")), ("v2", v2))
    ]
    return crd


def old(name: str, address: str = "here:1", **meta: Any) -> dict[str, Any]:
    """Return an object in version 1."""
    return {
        "kind": "Kite",
        "apiVersion": "example.com/v1",
        "metadata": {"name": name, **meta},
        "spec": {"address": address},
    }


class ConversionTestCase(SynchronousTestCase):
    """Test case with tools that several test cases need."""

    def setUp(self) -> None:
        """Create a server with the plugin."""
        self.plugin = HostAndPort()
        outgoing = ClientFactory(None, lambda namespace, name: None)
        self.server = CustomServer()
        self.server.custom._make_converter = CRConverterFactory(outgoing, self.server.clock, [self.plugin])
        self.client = self.server.client()

    def define(self, **options: Any) -> None:
        """Create the definition."""
        self.server.define(self.client, two_versions(**options))

    def ask(self, method: str, path: str, body: Any = None, client: JSONClient | None = None, **headers: str) -> Any:
        """Send a request that must succeed; return the response."""
        code, answer = (client or self.client).ask(method, path, body, **headers)
        self.assertLess(code, 300, answer)
        return answer
