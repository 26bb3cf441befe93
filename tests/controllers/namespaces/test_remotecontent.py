"""Tests for L{kubetwist.controllers.namespaces.remotecontent}: namespaces in which another server has something."""

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
    """The end of a namespace."""

    flags = ("--controllers=namespace-controller",)

    def serve(self, *verbs: str, **objects: Any) -> None:
        """Have the other server know things, by name: with the metadata that each has."""
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
        """List all, or delete all."""
        if request.method == b"DELETE":
            for name in list(self.things):
                self.delete(name)
        return {"items": [{"metadata": {"name": name, **meta}} for name, meta in self.things.items()], "metadata": {}}

    def one(self, request: Any) -> Any:
        """Delete one."""
        self.delete(request.path.decode().rpartition("/")[2])
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def delete(self, name: str) -> None:
        """Delete one, unless a finalizer holds it."""
        if not self.things.get(name, {}).get("finalizers"):
            self.things.pop(name, None)

    async def doom(self) -> None:
        """Make a namespace, and delete it."""
        await self.done("POST", "/api/v1/namespaces", {"metadata": {"name": "doomed"}})
        await self.done("DELETE", NAMESPACE)

    async def gone(self) -> bool:
        """Whether it is not there any more."""
        return (await self.ask("GET", NAMESPACE))[0] == 404

    async def told(self, kind: str, status: str) -> str:
        """Wait for a condition of the namespace; give its message."""
        message = ""

        async def so() -> bool:
            nonlocal message
            code, answer, _ = await self.ask("GET", NAMESPACE)
            conditions = json.loads(answer).get("status", {}).get("conditions") or () if code == 200 else ()
            for one in conditions:
                if one["type"] == kind and one["status"] == status:
                    message = one["message"]
                    return True
            return False

        await self.until(so)
        return message

    async def test_emptied(self) -> None:
        """What another server has in a namespace is deleted with it, by the namespace controller itself."""
        await self.begin()
        self.serve("delete", "deletecollection", a={}, b={})
        await self.doom()
        await self.until(self.gone)
        self.assertEqual(self.things, {})
        deletions = [one for one in self.backend.received if one.method == "DELETE"]
        self.assertEqual([one.path for one in deletions], [THINGS])
        self.assertEqual(json.loads(deletions[0].body)["propagationPolicy"], "Background")
        user = "system:serviceaccount:kube-system:namespace-controller"
        self.assertEqual(deletions[0].fields["x-remote-user"], [user])
        self.assertNotIn("system:masters", deletions[0].fields["x-remote-group"])

    async def test_one_by_one(self) -> None:
        """without deletecollection, objects are deleted one by one."""
        await self.begin()
        self.serve("delete", a={}, b={})
        await self.doom()
        await self.until(self.gone)
        self.assertEqual(self.things, {})

    async def test_held(self) -> None:
        """finalizers of aggregated objects block deletion of the namespace and are in its conditions."""
        await self.begin()
        self.serve("delete", "deletecollection", a={"finalizers": ["example.com/wait"]})
        await self.doom()
        message = await self.told("NamespaceFinalizersRemaining", "True")
        self.assertIn("example.com/wait in 1 resource instances", message)
        message = await self.told("NamespaceContentRemaining", "True")
        self.assertEqual(message, f"Some resources are remaining: things.{GROUP} has 1 resource instances")

    async def test_dead_server(self) -> None:
        """A namespace stays, and says so, as long as it is not known what another server has in it."""
        self.backend = Backend()
        self.server = await self.startKubeAPI(*self.flags)
        await self.register()
        await self.doom()
        message = await self.told("NamespaceDeletionDiscoveryFailure", "True")
        self.assertEqual(
            message,
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs:"
            f" {GROUP}/v1: stale GroupVersion discovery: {GROUP}/v1",
        )
        self.assertFalse(await self.gone())
        await self.done("DELETE", f"{SERVICES}/{NAME}")
        await self.until(self.gone)
