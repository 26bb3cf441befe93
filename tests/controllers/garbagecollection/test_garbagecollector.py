"""Tests for L{kubetwist.controllers.garbagecollection.garbagecollector}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.garbagecollection.garbagecollector import GarbageCollector
from tests.controllers.harness import ControllerTestCase

KINDS = {"configmaps": ("v1", "ConfigMap"), "nodes": ("v1", "Node"), "deployments": ("apps/v1", "Deployment")}


def owner(obj: Any, resource: str = "configmaps", **more: Any) -> dict[str, Any]:
    """Return an owner reference to an object."""
    version, kind = KINDS[resource]
    meta = obj["metadata"]
    return {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"], **more}


class GarbageCollectorTests(ControllerTestCase):
    """Owners and dependents."""

    resources = ("namespaces", "configmaps", "secrets", "nodes", "events")

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        self.make("namespaces", "one")

    def map(self, name: str, *owners: dict[str, Any], namespace: str = "one", finalizers: Any = ()) -> Any:
        """Create a config map with owners."""
        metadata: dict[str, Any] = {"ownerReferences": list(owners)} if owners else {}
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        return self.make("configmaps", name, namespace, metadata=metadata)

    def maps(self) -> list[str]:
        """Return the names of the config maps."""
        return self.names("configmaps")

    def references(self, name: str) -> list[str]:
        """Return the names of an object's owners."""
        return [one["name"] for one in self.find("configmaps", name, "one")["metadata"].get("ownerReferences", ())]

    def gc(self) -> Any:
        """Start the garbage collector."""
        self.collector = self.start(GarbageCollector)
        return self.collector

    # --- background

    def test_background(self) -> None:
        """Deleting an owner deletes its dependents transitively, and no other objects."""
        self.gc()
        a = self.map("a")
        b = self.map("b", owner(a))
        self.map("c", owner(b))
        self.map("other")
        self.remove("configmaps", "a", "one", propagation="Background")
        self.settle()
        self.assertEqual(self.maps(), ["other"])
        self.assertTrue(self.collector.graph.empty)

    def test_remaining_owner(self) -> None:
        """A dependent with another owner is kept, and the reference to the deleted owner is removed."""
        self.gc()
        a, b = self.map("a"), self.map("b")
        self.map("c", owner(a), owner(b))
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.references("c"), ["b"])

    def test_absent(self) -> None:
        """An object whose owner never existed is deleted, whether it was created before the start or after it."""
        ghost = owner({"metadata": {"name": "ghost", "uid": "11"}})
        self.map("early", ghost)
        self.gc()
        self.map("late", ghost)
        self.settle()
        self.assertEqual(self.maps(), [])

    def test_other_uid(self) -> None:
        """An owner that was recreated with another uid is not the owner."""
        a = self.map("a")
        self.map("b", owner(a))
        self.remove("configmaps", "a", "one")
        self.map("a")
        self.gc()
        self.assertEqual(self.maps(), ["a"])

    def test_added_owner(self) -> None:
        """An owner reference that is added later is effective."""
        self.gc()
        a = self.map("a")
        self.map("b")
        self.change("configmaps", "b", lambda obj: obj["metadata"].update(ownerReferences=[owner(a)]), "one")
        self.settle()
        self.assertEqual(self.maps(), ["a", "b"])
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.maps(), [])

    def test_removed_reference(self) -> None:
        """An object whose owner reference was removed is kept when the owner is deleted."""
        self.gc()
        a = self.map("a")
        self.map("b", owner(a))
        self.change("configmaps", "b", lambda obj: obj["metadata"].pop("ownerReferences"), "one")
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.maps(), ["b"])
        self.assertTrue(self.collector.graph.empty)

    def test_cluster_scoped_owner(self) -> None:
        """A namespaced object may have a cluster-scoped owner."""
        self.gc()
        node = self.make("nodes", "n")
        self.map("a", owner(node, "nodes"))
        self.settle()
        self.assertEqual(self.maps(), ["a"])
        self.remove("nodes", "n")
        self.settle()
        self.assertEqual(self.maps(), [])

    def test_owner_in_namespace_of_cluster_scoped(self) -> None:
        """A cluster-scoped object with a namespaced owner is not deleted."""
        self.gc()
        ghost = owner({"metadata": {"name": "ghost", "uid": "11"}})
        self.make("nodes", "n", metadata={"ownerReferences": [ghost]})
        self.settle(60)
        self.assertEqual(self.names("nodes"), ["n"])
        self.assertTrue(self.collector.queue.idle)

    def test_other_namespace(self) -> None:
        """An owner in another namespace is invalid: the object is deleted, and an event is recorded."""
        self.make("namespaces", "two")
        self.gc()
        a = self.map("a", namespace="two")
        b = self.map("b", owner(a))
        self.settle()
        self.assertEqual(self.maps(), ["a"])
        [name] = self.names("events", "one")
        event = self.find("events", name, "one")
        self.assertEqual((event["type"], event["reason"]), ("Warning", "OwnerRefInvalidNamespace"))
        self.assertEqual(
            event["message"],
            f"ownerRef [v1/ConfigMap, namespace: one, name: a, uid: {a['metadata']['uid']}] "
            'does not exist in namespace "one"',
        )
        self.assertEqual(event["involvedObject"]["uid"], b["metadata"]["uid"])
        self.assertEqual(event["source"], {"component": "garbage-collector-controller"})

    def test_unknown_kind(self) -> None:
        """An object whose owner has an unknown kind is kept, and is retried with backoff."""
        self.gc()
        self.map("a", {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "11"})
        self.settle(100)
        self.assertEqual(self.maps(), ["a"])
        self.assertLess(self.collector.queue.metrics.done, 30)

    def test_policy_of_dependent(self) -> None:
        """The finalizer orphan of a dependent orphans its dependents."""
        self.gc()
        a = self.map("a")
        b = self.map("b", owner(a), finalizers=["orphan"])
        self.map("c", owner(b))
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.maps(), ["c"])
        self.assertEqual(self.references("c"), [])

    # --- orphaning

    def test_orphan(self) -> None:
        """Deleting an owner with policy Orphan keeps its dependents, and removes only its owner references."""
        self.gc()
        a, b = self.map("a"), self.map("b")
        self.map("c", owner(a), owner(b))
        self.map("d", owner(a, controller=True))
        self.remove("configmaps", "a", "one", propagation="Orphan")
        self.settle()
        self.assertEqual(self.maps(), ["b", "c", "d"])
        self.assertEqual((self.references("c"), self.references("d")), (["b"], []))

    def test_orphan_waits(self) -> None:
        """An owner in orphan deletion remains until all its dependents are orphaned."""
        self.gc()
        a = self.map("a")
        for number in range(5):
            self.map(f"d{number}", owner(a))
        self.settle()
        self.remove("configmaps", "a", "one", propagation="Orphan")
        self.backend.fails = lambda number: True
        self.settle(1)
        self.assertIn("a", self.maps())
        self.backend.fails = lambda number: False
        self.settle(60)
        self.assertEqual(self.maps(), [f"d{number}" for number in range(5)])
        self.flushLoggedErrors()

    # --- foreground

    def test_foreground(self) -> None:
        """A foreground deletion waits only for the dependents that block it."""
        self.gc()
        a = self.map("a")
        self.map("blocking", owner(a, blockOwnerDeletion=True), finalizers=["example.com/wait"])
        self.map("other", owner(a), finalizers=["example.com/wait"])
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.settle(5)
        self.assertEqual(self.maps(), ["a", "blocking", "other"])
        for name in ("blocking", "other"):
            self.assertIn("deletionTimestamp", self.find("configmaps", name, "one")["metadata"])
        self.change("configmaps", "blocking", lambda obj: obj["metadata"].pop("finalizers"), "one")
        self.settle()
        self.assertEqual(self.maps(), ["other"])

    def test_foreground_deep(self) -> None:
        """Transitive dependents are deleted before dependents."""
        self.gc()
        a = self.map("a")
        b = self.map("b", owner(a, blockOwnerDeletion=True))
        self.map("c", owner(b, blockOwnerDeletion=True), finalizers=["example.com/wait"])
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.settle(5)
        self.assertEqual(self.maps(), ["a", "b", "c"])
        self.assertIn("foregroundDeletion", self.find("configmaps", "b", "one")["metadata"]["finalizers"])
        self.change("configmaps", "c", lambda obj: obj["metadata"].pop("finalizers"), "one")
        self.settle()
        self.assertEqual(self.maps(), [])

    def test_foreground_unblocked(self) -> None:
        """A dependent that stops blocking unblocks its owner."""
        self.gc()
        a = self.map("a")
        self.map("b", owner(a, blockOwnerDeletion=True), finalizers=["example.com/wait"])
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.settle()
        self.assertEqual(self.maps(), ["a", "b"])

        def unblock(obj: Any) -> None:
            obj["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = False

        self.change("configmaps", "b", unblock, "one")
        self.settle()
        self.assertEqual(self.maps(), ["b"])

    def test_foreground_shared(self) -> None:
        """A dependent with another owner is kept, and the reference to the waiting owner is removed."""
        self.gc()
        a, b = self.map("a"), self.map("b")
        self.map("c", owner(a, blockOwnerDeletion=True), owner(b))
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.settle()
        self.assertEqual(self.maps(), ["b", "c"])
        self.assertEqual(self.references("c"), ["b"])

    def test_foreground_new_dependent(self) -> None:
        """A dependent that is created while its owner waits is deleted, too."""
        self.gc()
        a = self.map("a")
        self.map("b", owner(a, blockOwnerDeletion=True), finalizers=["example.com/wait"])
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.map("late", owner(a, blockOwnerDeletion=True))
        self.settle()
        self.assertEqual(self.maps(), ["a", "b"])

    def test_cycles(self) -> None:
        """Owner cycles of any length are deleted if one object is deleted in the foreground."""
        self.gc()
        for length in (1, 2, 3, 5):
            made = [self.map(f"m{number}") for number in range(length)]
            for number in range(length):
                blocker = owner(made[number - 1], blockOwnerDeletion=True)
                self.change(
                    "configmaps",
                    f"m{number}",
                    lambda obj, blocker=blocker: obj["metadata"].update(ownerReferences=[blocker]),
                    "one",
                )
            self.settle()
            self.assertEqual(len(self.maps()), length)
            self.remove("configmaps", "m0", "one", propagation="Foreground")
            self.settle(10)
            self.assertEqual(self.maps(), [], length)

    def test_cycle_of_waiting(self) -> None:
        """Blocking cycles are deleted if all objects are deleted in the foreground at the same time."""
        made = [self.map(f"m{number}") for number in range(3)]
        for number in range(3):
            blocker = owner(made[number - 1], blockOwnerDeletion=True)
            self.change(
                "configmaps",
                f"m{number}",
                lambda obj, blocker=blocker: obj["metadata"].update(ownerReferences=[blocker]),
                "one",
            )
        for number in range(3):
            self.remove("configmaps", f"m{number}", "one", propagation="Foreground")
        self.gc()
        self.settle(10)
        self.assertEqual(self.maps(), [])

    # --- interruptions and failures

    def test_downtime(self) -> None:
        """Deletions during downtime are processed afterwards, with each propagation policy."""
        for way in ("Background", "Foreground", "Orphan"):
            with self.subTest(way):
                a = self.map("a")
                self.map("b", owner(a, blockOwnerDeletion=True))
                self.remove("configmaps", "a", "one", propagation=way)
                self.restart(GarbageCollector)
                self.settle(5)
                self.assertEqual(self.maps(), ["b"] if way == "Orphan" else [])

    def test_killed(self) -> None:
        """A cascade that is interrupted by a kill at any write is completed after the restart."""
        for policy in ("Background", "Foreground"):
            for commits in range(1, 12, 3):
                self.gc()
                a = self.map("a")
                for number in range(10):
                    self.map(f"d{number}", owner(a, blockOwnerDeletion=True))
                self.settle()
                self.remove("configmaps", "a", "one", propagation=policy)
                last = self.backend.commits + commits
                self.backend.fails = lambda number, last=last: number > last
                self.settle(0.001)
                self.backend.fails = lambda number: False
                self.restart(GarbageCollector)
                self.settle(10)
                self.assertEqual(self.maps(), [])
                self.restart()
        self.flushLoggedErrors()

    def test_faults(self) -> None:
        """With every tenth write failing, collection completes."""
        self.faults()

    def test_conflicts(self) -> None:
        """Collection completes although every tenth write conflicts."""
        self.backend.conflicts = True
        self.faults()

    def faults(self) -> None:
        """Delete a tree of objects with injected failures."""
        self.gc()
        a, b = self.map("a"), self.map("b")
        for number in range(50):
            c = self.map(f"c{number}", owner(a, blockOwnerDeletion=True), *([owner(b)] if number % 2 else []))
            self.map(f"d{number}", owner(c, blockOwnerDeletion=True))
        self.settle()
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(300)
        self.assertEqual(len(self.maps()), 51)
        self.assertNotIn("a", self.maps())
        self.flushLoggedErrors()

    def test_objects_without_owners(self) -> None:
        """Objects without owners and dependents are not in the graph, and are not decoded."""
        self.gc()
        done = self.collector.queue.metrics.done
        for number in range(20):
            self.map(f"m{number}")
            self.change("configmaps", f"m{number}", lambda obj: obj.update(data={"a": "b"}), "one")
        for number in range(20):
            self.remove("configmaps", f"m{number}", "one")
        self.settle()
        self.assertEqual(self.collector.queue.metrics.done, done)
        self.assertTrue(self.collector.graph.empty)
