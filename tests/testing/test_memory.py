"""Tests for L{kubetwist.testing.memory}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock, LoopingCall, deferLater
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import times
from kubetwist.api.errors import APIStatusError
from kubetwist.testing.memory import MAX_WAIT, START, MemoryServer, NoResult, plural_of

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
KITE: Any = {"apiVersion": "stable.example.com/v1", "kind": "Kite", "metadata": {"name": "k", "namespace": "n"}}


class ObjectTests(SynchronousTestCase):
    """The objects of a L{MemoryServer}."""

    def test_stored(self) -> None:
        """Objects are stored with defaults, and read as plugins read them."""
        server = MemoryServer([CONFIG_MAP]).start()
        stored = server.get("configmaps", "a", "default")
        assert stored is not None
        self.assertEqual((stored["kind"], stored["data"]), ("ConfigMap", {"k": "v"}))
        self.assertEqual(stored["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z")
        self.assertTrue(stored["metadata"]["uid"])
        self.assertIsNotNone(server.context.get_decoded("", "configmaps", "default", "a"))
        self.assertEqual(server.list("configmaps"), [stored])
        self.assertEqual(server.list("configmaps", "other"), [])
        self.assertEqual(server.list("kites.example.com"), [])
        self.assertIsNone(server.get("configmaps", "b", "default"))
        server.stop()

    def test_yaml(self) -> None:
        """Objects are YAML text too; a status is kept, and the version of the object may differ from the stored one."""
        server = MemoryServer()
        text = """
        apiVersion: autoscaling/v1
        kind: HorizontalPodAutoscaler
        metadata: {name: h, namespace: team}
        spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}
        status: {currentReplicas: 2, desiredReplicas: 2}
        """
        (stored,) = server.add(text)
        self.assertEqual((stored["apiVersion"], stored["status"]["currentReplicas"]), ("autoscaling/v2", 2))

    def test_replaced(self) -> None:
        """An object that exists is replaced."""
        server = MemoryServer([CONFIG_MAP])
        server.add([{**CONFIG_MAP, "data": {"k": "w"}}])
        (stored,) = server.list("configmaps")
        self.assertEqual(stored["data"], {"k": "w"})

    def test_cluster_scoped(self) -> None:
        """Objects of cluster-scoped kinds have no namespace."""
        server = MemoryServer([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "x"}}])
        node = server.start().get("nodes", "n")
        assert node is not None
        self.assertNotIn("namespace", node["metadata"])

    def test_malformed(self) -> None:
        """Objects that do not fit their type, or have none, are errors."""
        self.assertRaises(APIStatusError, MemoryServer([{**CONFIG_MAP, "data": {"k": 1}}]).start)
        self.assertRaises(ValueError, MemoryServer([{**CONFIG_MAP, "kind": "ConfigMop"}]).start)
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}}
        self.assertRaises(ValueError, MemoryServer([review]).start)

    def test_custom_resources(self) -> None:
        """Objects of unknown kinds are stored with all fields, and found in their group."""
        server = MemoryServer([{**KITE, "spec": {"a": [1]}}])
        changes: list[int] = []
        unsubscribe = server.subscribe(lambda: changes.append(len(server.all_served())))
        server.start()
        stored = server.get("kites.stable.example.com", "k", "n")
        assert stored is not None
        self.assertEqual(stored["spec"], {"a": [1]})
        self.assertEqual(changes, [1])
        unsubscribe()
        server.add([{**KITE, "kind": "Fly", "metadata": {"name": "f"}}])
        self.assertEqual((changes, len(server.list("flies.stable.example.com"))), ([1], 1))
        self.assertTrue(self.successResultOf(server.context.ensure_cached("stable.example.com", "kites")))
        self.assertIsNotNone(server.served("kites.stable.example.com"))
        server.stop()

    def test_plurals(self) -> None:
        """Plurals follow the rules of Kubernetes."""
        self.assertEqual([plural_of(kind) for kind in ("Kite", "Policy", "Class")], ["kites", "policies", "classes"])

    def test_release(self) -> None:
        """The kinds are those of the release."""
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}}
        self.assertEqual(len(MemoryServer().add([claim])), 1)
        self.assertRaises(ValueError, MemoryServer(release="1.30").add, [claim])


class RunTests(SynchronousTestCase):
    """L{MemoryServer.run}."""

    def setUp(self) -> None:
        """Create a server."""
        self.server = MemoryServer()
        assert isinstance(self.server.clock, Clock)
        self.clock = self.server.clock

    def test_results(self) -> None:
        """The result of a coroutine or Deferred is returned, and its exception is raised."""

        async def coroutine() -> int:
            return 7

        async def fail() -> None:
            raise KeyError

        self.assertEqual(self.server.run(coroutine()), 7)
        self.assertEqual(self.server.run(succeed(8)), 8)
        self.assertRaises(KeyError, self.server.run, fail())

    def test_time(self) -> None:
        """The clock advances to the calls that code waits for, and objects have its time until the result."""

        async def wait() -> float:
            await deferLater(self.clock, 100)
            return times.posix_now()

        self.assertEqual(self.server.run(wait()), START + 100)
        self.assertNotEqual(times.posix_now(), START + 100)

    def test_never(self) -> None:
        """Code that waits for something else, or too long, is cancelled, and an error."""
        cancelled: list[object] = []
        never = Deferred[None](cancelled.append)
        error = self.assertRaises(NoResult, self.server.run, never)
        self.assertIn("something other than the clock", str(error))
        self.assertEqual(cancelled, [never])
        loop = LoopingCall(lambda: None)
        loop.clock = self.clock
        loop.start(1)
        error = self.assertRaises(NoResult, self.server.run, Deferred())
        self.assertIn("after 3600 s of the clock", str(error))
        self.assertEqual(self.clock.seconds(), START + MAX_WAIT)
        loop.stop()
