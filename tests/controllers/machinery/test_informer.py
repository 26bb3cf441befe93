"""Tests for L{kubetwist.controllers.machinery.informer} and L{kubetwist.controllers.machinery.context}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Record
from kubetwist.api.storage import Write
from kubetwist.controllers.machinery.context import ControllerContext
from kubetwist.controllers.machinery.controller import Controller
from kubetwist.controllers.machinery.informer import Informer
from kubetwist.controllers.machinery.metadata import (
    controller_of,
    controller_reference,
    controller_uid,
    owner_uids,
)
from kubetwist.storage.errors import RevisionCompacted
from tests.controllers.harness import ControllerTestCase
from tests.resources.customserver import DEFINITIONS, KITES, CustomServer, definition


class EventLog:
    """A handler that records its events."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bool]] = []

    def __call__(self, event_type: str, record: Record, old: Record | None) -> None:
        """Record the event."""
        self.seen.append((event_type, record.key, old is not None))

    def take_events(self) -> list[tuple[str, str, bool]]:
        """Return the events since the last call, and clear them."""
        seen, self.seen = self.seen, []
        return seen


class InformerTests(ControllerTestCase):
    """Informers of built-in resources."""

    resources = ("configmaps", "namespaces", "pods")

    def setUp(self) -> None:
        """Create a config map and an informer."""
        super().setUp()
        self.make("configmaps", "a", "one", data={"color": "red"})
        self.informer = self.context.informer("", "configmaps")
        self.events = EventLog()

    def update(self, name: str, **data: str) -> None:
        """Change a config map."""
        self.change("configmaps", name, lambda obj: obj.update(data=data), "one")

    def test_shared(self) -> None:
        """All callers get the same informer of a resource. It is ready when the cache is."""
        self.assertIs(self.context.informer("", "configmaps"), self.informer)
        self.assertTrue(self.informer.ready)
        self.successResultOf(self.informer.synced)
        self.assertRaises(KeyError, self.context.informer, "", "unicorns")
        self.assertEqual(
            (self.context.served("", "pods"), self.context.served("", "unicorns")),
            (True, False),
        )
        self.assertEqual(sorted(info.resource for info in self.context.resources()), sorted(self.resources))

    def test_handlers_are_called(self) -> None:
        """Handlers are called for existing objects, and for changes before the write completes."""
        registration = self.informer.add_event_handler(self.events)
        self.assertEqual(self.events.take_events(), [("ADDED", "one/a", False)])
        self.make("configmaps", "b", "one")
        self.update("b", color="blue")
        self.remove("configmaps", "b", "one")
        self.assertEqual(
            self.events.take_events(),
            [("ADDED", "one/b", False), ("MODIFIED", "one/b", True), ("DELETED", "one/b", True)],
        )
        registration.stop()
        self.make("configmaps", "b", "one")
        self.assertEqual(self.events.take_events(), [])

    def test_without_initial_events(self) -> None:
        """A handler can be registered without calls for existing objects."""
        self.informer.add_event_handler(self.events, initial=False)
        self.make("configmaps", "b", "one")
        self.assertEqual(self.events.take_events(), [("ADDED", "one/b", False)])

    def test_reads(self) -> None:
        """Objects are found by name, and listed by namespace."""
        self.make("configmaps", "b", "two")
        found = self.informer.get("one", "a")
        assert found is not None
        self.assertIs(self.informer.by_key("one/a"), found)
        self.assertEqual(self.informer.get_decoded("one", "a")["data"], {"color": "red"})  # type: ignore[index]
        self.assertIs(self.informer.get_decoded("one", "a"), self.informer.get_decoded("one", "a"))
        self.assertIsNone(self.informer.get_decoded("one", "b"))
        self.assertEqual([record.key for record in self.informer.list()], ["one/a", "two/b"])
        self.assertEqual([one["metadata"]["name"] for one in self.informer.list_decoded("two")], ["b"])
        self.assertEqual(len(self.informer), 2)

    def test_bad_handler(self) -> None:
        """An exception of a handler is logged and does not affect other handlers."""

        def fail(event_type: str, record: Record, old: Record | None) -> None:
            raise RuntimeError("oops")

        self.informer.add_event_handler(fail, initial=False)
        self.informer.add_event_handler(self.events, initial=False)
        self.make("configmaps", "b", "one")
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertEqual(len(self.events.take_events()), 1)

    def test_index(self) -> None:
        """An index follows additions, changes and deletions, and is current when handlers are called."""

        def colors(record: Record) -> list[str]:
            data: Any = self.stores.get_copy("", "configmaps", record.namespace, record.name) or {}
            return (data.get("data") or {}).get("color", "").split()

        index = self.informer.index("color", colors)
        self.assertIs(self.informer.index("color", colors), index)
        seen = []
        self.informer.add_event_handler(lambda event_type, record, old: seen.append(sorted(index.values())))
        self.assertEqual([record.name for record in index.get("red")], ["a"])
        self.update("a", color="blue green")
        self.make("configmaps", "b", "one", data={"color": "blue"})
        self.assertEqual(sorted(record.name for record in index.get("blue")), ["a", "b"])
        self.assertEqual((index.count("blue"), index.count("red"), index.get("red")), (2, 0, []))
        self.assertEqual(index.get("green")[0].revision, self.informer.get("one", "a").revision)  # type: ignore[union-attr]
        self.update("a", color="blue", size="1")
        self.assertEqual(index.get("green"), [])
        self.assertEqual(
            {record.revision for record in index.get("blue")}, {record.revision for record in self.informer.list()}
        )
        self.remove("configmaps", "a", "one")
        self.update("b")
        self.assertEqual(index.values(), [])
        self.assertEqual(seen[:2], [["red"], ["blue", "green"]])

    def test_cache_reload(self) -> None:
        """When a cache reloads, handlers are called for the differences."""
        for name in "bcd":
            self.make("configmaps", name, "one")
        index = self.informer.index("name", lambda record: [record.name])
        self.informer.add_event_handler(self.events, initial=False)
        cache = self.stores.get("", "configmaps").cache
        # The watch of the cache misses the following events.
        assert cache._source is not None
        cache._source.stop()
        for name, value in (
            ("b", None),
            ("c", b'{"metadata":{"namespace":"one","name":"c"}}'),
            ("e", b'{"metadata":{}}'),
        ):
            known = cache.get(f"one/{name}")
            write = Write(f"{cache.prefix}one/{name}", value, known.revision if known else 0, None, None)
            self.successResultOf(self.memory.commit([write]))
        cache.ended(RevisionCompacted(1, 2))
        self.settle(5)
        self.assertEqual(
            self.events.take_events(),
            [("DELETED", "one/b", True), ("MODIFIED", "one/c", True), ("ADDED", "one/e", False)],
        )
        self.assertEqual(sorted(index.values()), ["a", "c", "d", "e"])
        self.make("configmaps", "f", "one")
        self.assertEqual(self.events.take_events(), [("ADDED", "one/f", False)])

    def test_stop(self) -> None:
        """After stop, no handler is called and no delayed call remains."""
        self.informer.add_event_handler(self.events, initial=False)
        self.successResultOf(Deferred.fromCoroutine(self.context.stop()))
        self.make("configmaps", "b", "one")
        self.stores.get("", "configmaps").cache.ended(RevisionCompacted(1, 2))
        self.settle(5)
        self.assertEqual(self.events.take_events(), [])

    def test_owners(self) -> None:
        """Owners and controllers are read from records. Records without owners are not decoded."""
        owner = {"metadata": {"name": "a", "uid": "u-1"}}
        reference = controller_reference("ConfigMap", "v1", owner)
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "u-2"}
        self.make("configmaps", "owned", "one", metadata={"ownerReferences": [other, reference]})
        record = self.informer.get("one", "owned")
        assert record is not None
        self.assertEqual((owner_uids(record), controller_uid(record)), (["u-2", "u-1"], ["u-1"]))
        self.assertEqual(controller_of(record), reference)
        free = self.informer.get("one", "a")
        assert free is not None
        self.assertEqual(
            (owner_uids(free), controller_uid(free), controller_of(free), free.views), ([], [], None, None)
        )


class CustomInformerTests(SynchronousTestCase):
    """Informers of custom resources."""

    def setUp(self) -> None:
        """Create a server with the custom resource kites."""
        self.server = CustomServer()
        self.client = self.server.client()
        self.server.define(self.client, definition())
        self.context = ControllerContext(self.server.registry, self.server.clock, None, self.server.custom)
        self.changes = 0
        self.context.on_resources_changed(self.changed)
        self.events = EventLog()

    def changed(self) -> None:
        """Count the calls."""
        self.changes += 1

    def fly(self, name: str, **parts: Any) -> None:
        """Create a kite."""
        kite = {"apiVersion": "example.com/v1", "kind": "Kite", "metadata": {"name": name}, **parts}
        self.assertEqual(self.client.ask("POST", KITES, kite)[0], 201)

    def informer(self) -> Informer:
        """Return the informer of kites."""
        informer = self.context.informer("example.com", "kites")
        self.settle()
        return informer

    def settle(self) -> None:
        """Advance the clock."""
        for _ in range(8):
            self.server.clock.advance(0.25)
            self.server.settle()

    def test_handlers_are_called(self) -> None:
        """An informer of a custom resource caches its objects and delivers changes."""
        self.fly("a")
        informer = self.informer()
        self.successResultOf(informer.synced)
        informer.add_event_handler(self.events)
        self.fly("b")
        self.client.ask("DELETE", f"{KITES}/a")
        self.assertEqual(
            self.events.take_events(),
            [("ADDED", "default/a", False), ("ADDED", "default/b", False), ("DELETED", "default/a", True)],
        )

    def test_resources_added_and_removed(self) -> None:
        """
        Listeners are called when resources are added or removed. The informer of a removed resource sends deletions.
        """
        self.assertEqual([info.resource for info in self.context.resources()], ["customresourcedefinitions", "kites"])
        informer = self.informer()
        informer.add_event_handler(self.events)
        self.fly("a")
        before = self.changes
        self.server.define(self.client, definition(None, "boats", "Boat"))
        self.assertGreater(self.changes, before)
        self.assertTrue(self.context.served("example.com", "boats"))
        before = self.changes
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.settle()
        self.assertGreater(self.changes, before)
        self.assertFalse(self.context.served("example.com", "kites"))
        self.assertEqual(self.events.take_events()[-1], ("DELETED", "default/a", True))
        self.assertRaises(KeyError, self.context.informer, "example.com", "kites")
        self.server.define(self.client, definition())
        self.assertIsNot(self.informer(), informer)

    def test_removed_resource_with_objects(self) -> None:
        """Objects that remain when their resource is removed are reported as deleted."""
        self.fly("a")
        informer = self.informer()
        index = informer.index("name", lambda record: [record.name])
        informer.add_event_handler(self.events)
        self.events.take_events()
        self.server.custom.remove("kites.example.com")
        self.settle()
        self.assertEqual(self.events.take_events(), [("DELETED", "default/a", True)])
        self.assertEqual((informer.list(), informer.get("default", "a"), index.values()), ([], None, []))

    def test_changed_definition(self) -> None:
        """A changed definition keeps objects, and handlers are not called again."""
        self.fly("a")
        informer = self.informer()
        informer.add_event_handler(self.events)
        self.events.take_events()
        patch = {"spec": {"names": {**definition()["spec"]["names"], "shortNames": ["kt"]}}}
        headers = {"Content_Type": "application/merge-patch+json"}
        self.assertEqual(self.client.ask("PATCH", f"{DEFINITIONS}/kites.example.com", patch, **headers)[0], 200)
        self.settle()
        self.fly("b")
        self.settle()
        self.assertEqual(self.events.take_events(), [("ADDED", "default/b", False)])
        self.assertEqual([record.name for record in informer.list()], ["a", "b"])

    def test_writes(self) -> None:
        """Controllers write custom resources like built-in ones, and own the fields that they write."""
        client = self.context.client("some-controller", "some-manager")

        made_of = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"tail": 3}}

        async def write() -> Any:
            made = await client.create("example.com", "kites", made_of)

            def label(obj: Any) -> None:
                obj["metadata"]["labels"] = {"a": "b"}

            await client.update("example.com", "kites", "default", "c", label)
            return made

        self.assertEqual(self.successResultOf(Deferred.fromCoroutine(write())).name, "c")
        found = self.client.ask("GET", f"{KITES}/c")[1]["metadata"]
        self.assertEqual(
            (found["labels"], [one["manager"] for one in found["managedFields"]]), ({"a": "b"}, ["some-manager"])
        )


class ManyObjectsTests(ControllerTestCase):
    """Informers of more objects than are processed in one chunk."""

    resources = ("configmaps", "namespaces")

    def setUp(self) -> None:
        """Create many objects, and a clock that advances during processing."""
        super().setUp()
        for number in range(300):
            self.make("configmaps", f"n{number:03}", "one")
        self.informer = self.context.informer("", "configmaps")
        self.events = EventLog()

    def slowly(self, event_type: str, record: Record, old: Record | None) -> None:
        """A slow handler."""
        self.clock.rightNow += 0.0001
        self.events(event_type, record, old)

    def keys(self, record: Record) -> list[str]:
        """A slow index function."""
        self.clock.rightNow += 0.0001
        return [record.name]

    def test_chunks(self) -> None:
        """Initial objects are delivered in chunks, and changes in between are delivered once."""
        self.informer.add_event_handler(self.slowly)
        first = self.events.take_events()
        self.assertLess(len(first), 150)
        done: list[bool] = []
        self.informer.when_handlers_synced(lambda: done.append(True))
        self.remove("configmaps", "n298", "one")
        self.change("configmaps", "n299", lambda obj: obj.update(data={"a": "b"}), "one")
        self.change("configmaps", "n000", lambda obj: obj.update(data={"a": "b"}), "one")
        self.make("configmaps", "new", "one")
        self.assertEqual(
            self.events.take_events(),
            [("ADDED", "one/n299", False), ("MODIFIED", "one/n000", True), ("ADDED", "one/new", False)],
        )
        self.assertEqual(done, [])
        self.settle()
        rest = self.events.take_events()
        self.assertEqual(done, [True])
        self.assertEqual(len(first) + len(rest), 298)
        self.assertEqual({kind for kind, _, _ in rest}, {"ADDED"})

    def test_changes_before_delivery(self) -> None:
        """An object that changes before it is reached is delivered with its changes, and only then."""
        self.informer.add_event_handler(self.slowly)
        first = self.events.take_events()
        for name in ("n290", "new"):
            if name == "new":
                self.make("configmaps", name, "one")
            self.change("configmaps", name, lambda obj: obj.update(data={"a": "b"}), "one")
            self.change("configmaps", name, lambda obj: obj.update(data={"a": "c"}), "one")
            self.remove("configmaps", name, "one")
            kinds = [kind for kind, _, _ in self.events.take_events()]
            self.assertEqual(kinds, ["ADDED", *["MODIFIED"] * (1 if name == "n290" else 2), "DELETED"])
        self.make("configmaps", "n290", "one")
        self.remove("configmaps", "n291", "one")
        self.make("configmaps", "n291", "one")
        again = [("ADDED", "one/n290", False), ("ADDED", "one/n291", False)]
        self.assertEqual(self.events.take_events(), again)
        self.settle()
        rest = self.events.take_events()
        keys = [key for _, key, _ in (*first, *rest, *again)]
        self.assertEqual(sorted(keys), [f"one/n{number:03}" for number in range(300)])

    def test_index(self) -> None:
        """An index is built in chunks, and is correct after changes during the build."""
        index = self.informer.index("name", self.keys)
        self.assertLess(len(index.values()), 150)
        self.remove("configmaps", "n298", "one")
        self.make("configmaps", "new", "one")
        self.settle()
        self.assertTrue(self.informer.handlers_synced)
        self.assertEqual(sorted(index.values()), sorted({*self.names("configmaps")}))

    def test_start_waits_for_handlers(self) -> None:
        """A controller starts its queue when all handlers have synced. A stop before that prevents the start."""
        self.informer.index("name", self.keys)

        class RecordingController(Controller[str]):
            name: ClassVar[str] = "looking-controller"
            seen: ClassVar[list[int]] = []

            def register_handlers(self) -> None:
                self.maps = self.watch("", "configmaps")
                self.index = self.maps.index("name", lambda record: [record.name])

            async def sync(self, key: str) -> None:
                self.seen.append(len(self.index.values()))

        controller = RecordingController(self.context)
        controller.start()
        self.assertEqual(RecordingController.seen, [])
        self.settle()
        self.assertEqual(RecordingController.seen, [300] * 300)
        self.successResultOf(Deferred.fromCoroutine(controller.stop()))
        self.informer.index("other", self.keys)
        other = RecordingController(self.context)
        other.start()
        self.successResultOf(Deferred.fromCoroutine(other.stop()))
        self.settle()
        self.assertEqual(len(RecordingController.seen), 300)
