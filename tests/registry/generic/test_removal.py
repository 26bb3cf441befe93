"""Tests for L{kubetwist.registry.generic.removal}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.options import CreateOptions, DeleteOptions, ListOptions
from kubetwist.api.requestscope import RequestScope
from tests.registry.storetools import Plugin, StoreTestCase
from tests.resources.server import config_map, pod


class DeleteTests(StoreTestCase):
    """DELETE."""

    def setUp(self) -> None:
        """ConfigMaps, and Pods, which end gracefully."""
        super().setUp()
        self.maps, self.pods = self.store("configmaps"), self.store("pods")

    def held(self, name: str, *finalizers: str) -> None:
        """Make a ConfigMap with finalizers."""
        obj = config_map(name)
        obj["metadata"]["finalizers"] = list(finalizers)
        self.made(self.maps, obj)

    def running(self, name: str) -> None:
        """Make a Pod that a node runs."""
        obj = pod(name)
        obj["spec"]["nodeName"] = "n"
        self.made(self.pods, obj)

    def test_at_once(self) -> None:
        """Most objects are gone when DELETE is answered, with the state that they had."""
        events = self.events(self.maps)
        made = self.made(self.maps, config_map("a", x="1"))
        last, gone = self.delete(self.maps, "a")
        self.assertTrue(gone)
        self.assertEqual(last, made)
        self.assertEqual(events, [("ADDED", "a"), ("DELETED", "a")])
        error = self.refused(self.maps.delete(self.scope, "a", DeleteOptions()))
        self.assertEqual(error.code, 404)

    def test_finalizers(self) -> None:
        """An object with finalizers is marked, and goes when the last of them is taken away."""
        self.held("a", "example.org/one", "example.org/two")
        events = self.events(self.maps)
        marked, gone = self.delete(self.maps, "a")
        self.assertFalse(gone)
        self.assertEqual(marked["metadata"]["deletionGracePeriodSeconds"], 0)
        again, gone = self.delete(self.maps, "a")
        self.assertEqual((again, gone), (marked, False))
        self.changed(self.maps, "a", lambda obj: obj["metadata"]["finalizers"].pop())
        self.assertIsNotNone(self.stored(self.maps, "a"))
        self.changed(self.maps, "a", lambda obj: obj["metadata"].pop("finalizers"))
        self.assertIsNone(self.stored(self.maps, "a"))
        self.assertEqual(events, [("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")])

    def test_no_new_finalizers(self) -> None:
        """An object that is being deleted takes no further finalizers."""
        self.held("a", "example.org/one")
        self.delete(self.maps, "a")

        def change(obj: Any) -> Any:
            obj["metadata"]["finalizers"].append("example.org/two")
            return obj

        error = self.refused(self.maps.update(self.scope, "a", change, CreateOptions(), patching=True))
        self.assertEqual(error.code, 422)

    def test_propagation(self) -> None:
        """Orphan and Foreground are finalizers that the garbage collector takes away; the last one asked for counts."""
        self.made(self.maps, config_map("a"))
        marked, gone = self.delete(self.maps, "a", propagation_policy="Foreground")
        self.assertEqual((marked["metadata"]["finalizers"], gone), (["foregroundDeletion"], False))
        marked, gone = self.delete(self.maps, "a", propagation_policy="Orphan")
        self.assertEqual((marked["metadata"]["finalizers"], gone), (["orphan"], False))
        _, gone = self.delete(self.maps, "a", propagation_policy="Background")
        self.assertTrue(gone)

    def test_grace(self) -> None:
        """A running pod is given its time, which a later DELETE can only shorten."""
        self.running("a")
        marked, gone = self.delete(self.pods, "a")
        self.assertFalse(gone)
        self.assertEqual(marked["metadata"]["deletionGracePeriodSeconds"], 30)
        self.assertEqual(marked["metadata"]["generation"], 2)
        again, gone = self.delete(self.pods, "a", grace_period_seconds=60)
        self.assertEqual((again, gone), (marked, False))
        shorter, gone = self.delete(self.pods, "a", grace_period_seconds=10)
        self.assertEqual((shorter["metadata"]["deletionGracePeriodSeconds"], gone), (10, False))
        events = self.events(self.pods)
        _, gone = self.delete(self.pods, "a", grace_period_seconds=0)
        self.assertTrue(gone)
        self.assertEqual(events, [("MODIFIED", "a"), ("DELETED", "a")])

    def test_preconditions(self) -> None:
        """A DELETE of another object of the name, or of another state, is a conflict."""
        meta = self.made(self.maps, config_map("a"))["metadata"]
        for options in ({"precondition_uid": "other"}, {"precondition_resource_version": "1"}):
            error = self.refused(self.maps.delete(self.scope, "a", DeleteOptions(**options)))  # type: ignore[arg-type]
            self.assertEqual((error.code, error.reason), (409, "Conflict"))
        right = {"precondition_uid": meta["uid"], "precondition_resource_version": meta["resourceVersion"]}
        self.assertTrue(self.delete(self.maps, "a", **right)[1])

    def test_dry_run(self) -> None:
        """A dry run deletes nothing and marks nothing."""
        self.held("a", "example.org/one")
        self.made(self.maps, config_map("b"))
        self.running("c")
        revision = self.server.backend.revision
        marked, gone = self.delete(self.maps, "a", dry_run=True)
        self.assertIn("deletionTimestamp", marked["metadata"])
        self.assertFalse(gone)
        self.assertTrue(self.delete(self.maps, "b", dry_run=True)[1])
        self.assertFalse(self.delete(self.pods, "c", dry_run=True)[1])
        self.assertEqual(self.server.backend.revision, revision)

    def test_raced(self) -> None:
        """A DELETE that somebody's write overtakes looks again, and still deletes."""
        self.made(self.maps, config_map("a"))
        meddler = self.meddler(self.maps)
        meddler.before.append(lambda: self.changed(self.maps, "a", lambda obj: obj.update(data={"x": "1"})))
        last, gone = self.delete(self.maps, "a")
        self.assertEqual((last["data"], gone), ({"x": "1"}, True))

    def test_raced_by_a_delete(self) -> None:
        """Of two DELETEs at once the second finds nothing."""
        self.made(self.maps, config_map("a"))
        self.meddler(self.maps).before.append(lambda: self.delete(self.maps, "a"))
        error = self.refused(self.maps.delete(self.scope, "a", DeleteOptions()))
        self.assertEqual(error.code, 404)

    def test_raced_by_a_finalizer(self) -> None:
        """A finalizer that comes while its object is being deleted holds the object."""
        self.made(self.maps, config_map("a"))
        hold = {"finalizers": ["example.org/one"]}
        self.meddler(self.maps).before.append(
            lambda: self.changed(self.maps, "a", lambda obj: obj["metadata"].update(hold))
        )
        _, gone = self.delete(self.maps, "a")
        self.assertFalse(gone)
        self.assertIn("deletionTimestamp", self.stored(self.maps, "a")["metadata"])

    def test_admission(self) -> None:
        """All plugins see what is deleted, and can not change it."""

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
    """DELETE of what a list selects."""

    def test_selection(self) -> None:
        """Only what the selectors leave, in the request's namespace, is deleted."""
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

    def test_gone_meanwhile(self) -> None:
        """Objects that somebody else deletes first are no error."""
        maps = self.store("configmaps")
        for name in ("a", "b", "c"):
            self.made(maps, config_map(name))
        self.meddler(maps).before.append(lambda: self.delete(maps, "b"))
        listing = self.successResultOf(maps.delete_collection(self.scope, DeleteOptions(), ListOptions()))
        self.assertEqual(len(listing.records), 3)
        self.assertEqual(len(maps.cache), 0)

    def test_nothing(self) -> None:
        """Deleting none is fine."""
        maps = self.store("configmaps")
        listing = self.successResultOf(maps.delete_collection(self.scope, DeleteOptions(), ListOptions()))
        self.assertEqual(listing.records, [])
