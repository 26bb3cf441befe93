"""Tests of L{kubetwist.registry.generic.removal}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.options import CreateOptions, DeleteOptions, ListOptions
from kubetwist.api.requestscope import RequestScope
from tests.registry.storetools import Plugin, StoreTestCase
from tests.resources.server import config_map, pod


class DeleteTests(StoreTestCase):
    """Tests of DELETE."""

    def setUp(self) -> None:
        """Create the stores of ConfigMaps and Pods, which have graceful deletion."""
        super().setUp()
        self.maps, self.pods = self.store("configmaps"), self.store("pods")

    def held(self, name: str, *finalizers: str) -> None:
        """Create a ConfigMap with finalizers."""
        obj = config_map(name)
        obj["metadata"]["finalizers"] = list(finalizers)
        self.made(self.maps, obj)

    def running(self, name: str) -> None:
        """Create a Pod on a node."""
        obj = pod(name)
        obj["spec"]["nodeName"] = "n"
        self.made(self.pods, obj)

    def test_at_once(self) -> None:
        """Most objects are removed when DELETE is answered with their last state."""
        events = self.events(self.maps)
        made = self.made(self.maps, config_map("a", x="1"))
        last, removed = self.delete(self.maps, "a")
        self.assertTrue(removed)
        self.assertEqual(last, made)
        self.assertEqual(events, [("ADDED", "a"), ("DELETED", "a")])
        error = self.refused(self.maps.delete(self.scope, "a", DeleteOptions()))
        self.assertEqual(error.code, 404)

    def test_finalizers(self) -> None:
        """An object with finalizers is marked, and removed with the last finalizer."""
        self.held("a", "example.org/one", "example.org/two")
        events = self.events(self.maps)
        marked, removed = self.delete(self.maps, "a")
        self.assertFalse(removed)
        self.assertEqual(marked["metadata"]["deletionGracePeriodSeconds"], 0)
        again, removed = self.delete(self.maps, "a")
        self.assertEqual((again, removed), (marked, False))
        self.changed(self.maps, "a", lambda obj: obj["metadata"]["finalizers"].pop())
        self.assertIsNotNone(self.stored(self.maps, "a"))
        self.changed(self.maps, "a", lambda obj: obj["metadata"].pop("finalizers"))
        self.assertIsNone(self.stored(self.maps, "a"))
        self.assertEqual(events, [("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")])

    def test_no_new_finalizers(self) -> None:
        """An object that is being deleted accepts no further finalizers."""
        self.held("a", "example.org/one")
        self.delete(self.maps, "a")

        def change(obj: Any) -> Any:
            obj["metadata"]["finalizers"].append("example.org/two")
            return obj

        error = self.refused(self.maps.update(self.scope, "a", change, CreateOptions(), patching=True))
        self.assertEqual(error.code, 422)

    def test_propagation(self) -> None:
        """Orphan and Foreground add finalizers for the garbage collector; the last policy replaces earlier ones."""
        self.made(self.maps, config_map("a"))
        marked, removed = self.delete(self.maps, "a", propagation_policy="Foreground")
        self.assertEqual((marked["metadata"]["finalizers"], removed), (["foregroundDeletion"], False))
        marked, removed = self.delete(self.maps, "a", propagation_policy="Orphan")
        self.assertEqual((marked["metadata"]["finalizers"], removed), (["orphan"], False))
        _, removed = self.delete(self.maps, "a", propagation_policy="Background")
        self.assertTrue(removed)

    def test_grace(self) -> None:
        """A running pod has a grace period, which a later DELETE can only shorten."""
        self.running("a")
        marked, removed = self.delete(self.pods, "a")
        self.assertFalse(removed)
        self.assertEqual(marked["metadata"]["deletionGracePeriodSeconds"], 30)
        self.assertEqual(marked["metadata"]["generation"], 2)
        again, removed = self.delete(self.pods, "a", grace_period_seconds=60)
        self.assertEqual((again, removed), (marked, False))
        shorter, removed = self.delete(self.pods, "a", grace_period_seconds=10)
        self.assertEqual((shorter["metadata"]["deletionGracePeriodSeconds"], removed), (10, False))
        events = self.events(self.pods)
        _, removed = self.delete(self.pods, "a", grace_period_seconds=0)
        self.assertTrue(removed)
        self.assertEqual(events, [("MODIFIED", "a"), ("DELETED", "a")])

    def test_preconditions(self) -> None:
        """A DELETE with another uid or resourceVersion is a conflict."""
        meta = self.made(self.maps, config_map("a"))["metadata"]
        for options in ({"precondition_uid": "other"}, {"precondition_resource_version": "1"}):
            error = self.refused(self.maps.delete(self.scope, "a", DeleteOptions(**options)))  # type: ignore[arg-type]
            self.assertEqual((error.code, error.reason), (409, "Conflict"))
        right = {"precondition_uid": meta["uid"], "precondition_resource_version": meta["resourceVersion"]}
        self.assertTrue(self.delete(self.maps, "a", **right)[1])

    def test_dry_run(self) -> None:
        """A dry run neither deletes nor marks the object."""
        self.held("a", "example.org/one")
        self.made(self.maps, config_map("b"))
        self.running("c")
        revision = self.server.backend.revision
        marked, removed = self.delete(self.maps, "a", dry_run=True)
        self.assertIn("deletionTimestamp", marked["metadata"])
        self.assertFalse(removed)
        self.assertTrue(self.delete(self.maps, "b", dry_run=True)[1])
        self.assertFalse(self.delete(self.pods, "c", dry_run=True)[1])
        self.assertEqual(self.server.backend.revision, revision)

    def test_raced(self) -> None:
        """A DELETE with a concurrent write is retried, and deletes the new state."""
        self.made(self.maps, config_map("a"))
        racing_backend = self.racing_backend(self.maps)
        racing_backend.before.append(lambda: self.changed(self.maps, "a", lambda obj: obj.update(data={"x": "1"})))
        last, removed = self.delete(self.maps, "a")
        self.assertEqual((last["data"], removed), ({"x": "1"}, True))

    def test_raced_by_a_delete(self) -> None:
        """The second of two concurrent DELETEs is a 404."""
        self.made(self.maps, config_map("a"))
        self.racing_backend(self.maps).before.append(lambda: self.delete(self.maps, "a"))
        error = self.refused(self.maps.delete(self.scope, "a", DeleteOptions()))
        self.assertEqual(error.code, 404)

    def test_raced_by_a_finalizer(self) -> None:
        """A finalizer that a concurrent write adds prevents the removal."""
        self.made(self.maps, config_map("a"))
        hold = {"finalizers": ["example.org/one"]}
        self.racing_backend(self.maps).before.append(
            lambda: self.changed(self.maps, "a", lambda obj: obj["metadata"].update(hold))
        )
        _, removed = self.delete(self.maps, "a")
        self.assertFalse(removed)
        self.assertIn("deletionTimestamp", self.stored(self.maps, "a")["metadata"])

    def test_admission(self) -> None:
        """All plugins get the deleted object, and cannot change it."""

        def act(attributes: Any) -> None:
            self.assertIsNone(attributes.object)
            with self.assertRaises(TypeError):
                attributes.old_object["metadata"]["finalizers"] = ["example.org/from-plugin"]

        plugin = Plugin()
        self.made(self.maps, config_map("a"))
        plugin.act = act
        self.admit(plugin)
        self.assertTrue(self.delete(self.maps, "a")[1])
        self.assertEqual(plugin.seen, [("DELETE", ""), ("DELETE", "")])


class CollectionTests(StoreTestCase):
    """Tests of DELETE of a collection."""

    def test_selection(self) -> None:
        """Only objects that the selectors match in the namespace of the request are deleted."""
        maps = self.store("configmaps")
        for name in ("a", "b"):
            self.made(maps, config_map(name))
        self.made(maps, config_map("a", "other"), RequestScope("other"))
        selection = ListOptions(fields=(("metadata.name", "a", True),))
        listing = self.successResultOf(maps.delete_collection(self.scope, DeleteOptions(), selection))
        self.assertEqual([record.key for record in listing.records], ["default/a"])
        self.assertIsNone(self.stored(maps, "a"))
        self.assertIsNotNone(self.stored(maps, "b"))
        self.assertIsNotNone(self.stored(maps, "a", "other"))

    def test_concurrent_deletion(self) -> None:
        """Objects that are concurrently deleted are no error."""
        maps = self.store("configmaps")
        for name in ("a", "b", "c"):
            self.made(maps, config_map(name))
        self.racing_backend(maps).before.append(lambda: self.delete(maps, "b"))
        listing = self.successResultOf(maps.delete_collection(self.scope, DeleteOptions(), ListOptions()))
        self.assertEqual(len(listing.records), 3)
        self.assertEqual(len(maps.cache), 0)

    def test_empty_collection(self) -> None:
        """Deleting an empty collection succeeds."""
        maps = self.store("configmaps")
        listing = self.successResultOf(maps.delete_collection(self.scope, DeleteOptions(), ListOptions()))
        self.assertEqual(listing.records, [])
