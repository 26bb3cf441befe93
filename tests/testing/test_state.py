"""Tests for L{kubetwist.testing.state}."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.internet.threads import deferToThread

from kubetwist.testing import InProcessServer
from kubetwist.testing.manifests import LoadError
from tests.testing.powercase import MAPS, PowerTestCase

FOOS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class StateTests(PowerTestCase):
    """C{reset}, C{snapshot}, C{restore}, C{compact} and C{load}."""

    async def test_reset(self) -> None:
        """After a reset the server has its initial state except for revisions, and watches have ended."""
        await self.begin()
        server = self.server
        await server.reset()
        before = await server.snapshot()
        await server.load([FOOS, {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": "a"}}])
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
        newest = (await self.make("a"))["metadata"]["resourceVersion"]
        await self.ask("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
        await self.ask("DELETE", "/api/v1/namespaces/default/serviceaccounts/default")
        port = {"port": 80, "nodePort": 30080}
        service = {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [port]}}
        self.assertEqual((await self.ask("POST", "/api/v1/namespaces/default/services", service))[0], 201)
        watch = await self.watch("/apis/example.org/v1/foos?watch=1")
        maps = await self.watch(f"{MAPS}?watch=1&resourceVersion={newest}")

        await server.reset()

        after = await server.snapshot()
        self.assertEqual(
            {key: item.value for key, item in after.items.items()},
            {key: item.value for key, item in before.items.items()},
        )
        event = await deferToThread(watch.event)
        while event is not None:
            event = await deferToThread(watch.event)
        self.assertIsNone(await deferToThread(maps.event))
        self.assertEqual((await self.ask("GET", "/apis/example.org/v1/foos"))[0], 404)
        self.assertNotIn("example.org", str(await self.ask("GET", "/apis")))
        self.assertEqual((await self.ask("GET", "/api/v1/namespaces/mine"))[0], 404)
        self.assertEqual((await self.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"))[0], 200)
        code, error = await self.ask("GET", f"{MAPS}?resourceVersion={newest}&resourceVersionMatch=Exact")
        self.assertEqual((code, error["reason"]), (410, "Expired"))
        self.assertGreater(int((await self.make("a"))["metadata"]["resourceVersion"]), int(newest))
        # What services shared is free again, too.
        self.assertEqual((await self.ask("POST", "/api/v1/namespaces/default/services", service))[0], 201)

    async def test_definitions_come_back(self) -> None:
        """A custom resource that a reset has removed can be defined again, and is empty."""
        await self.begin()
        foo = {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": "a"}}
        for _ in range(3):
            await self.server.load([FOOS, foo])
            _, listed = await self.ask("GET", "/apis/example.org/v1/foos")
            self.assertEqual([one["metadata"]["name"] for one in listed["items"]], ["a"])
            await self.server.reset()
            await self.server.load([FOOS])
            _, listed = await self.ask("GET", "/apis/example.org/v1/foos")
            self.assertEqual(listed["items"], [])
            await self.server.reset()

    async def test_busy_controllers(self) -> None:
        """A reset is stable while controllers are busy: they create nothing for removed objects."""
        await self.begin("--controllers=*,+workloads")
        await self.server.reset()
        before = set((await self.server.snapshot()).items)
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
        spec = {"replicas": 20, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        for _ in range(3):
            self.assertEqual((await self.ask("POST", path, {"metadata": {"name": "web"}, "spec": spec}))[0], 201)
            await self.server.reset()
            self.assertTrue(await self.server.settle())
            self.assertEqual(set((await self.server.snapshot()).items), before)

    async def test_baseline(self) -> None:
        """A reset returns to the loaded objects, definitions with paths and OpenAPI, and what controllers made."""
        foo = {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": "a", "namespace": "mine"}}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "namespace.yaml").write_text(json.dumps(namespace))
        self.server = server = await self.startKubeAPI(load=[foo, FOOS, str(folder)])
        before = await server.snapshot()
        path = "/apis/example.org/v1/namespaces/mine/foos/a"
        for _ in range(3):
            for one in (
                path,
                "/api/v1/namespaces/mine/serviceaccounts/default",
                "/api/v1/namespaces/mine/configmaps/kube-root-ca.crt",
                "/openapi/v3/apis/example.org/v1",
            ):
                self.assertEqual((await self.ask("GET", one))[0], 200, one)
            definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.org"
            self.assertEqual((await self.ask("DELETE", definition))[0], 200)
            self.assertEqual((await self.ask("DELETE", "/api/v1/namespaces/mine"))[0], 200)
            await server.settle()
            self.assertEqual((await self.ask("GET", path))[0], 404)
            await self.make("a")
            await server.reset()
            after = await server.snapshot()
            self.assertEqual(
                {key: item.value for key, item in after.items.items()},
                {key: item.value for key, item in before.items.items()},
            )

    async def test_set_baseline(self) -> None:
        """C{set_baseline} makes the current state the one that C{reset} restores, again and again."""
        await self.begin()
        await self.server.reset()
        for kept, dropped in (("a", "b"), ("c", "d")):
            await self.make(kept)
            await self.server.set_baseline()
            await self.make(dropped)
            await self.server.reset()
        _, listed = await self.ask("GET", MAPS)
        self.assertEqual([one["metadata"]["name"] for one in listed["items"]], ["a", "c", "kube-root-ca.crt"])

    async def test_load_fails(self) -> None:
        """A server whose objects cannot be loaded does not start, and leaves nothing behind."""
        server = InProcessServer(load=["missing.yaml"])
        with self.assertRaisesRegex(LoadError, "missing.yaml: No such file"):
            await server.start()
        server = InProcessServer(load=[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "A"}}])
        with self.assertRaisesRegex(LoadError, "object 1: ConfigMap A: 422: .*metadata.name: Invalid value"):
            await server.start()

    async def test_without_controllers(self) -> None:
        """C{controllers=""} starts a server without controllers, which can be reset, too."""
        self.server = server = InProcessServer(controllers="")
        await server.start()
        self.addCleanup(lambda: server.stop())
        await self.make("a")
        await server.reset()
        self.assertEqual((await self.ask("GET", f"{MAPS}/a"))[0], 404)
        self.assertEqual((await self.ask("GET", "/api/v1/namespaces/default/serviceaccounts"))[1]["items"], [])

    async def test_restore(self) -> None:
        """A restore brings back the objects of a snapshot, and open watches show the changes."""
        await self.begin()
        await self.server.reset()
        kept = await self.make("kept")
        await self.make("changed")
        snapshot = await self.server.snapshot()
        path = f"{MAPS}/changed"
        _, changed = await self.ask("GET", path)
        await self.ask("PUT", path, {**changed, "data": {"k": "v"}})
        await self.ask("DELETE", f"{MAPS}/kept")
        newest = (await self.make("new"))["metadata"]["resourceVersion"]
        watch = await self.watch(f"{MAPS}?watch=1&resourceVersion={newest}")
        await self.server.restore(snapshot)
        seen = [await deferToThread(watch.event) for _ in range(3)]
        self.assertEqual(
            sorted((event["type"], event["object"]["metadata"]["name"]) for event in seen),
            [("ADDED", "kept"), ("DELETED", "new"), ("MODIFIED", "changed")],
        )
        _, back = await self.ask("GET", f"{MAPS}/kept")
        self.assertEqual(back["metadata"]["uid"], kept["metadata"]["uid"])
        self.assertEqual((await self.ask("GET", path))[1]["data"], {"of": "changed"})

    async def test_compact(self) -> None:
        """After a compaction, watches from older revisions get 410."""
        await self.begin("--controllers=")
        old = (await self.make("a"))["metadata"]["resourceVersion"]
        await self.make("b")
        await self.server.compact()
        watch = await self.watch(f"{MAPS}?watch=1&resourceVersion={old}")
        event = await deferToThread(watch.event)
        self.assertEqual((event["type"], event["object"]["code"], event["object"]["reason"]), ("ERROR", 410, "Expired"))

    async def test_load_a_dump(self) -> None:
        """A dump is loaded with status and owners, and owner references get the new UIDs."""
        await self.begin()
        text = """
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata:
    {name: web-1, namespace: prod, uid: old-2, resourceVersion: "17", ownerReferences: [
      {apiVersion: apps/v1, kind: Deployment, name: web, uid: old-1, controller: true}]}
  spec: &spec
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: prod, uid: old-1, creationTimestamp: "2020-01-01T00:00:00Z"}
  spec: *spec
  status: {observedGeneration: 7, replicas: 3}
- {apiVersion: v1, kind: Namespace, metadata: {name: prod, uid: old-0}, status: {phase: Active}}
- {apiVersion: v1, kind: Service, metadata: {name: kubernetes, namespace: default}, spec: {clusterIP: 10.96.0.1}}
"""
        file = Path(self.mktemp())
        file.write_text(text)
        created = await self.server.load(file)
        self.assertEqual([obj["kind"] for obj in created], ["Namespace", "Deployment", "ReplicaSet"])
        _, deployment, owned = created
        self.assertEqual(deployment["status"]["observedGeneration"], 7)
        self.assertEqual(owned["metadata"]["ownerReferences"][0]["uid"], deployment["metadata"]["uid"])
        self.assertNotEqual(deployment["metadata"]["uid"], "old-1")

    async def test_load_twice(self) -> None:
        """Existing objects are updated from the manifest."""
        await self.begin("--controllers=")
        for value in ("1", "2"):
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}}
            (created,) = await self.server.load([obj])
            self.assertEqual(created["data"], {"k": value})

    async def test_load_refused(self) -> None:
        """The error about an object that cannot be loaded names it."""
        await self.begin("--controllers=", "--disable-admission-plugins=ServiceAccount")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}, "spec": {}}
        with self.assertRaisesRegex(LoadError, "object 1: Pod bad: 422: .*spec.containers: Required"):
            await self.server.load([pod])
        with self.assertRaisesRegex(LoadError, "no Nothing in v1"):
            await self.server.load("{apiVersion: v1, kind: Nothing}")
