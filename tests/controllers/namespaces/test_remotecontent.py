"""Tests for L{kubetwist.controllers.namespaces.remotecontent}."""

from __future__ import annotations

import json
from typing import Any

from tests.resources.aggregation.aggregated import (
    GROUP,
    HOME,
    NAME,
    SERVICES,
    AggregatedCase,
    Backend,
)

NAMESPACE = "/api/v1/namespaces/doomed"
THINGS = f"{HOME}/namespaces/doomed/things"


class NamespaceTests(AggregatedCase):
    """Namespaces with content of an aggregated API server."""

    flags = ("--controllers=namespace-controller",)

    def serve(self, *verbs: str, **objects: Any) -> None:
        """Serve objects, by name and with their metadata, from the aggregated server."""
        self.things = objects
        self.backend.answers[HOME] = lambda request: {
            "kind": "APIResourceList",
            "groupVersion": f"{GROUP}/v1",
            "resources": [
                {"name": "things", "namespaced": True, "kind": "Thing", "verbs": ["get", "list", *verbs]},
                {"name": "things/status", "namespaced": True, "kind": "Thing", "verbs": ["get", "delete"]},
                {"name": "worlds", "namespaced": False, "kind": "World", "verbs": ["list", "delete"]},
                "nonsense",
            ],
        }
        self.backend.answers[THINGS] = self.collection
        for name in objects:
            self.backend.answers[f"{THINGS}/{name}"] = self.one

    def collection(self, request: Any) -> Any:
        """List or delete all objects."""
        if request.method == b"DELETE":
            for name in list(self.things):
                self.delete(name)
        return {"items": [{"metadata": {"name": name, **meta}} for name, meta in self.things.items()], "metadata": {}}

    def one(self, request: Any) -> Any:
        """Delete an object."""
        self.delete(request.path.decode().rpartition("/")[2])
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def delete(self, name: str) -> None:
        """Delete an object, unless it has a finalizer."""
        if not self.things.get(name, {}).get("finalizers"):
            self.things.pop(name, None)

    async def delete_namespace(self) -> None:
        """Create a namespace, and delete it."""
        await self.done("POST", "/api/v1/namespaces", {"metadata": {"name": "doomed"}})
        await self.done("DELETE", NAMESPACE)

    async def namespace_deleted(self) -> bool:
        """Return whether the namespace is deleted."""
        return (await self.ask("GET", NAMESPACE))[0] == 404

    async def wait_for_condition(self, kind: str, status: str) -> str:
        """Wait for a condition of the namespace, and return its message."""
        message = ""

        async def so() -> bool:
            nonlocal message
            code, response, _ = await self.ask("GET", NAMESPACE)
            conditions = json.loads(response).get("status", {}).get("conditions") or () if code == 200 else ()
            for one in conditions:
                if one["type"] == kind and one["status"] == status:
                    message = one["message"]
                    return True
            return False

        await self.until(so)
        return message

    async def test_content_is_deleted(self) -> None:
        """Deleting a namespace removes its content of the aggregated server, on behalf of the namespace controller."""
        await self.begin()
        self.serve("delete", "deletecollection", a={}, b={})
        await self.delete_namespace()
        await self.until(self.namespace_deleted)
        self.assertEqual(self.things, {})
        deletions = [one for one in self.backend.received if one.method == "DELETE"]
        self.assertEqual([one.path for one in deletions], [THINGS])
        self.assertEqual(json.loads(deletions[0].body)["propagationPolicy"], "Background")
        user = "system:serviceaccount:kube-system:namespace-controller"
        self.assertEqual(deletions[0].fields["x-remote-user"], [user])
        self.assertNotIn("system:masters", deletions[0].fields["x-remote-group"])

    async def test_one_by_one(self) -> None:
        """Without deletecollection, objects are deleted one by one."""
        await self.begin()
        self.serve("delete", a={}, b={})
        await self.delete_namespace()
        await self.until(self.namespace_deleted)
        self.assertEqual(self.things, {})

    async def test_held(self) -> None:
        """Finalizers of aggregated objects block deletion of the namespace and are in its conditions."""
        await self.begin()
        self.serve("delete", "deletecollection", a={"finalizers": ["example.com/wait"]})
        await self.delete_namespace()
        message = await self.wait_for_condition("NamespaceFinalizersRemaining", "True")
        self.assertIn("example.com/wait in 1 resource instances", message)
        message = await self.wait_for_condition("NamespaceContentRemaining", "True")
        self.assertEqual(message, f"Some resources are remaining: things.{GROUP} has 1 resource instances")

    async def test_dead_server(self) -> None:
        """A namespace remains, with a condition, while the discovery of an aggregated server fails."""
        self.backend = Backend()
        self.server = await self.startKubeAPI(*self.flags)
        await self.register()
        await self.delete_namespace()
        message = await self.wait_for_condition("NamespaceDeletionDiscoveryFailure", "True")
        self.assertEqual(
            message,
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs:"
            f" {GROUP}/v1: stale GroupVersion discovery: {GROUP}/v1",
        )
        self.assertFalse(await self.namespace_deleted())
        await self.done("DELETE", f"{SERVICES}/{NAME}")
        await self.until(self.namespace_deleted)
