"""A server of custom resources over HTTP in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubetwist.controllers.customresources import CRDController
from kubetwist.resources.customresources import CustomResources
from kubetwist.resources.handlers.watch import WatchFlusher
from kubetwist.resources.servedresources import MergedServedResources
from tests.resources.server import JSONClient, Server, definitions

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KITES = "/apis/example.com/v1/namespaces/default/kites"


class CustomServer(Server):
    """
    A server of CRDs, with their custom resources.

    @ivar custom: The served custom resources.
    """

    def __init__(
        self,
        *resources: str,
        make_converter: Callable[[dict[str, Any]], Any] = lambda crd: None,
        **options: Any,
    ) -> None:
        """
        @param resources: The names of further built-in resources.
        @param make_converter: See L{CustomResources}.
        @param options: See L{Server}.
        """
        options.setdefault("types", definitions())
        super().__init__("customresourcedefinitions", *resources, **options)
        store = self.stores.get("apiextensions.k8s.io", "customresourcedefinitions")
        self.custom = CustomResources(
            self.installer.mux,
            self.installer.served_resources,
            MergedServedResources([self.installer.served_resources]),
            self.registry,
            definitions(),
            self.clock,
            WatchFlusher(self.clock),
            make_converter=make_converter,
            defer_to_thread=self._in_thread,
        )
        self.controller = CRDController(store, self.custom, self.clock)
        self.controller.start()

    def settle(self) -> None:
        """Run the controllers until they are idle."""
        for _ in range(20):
            self.clock.advance(0)

    def define(self, client: JSONClient, crd: dict[str, Any]) -> dict[str, Any]:
        """Create a definition, and wait until it is established; return the established object."""
        code, created = client.ask("POST", DEFINITIONS, crd)
        assert code == 201, created
        self.settle()
        found: dict[str, Any] = client.ask("GET", f"{DEFINITIONS}/{crd['metadata']['name']}")[1]
        return found


def definition(
    schema: dict[str, Any] | None = None, plural: str = "kites", kind: str = "Kite", **version: Any
) -> dict[str, Any]:
    """
    Return a definition with one version.

    @param version: Fields of the version besides its schema.
    """
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema or SPEC},
                    **version,
                }
            ],
        },
    }


#: A schema with a little of everything.
SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "tail": {"type": "integer", "minimum": 1},
                "colour": {"type": "string", "default": "red"},
                "replicas": {"type": "integer"},
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}},
        },
    },
}


def kite(name: str, **fields: Any) -> dict[str, Any]:
    """Return an object of the kind that L{definition} defines."""
    return {"kind": "Kite", "apiVersion": "example.com/v1", "metadata": {"name": name}, **fields}
