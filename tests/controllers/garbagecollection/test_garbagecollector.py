"""Tests for L{kubetwist.controllers.garbagecollection.garbagecollector}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.garbagecollection.garbagecollector import GarbageCollector
from tests.controllers.harness import ControllerTestCase

KINDS = {"configmaps": ("v1", "ConfigMap"), "nodes": ("v1", "Node"), "deployments": ("apps/v1", "Deployment")}


def owner(obj: Any, resource: str = "configmaps", **more: Any) -> dict[str, Any]:
    """A reference to an object."""
    version, kind = KINDS[resource]
    meta = obj["metadata"]
    return {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"], **more}


class GarbageCollectorTests(ControllerTestCase):
    """Owners and dependents."""

    resources = ("namespaces", "configmaps", "secrets", "nodes", "events")

    def setUp(self) -> None:
        """A namespace."""
        super().setUp()
        self.make("namespaces", "one")

    def map(self, name: str, *owners: dict[str, Any], namespace: str = "one", finalizers: Any = ()) -> Any:
        """A config map with owners."""
        metadata: dict[str, Any] = {"ownerReferences": list(owners)} if owners else {}
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        return self.make("configmaps", name, namespace, metadata=metadata)

    def maps(self) -> list[str]:
        """The names of the config maps that are there."""
        return self.names("configmaps")

    def references(self, name: str) -> list[str]:
        """The names of an object's owners."""
        return [one["name"] for one in self.find("configmaps", name, "one")["metadata"].get("ownerReferences", ())]

    def gc(self) -> Any:
        """Start it."""
        self.collector = self.start(GarbageCollector)
        return self.collector

    # --- background

    def test_background(self) -> None:
        """When an owner is deleted its dependents go, and theirs; others stay."""
        self.gc()
        a = self.map("a")
        b = self.map("b", owner(a))
        self.map("c", owner(b))
        self.map("other")
        self.remove("configmaps", "a", "one", propagation="Background")
        self.settle()
        self.assertEqual(self.maps(), ["other"])
        self.assertTrue(self.collector.graph.empty)

    def test_one_owner_left(self) -> None:
        """A dependent with another owner stays, and the lost owner is taken off it."""
        self.gc()
        a, b = self.map("a"), self.map("b")
        self.map("c", owner(a), owner(b))
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.references("c"), ["b"])

    def test_absent(self) -> None:
        """An object whose owner was never there goes, whether it was there before the collector or comes later."""
        ghost = owner({"metadata": {"name": "ghost", "uid": "11"}})
        self.map("early", ghost)
        self.gc()
        self.map("late", ghost)
        self.settle()
        self.assertEqual(self.maps(), [])

    def test_other_uid(self) -> None:
        """An owner that was deleted and made again is another one."""
        a = self.map("a")
        self.map("b", owner(a))
        self.remove("configmaps", "a", "one")
        self.map("a")
        self.gc()
        self.assertEqual(self.maps(), ["a"])

    def test_later_owner(self) -> None:
        """An owner that an object gets later counts as well."""
        self.gc()
        a = self.map("a")
        self.map("b")
        self.change("configmaps", "b", lambda obj: obj["metadata"].update(ownerReferences=[owner(a)]), "one")
        self.settle()
        self.assertEqual(self.maps(), ["a", "b"])
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.maps(), [])

    def test_let_go(self) -> None:
        """An object that has given up its owner stays when that is deleted."""
        self.gc()
        a = self.map("a")
        self.map("b", owner(a))
        self.change("configmaps", "b", lambda obj: obj["metadata"].pop("ownerReferences"), "one")
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.maps(), ["b"])
        self.assertTrue(self.collector.graph.empty)

    def test_cluster_scoped_owner(self) -> None:
        """An object in a namespace may have an owner that is in none."""
        self.gc()
        node = self.make("nodes", "n")
        self.map("a", owner(node, "nodes"))
        self.settle()
        self.assertEqual(self.maps(), ["a"])
        self.remove("nodes", "n")
        self.settle()
        self.assertEqual(self.maps(), [])

    def test_owner_in_namespace_of_cluster_scoped(self) -> None:
        """An object that is in no namespace is left alone when its owner would be in one."""
        self.gc()
        ghost = owner({"metadata": {"name": "ghost", "uid": "11"}})
        self.make("nodes", "n", metadata={"ownerReferences": [ghost]})
        self.settle(60)
        self.assertEqual(self.names("nodes"), ["n"])
        self.assertTrue(self.collector.queue.idle)

    def test_other_namespace(self) -> None:
        """an owner in another namespace is invalid: the object is deleted, and an event is recorded."""
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
        """An object whose owner is of an unknown kind stays, and is looked at later and later."""
        self.gc()
        self.map("a", {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "11"})
        self.settle(100)
        self.assertEqual(self.maps(), ["a"])
        self.assertLess(self.collector.queue.metrics.done, 30)

    def test_policy_of_dependent(self) -> None:
        """A dependent that itself asks for its dependents to be orphaned has them orphaned."""
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
        """An owner can be deleted so that its dependents stay, without that owner; others they keep."""
        self.gc()
        a, b = self.map("a"), self.map("b")
        self.map("c", owner(a), owner(b))
        self.map("d", owner(a, controller=True))
        self.remove("configmaps", "a", "one", propagation="Orphan")
        self.settle()
        self.assertEqual(self.maps(), ["b", "c", "d"])
        self.assertEqual((self.references("c"), self.references("d")), (["b"], []))

    def test_orphan_waits(self) -> None:
        """An owner of which not all dependents could be let go stays until they are."""
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
        """A foreground deletion waits for the dependents that block it, and only for those."""
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
        """Dependents of dependents are deleted before them."""
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
        """A dependent that stops to block lets its owner go."""
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
        """A dependent that has another owner stays, and the waiting owner goes without it."""
        self.gc()
        a, b = self.map("a"), self.map("b")
        self.map("c", owner(a, blockOwnerDeletion=True), owner(b))
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.settle()
        self.assertEqual(self.maps(), ["b", "c"])
        self.assertEqual(self.references("c"), ["b"])

    def test_foreground_new_dependent(self) -> None:
        """A dependent that comes while its owner waits goes, too."""
        self.gc()
        a = self.map("a")
        self.map("b", owner(a, blockOwnerDeletion=True), finalizers=["example.com/wait"])
        self.remove("configmaps", "a", "one", propagation="Foreground")
        self.map("late", owner(a, blockOwnerDeletion=True))
        self.settle()
        self.assertEqual(self.maps(), ["a", "b"])

    def test_cycles(self) -> None:
        """Objects that own one another in a circle of any length go, one deleted in the foreground."""
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
        """Objects that block one another go even when all of them are deleted in the foreground at the same time."""
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

    # --- trouble

    def test_begun_before(self) -> None:
        """deletions during downtime are processed afterwards, with each propagation policy."""
        for way in ("Background", "Foreground", "Orphan"):
            with self.subTest(way):
                a = self.map("a")
                self.map("b", owner(a, blockOwnerDeletion=True))
                self.remove("configmaps", "a", "one", propagation=way)
                self.restart(GarbageCollector)
                self.settle(5)
                self.assertEqual(self.maps(), ["b"] if way == "Orphan" else [])

    def test_killed(self) -> None:
        """A cascade that a kill cut short anywhere is finished after the restart."""
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
        """Though every tenth write fails, everything comes to its end."""
        self.faults()

    def test_conflicts(self) -> None:
        """collection completes although every tenth write conflicts."""
        self.backend.conflicts = True
        self.faults()

    def faults(self) -> None:
        """Delete a tree while writes fail."""
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

    def test_unowned_cost_nothing(self) -> None:
        """Objects without owners that own nothing are not in the graph, and are never looked at."""
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
