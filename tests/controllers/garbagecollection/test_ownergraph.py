"""Tests for L{kubetwist.controllers.garbagecollection.ownergraph}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, tuples

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.garbagecollection.ownergraph import (
    ObjectKey,
    OwnerGraph,
    Reference,
)

UIDS = "abcdef"


def reference(uid: str, block_owner_deletion: bool = True) -> Reference:
    """Return an owner reference."""
    return Reference("v1", "ConfigMap", uid, uid, block_owner_deletion)


def object_key(uid: str) -> ObjectKey:
    """Return the key of the object with a uid."""
    return ObjectKey("configmaps", f"ns/{uid}")


def small() -> integers:
    """Return a strategy of small object numbers."""
    return integers(0, len(UIDS) - 1)


class OwnerGraphTests(SynchronousTestCase):
    """Tests for L{OwnerGraph}."""

    @given(lists(tuples(small(), booleans(), lists(tuples(small(), booleans()), max_size=4)), max_size=30), booleans())
    def test_any_changes(self, changes: list[tuple[int, bool, list[tuple[int, bool]]]], waiting: bool) -> None:
        """
        After any changes the graph is equal to the owner references of the objects.

        A waiting owner is reported as unblocked exactly when its last blocking dependent stops blocking.
        """
        graph = OwnerGraph()
        truth: dict[str, tuple[Reference, ...]] = {}
        if waiting:
            graph.waiting = {uid: object_key(uid) for uid in UIDS}

        def blocked(owner: str) -> bool:
            return any(
                one.uid == owner and one.block_owner_deletion and uid != owner
                for uid, references in truth.items()
                for one in references
            )

        for number, there, owners in changes:
            uid = UIDS[number]
            before = {owner: blocked(owner) for owner in UIDS}
            if there:
                named = tuple(reference(UIDS[owner], block_owner_deletion) for owner, block_owner_deletion in owners)
                fresh, unblocked = graph.put(object_key(uid), uid, named)
                self.assertEqual(fresh, bool(named) and truth.get(uid, ()) != named)
                truth[uid] = named
            else:
                node, unblocked = graph.remove(object_key(uid))
                self.assertEqual(node is not None, bool(truth.pop(uid, ())))
            freed = {owner for owner in UIDS if before[owner] and not blocked(owner)}
            self.assertEqual(set(unblocked), freed if waiting else set())
            for owner in UIDS:
                dependents = {one for one, references in truth.items() if any(ref.uid == owner for ref in references)}
                self.assertEqual({node.uid for node in graph.dependents(owner)}, dependents)
                self.assertEqual(graph.has_dependents(owner), bool(dependents))
                self.assertEqual(graph.has_blocking_dependents(owner), blocked(owner))
                self.assertEqual(any(graph.blocking_dependents(owner)), blocked(owner))
        self.assertEqual(len(graph), sum(bool(references) for references in truth.values()))
        for uid in UIDS:
            graph.remove(object_key(uid))
        graph.waiting.clear()
        self.assertTrue(graph.empty)
        self.assertEqual((graph._dependents, graph._shared), ({}, {}))

    def test_many_owners(self) -> None:
        """The cost of an object with thousands of owners is linear in their number."""
        hashed = 0

        class Counted(str):
            """A uid that counts its comparisons."""

            def __hash__(self) -> int:
                nonlocal hashed
                hashed += 1
                return super().__hash__()

        graph = OwnerGraph()
        owners = [reference(Counted(number)) for number in range(1000)]
        for named in (owners, owners[:-1], owners[1:]):
            graph.put(object_key("a"), "a", named)
        graph.remove(object_key("a"))
        self.assertLess(hashed, 100 * len(owners))

    @given(lists(tuples(small(), small()), max_size=15), small())
    def test_circles(self, edges: list[tuple[int, int]], start: int) -> None:
        """An object is in a blocking cycle if and only if a path of waiting dependents leads back to it."""
        graph = OwnerGraph()
        graph.waiting = {uid: object_key(uid) for uid in UIDS[:4]}
        owners: dict[str, list[Reference]] = {}
        for dependent, owner in edges:
            owners.setdefault(UIDS[dependent], []).append(reference(UIDS[owner]))
        for uid, references in owners.items():
            graph.put(object_key(uid), uid, references)
        follow = {
            (UIDS[owner], UIDS[dependent])
            for dependent, owner in edges
            if dependent != owner and (UIDS[dependent] in graph.waiting or dependent == start)
        }
        reached, left = set(), [UIDS[start]]
        while left:
            here = left.pop()
            for owner, dependent in follow:
                if owner == here and dependent not in reached:
                    reached.add(dependent)
                    left.append(dependent)
        self.assertEqual(graph.in_blocking_cycle(UIDS[start]), UIDS[start] in reached)

    def test_recreated(self) -> None:
        """An object that is recreated with the same name replaces the old one, whose owners are unblocked."""
        graph = OwnerGraph()
        graph.waiting = {"a": object_key("a")}
        graph.put(object_key("b"), "old", [reference("a")])
        fresh, unblocked = graph.put(object_key("b"), "new", [reference("c")])
        self.assertEqual((fresh, unblocked), (True, ["a"]))

    def test_shared_references(self) -> None:
        """Dependents of the same owner share their references."""
        graph = OwnerGraph()
        for number in range(10):
            graph.put(ObjectKey("configmaps", str(number)), str(number), [Reference("v1", "ConfigMap", "a", "a", True)])
        self.assertEqual(len({id(node.references) for node in graph.dependents("a")}), 1)

    def test_references_that_change(self) -> None:
        """Old references are removed from the graph."""
        graph = OwnerGraph()
        for number in range(1000):
            graph.put(object_key("b"), "b", [Reference("v1", "ConfigMap", f"name-{number}", "a", True)])
        self.assertEqual(len(graph._shared), 1)

    def test_of(self) -> None:
        """Any stored owner reference can be parsed."""
        self.assertEqual(Reference.from_object({}), Reference("", "", "", "", False))
        self.assertEqual(
            Reference.from_object(
                {"apiVersion": "v1", "kind": "Pod", "name": "n", "uid": "u", "blockOwnerDeletion": True}
            ),
            Reference("v1", "Pod", "n", "u", True),
        )
