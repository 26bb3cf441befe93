"""Tests for L{kubetwist.registry.customresources.store}, over HTTP in memory."""

from __future__ import annotations

from tests.resources.customapply import JSON, OLD, TEXT, CustomApplyTestCase, struct
from tests.resources.customserver import KITES
from tests.resources.server import events


class DefaultsOfVersionsTests(CustomApplyTestCase):
    """Tests for defaults: an object has the defaults of the version in which it is stored."""

    STORED = struct(spec=struct(a=TEXT, b={**TEXT, "default": "stored"}))
    OTHER = struct(spec=struct(a={**TEXT, "default": "other"}, b=TEXT))

    def test_reads(self) -> None:
        """A read in another version does not add that version's defaults, and a JSON patch does not test them."""
        self.define_versions(self.STORED, self.OTHER)
        self.create({"spec": {}})
        expected = {"b": "stored"}
        self.assertEqual(self.get(OLD)["spec"], expected)
        self.assertEqual(self.client.ask("GET", OLD)[1]["items"][0]["spec"], expected)
        watcher = self.server.client()
        began = watcher.begin(f"{OLD}?watch=1")
        self.server.clock.advance(0)
        (event,) = events((began + watcher.taken()).partition(b"\r\n\r\n")[2])
        self.assertEqual(event["object"]["spec"], expected)
        for value, code in (("other", 422), (None, 422)):
            patch = [{"op": "test", "path": "/spec/a", "value": value or "x"}]
            self.assertEqual(self.client.ask("PATCH", f"{OLD}/a", patch, Content_Type=JSON)[0], code)

    def test_first_write(self) -> None:
        """The first write in another version adds its defaults, which increments the generation."""
        self.define_versions(self.STORED, self.OTHER)
        self.create({"spec": {}})
        for _ in range(2):
            result = self.merge({"metadata": {"labels": {"a": "b"}}}, OLD)
            self.assertEqual((result["spec"], result["metadata"]["generation"]), ({"a": "other", "b": "stored"}, 2))

    def test_fields_that_are_not_stored(self) -> None:
        """A default of a field that the storage version lacks is lost, also in the response to a dry run."""
        other = struct(spec=struct(mine={**TEXT, "default": "other"}, b=TEXT))
        self.define_versions(self.STORED, other)
        for query in ("&dryRun=All", ""):
            self.assertEqual(self.create({"spec": {}}, OLD, query)["spec"], {"b": "stored"})

    def test_stored_before(self) -> None:
        """An object stored in another version keeps that version's fields and defaults until it is written."""
        older = struct(spec=struct(a={**TEXT, "default": "other"}, removed=TEXT))
        self.define_versions(older, self.STORED)
        self.create({"spec": {"removed": "1"}})
        self.redefine(lambda versions: [{**one, "storage": one["name"] == "v1beta1"} for one in versions])
        result = self.get()
        self.assertEqual(result["spec"], {"a": "other", "removed": "1"})
        self.assertEqual(self.get(OLD)["spec"], {"a": "other"})
        # An update that changes nothing rewrites it in the current storage version.
        again = self.merge({}, OLD)
        self.assertNotEqual(again["metadata"]["resourceVersion"], result["metadata"]["resourceVersion"])
        self.assertEqual(again["spec"], {"a": "other", "b": "stored"})
        self.assertEqual(self.get()["spec"], {"a": "other"})
        self.assertEqual(self.merge({}, OLD)["metadata"]["resourceVersion"], again["metadata"]["resourceVersion"])

    def test_stored_again(self) -> None:
        """A write without changes to an object stored in another version adds the defaults of the storage version."""
        self.define_versions(self.OTHER, self.STORED)
        self.create({"spec": {}})
        self.redefine(lambda versions: [{**one, "storage": one["name"] == "v1beta1"} for one in versions])
        self.assertEqual(self.get(OLD)["spec"], {"a": "other"})
        self.assertEqual(self.applied({}, path=OLD)["spec"], {"a": "other", "b": "stored"})
        self.assertEqual(self.get()["spec"], {"a": "other", "b": "stored"})

    def test_unseen_fields(self) -> None:
        """A write in a version that lacks stored fields drops them, even without a visible change."""
        self.define_versions(struct(spec=struct(a=TEXT, more=TEXT)), struct(spec=struct(a=TEXT)))
        made = self.create({"spec": {"a": "1", "more": "1"}})
        self.assertEqual(self.merge({})["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"])
        first, second = self.merge({}, OLD), self.merge({}, OLD)
        self.assertNotEqual(first["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"])
        self.assertEqual(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"])
        self.assertEqual(self.get()["spec"], {"a": "1"})

    def test_later_default(self) -> None:
        """The next write stores a default that was added to the schema, even without other changes."""
        self.define(struct(spec=struct(a=TEXT)))
        self.create({"spec": {}})
        later = {"openAPIV3Schema": struct(spec=struct(a={**TEXT, "default": "A"}))}
        self.redefine(lambda versions: [{**versions[0], "schema": later}])
        read = self.get()
        first, second = self.merge({}), self.merge({})
        self.assertEqual((read["spec"], first["spec"], first["metadata"]["generation"]), ({"a": "A"}, {"a": "A"}, 1))
        self.assertNotEqual(first["metadata"]["resourceVersion"], read["metadata"]["resourceVersion"])
        self.assertEqual(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"])

    def test_deleted(self) -> None:
        """The event of the deletion of an object stored in another version has the fields of that version."""
        older = struct(spec=struct(removed=TEXT))
        self.define_versions(older, self.STORED)
        self.create({"spec": {"removed": "1"}})
        self.redefine(lambda versions: [{**one, "storage": one["name"] == "v1beta1"} for one in versions])
        watchers = [self.server.client(), self.server.client()]
        began = [watcher.begin(f"{path}?watch=1") for watcher, path in zip(watchers, (KITES, OLD), strict=True)]
        self.assertEqual(self.client.ask("DELETE", f"{OLD}/a")[0], 200)
        self.server.settle()
        for watcher, head, expected in zip(watchers, began, ({"removed": "1"}, {}), strict=True):
            result = events((head + watcher.taken()).partition(b"\r\n\r\n")[2])
            self.assertEqual(
                [(one["type"], one["object"]["spec"]) for one in result], [("ADDED", expected), ("DELETED", expected)]
            )

    def test_default_of_status(self) -> None:
        """A status that create drops has its default when it is read, which is not validated."""
        status = {**struct(phase=TEXT), "default": {"phase": "New"}}
        self.define(struct(status=status), subresources={"status": {}})
        for query in ("&dryRun=All", ""):
            self.assertEqual(self.create({}, query=query)["status"], {"phase": "New"})
        self.assertEqual(self.get()["status"], {"phase": "New"})
        self.redefine(
            lambda versions: [
                {**versions[0], "schema": {"openAPIV3Schema": {**struct(status=status), "required": ["status"]}}}
            ]
        )
        code, _ = self.client.ask("POST", KITES, {**self.body(KITES, {}), "metadata": {"name": "b"}})
        self.assertEqual(code, 422)
