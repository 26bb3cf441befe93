"""Tests for apply, managed fields and versions of custom resources, over HTTP in memory."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.factory import Outgoing
from kubetwist.registry.customresources.conversion import Conversions

from .customserver import DEFINITIONS, KITES, CustomServer, definition
from .handlers.test_watch import events
from .test_customconversion import HostAndPort, two_versions

Schema = dict[str, Any]

APPLY, MERGE, JSON = "application/apply-patch+yaml", "application/merge-patch+json", "application/json-patch+json"
TEXT: Schema = {"type": "string"}
OLD = KITES.replace("/v1/", "/v1beta1/")


def struct(**properties: Schema) -> Schema:
    """A schema of an object with some fields."""
    return {"type": "object", "properties": properties}


class CustomApplyTestCase(SynchronousTestCase):
    """A server, and objects C{a} of the kind Kite."""

    def setUp(self) -> None:
        """Start it."""
        self.server = CustomServer()
        self.client = self.server.client()

    def define(self, schema: Schema, **version: Any) -> None:
        """Create a definition with one version."""
        self.server.define(self.client, definition(schema, **version))

    def define_versions(self, stored: Schema, other: Schema, **version: Any) -> None:
        """Create a definition with the stored version C{v1}, of which C{version} says more, and C{v1beta1}."""
        crd = definition(stored, **version)
        schema = {"openAPIV3Schema": other}
        crd["spec"]["versions"].append({"name": "v1beta1", "served": True, "storage": False, "schema": schema})
        self.server.define(self.client, crd)

    def redefine(self, change: Any) -> None:
        """Replace the versions of the definition by what a function makes of them."""
        path = f"{DEFINITIONS}/kites.example.com"
        versions = self.client.ask("GET", path)[1]["spec"]["versions"]
        code, found = self.client.ask("PATCH", path, {"spec": {"versions": change(versions)}}, Content_Type=MERGE)
        self.assertEqual(code, 200, found)
        self.server.settle()

    def body(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        """An object of the path's version."""
        version = path.split("/")[3]
        return {"kind": "Kite", "apiVersion": f"example.com/{version}", "metadata": {"name": "a"}, **fields}

    def apply(
        self, fields: dict[str, Any], manager: str = "me", path: str = KITES, query: str = "", sub: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Apply an object."""
        url = f"{path}/a{sub}?fieldManager={manager}{query}"
        code, found = self.client.ask("PATCH", url, orjson.dumps(self.body(path, fields)), Content_Type=APPLY)
        return code, found

    def applied(self, fields: dict[str, Any], manager: str = "me", path: str = KITES, **more: Any) -> dict[str, Any]:
        """Apply an object successfully."""
        code, found = self.apply(fields, manager, path, **more)
        self.assertIn(code, (200, 201), found)
        return found

    def create(self, fields: dict[str, Any], path: str = KITES, query: str = "") -> dict[str, Any]:
        """Create an object."""
        code, found = self.client.ask("POST", f"{path}?fieldManager=maker{query}", self.body(path, fields))
        self.assertEqual(code, 201, found)
        return dict(found)

    def merge(self, fields: dict[str, Any], path: str = KITES, sub: str = "") -> dict[str, Any]:
        """Change an object by a merge patch."""
        url = f"{path}/a{sub}?fieldManager=changer"
        code, found = self.client.ask("PATCH", url, fields, Content_Type=MERGE)
        self.assertEqual(code, 200, found)
        return dict(found)

    def get(self, path: str = KITES) -> dict[str, Any]:
        """Read an object."""
        code, found = self.client.ask("GET", f"{path}/a")
        self.assertEqual(code, 200, found)
        return dict(found)

    def owners(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Who owns what."""
        return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", ())}


class ContainerTests(CustomApplyTestCase):
    """Containers that apply empties, and nulls."""

    def test_kept(self) -> None:
        """An emptied container remains, so that rules and required fields apply to it."""
        self.define({**struct(spec={**struct(a=TEXT), "nullable": True}), "required": ["spec"]})
        self.applied({"spec": {"a": "1"}})
        found = self.applied({"spec": {}})
        self.assertEqual((found["spec"], self.owners(found)), ({}, {"me": {"f:spec": {}}}))
        self.assertEqual(self.apply({})[0], 422)

    def test_null(self) -> None:
        """A null is invalid for a field that is not nullable and has no default, which would replace it."""
        self.define(struct(spec=struct(a=TEXT, b={**TEXT, "default": "B"}, c={**TEXT, "nullable": True})))
        code, status = self.apply({"spec": {"a": None}})
        self.assertEqual((code, status["details"]["causes"][0]["field"]), (422, "spec.a"))
        self.assertEqual(self.applied({"spec": {"b": None, "c": None}})["spec"], {"b": "B", "c": None})

    def test_null_without_type(self) -> None:
        """A null that validation accepts and readers drop is not shown."""
        self.define(struct(free={"x-kubernetes-preserve-unknown-fields": True}))
        for query in ("&dryRun=All", ""):
            self.assertNotIn("free", self.applied({"free": None}, query=query))
        self.assertNotIn("free", self.get())

    def test_unknown_fields(self) -> None:
        """Fields that the types of apply allow and the schema does not are owned, but not stored."""
        self.define(struct(spec={"type": "object"}))
        for query in ("&dryRun=All", ""):
            found = self.applied({"spec": {"a": 1}}, query=query)
            self.assertEqual((found["spec"], self.owners(found)), ({}, {"me": {"f:spec": {"f:a": {}}}}))
        self.assertEqual(self.get()["spec"], {})

    def test_no_metadata(self) -> None:
        """An apply without metadata creates no object, since it has no name."""
        self.define(struct())
        code, status = self.apply({"metadata": None})
        self.assertEqual((code, status["reason"]), (400, "BadRequest"))

    def test_absent_is_not_null(self) -> None:
        """A nullable field that goes from absent to null makes a new generation."""
        self.define(struct(spec={**struct(a=TEXT), "nullable": True}))
        self.create({})
        self.assertEqual(self.merge({"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"], 1)
        self.assertEqual(self.applied({"spec": None})["metadata"]["generation"], 2)

    def test_no_defaults_without_change(self) -> None:
        """An apply that changes nothing adds no defaults of its version."""
        self.define_versions(struct(spec=struct(a=TEXT)), struct(spec=struct(a={**TEXT, "default": "A"})))
        self.create({"spec": {}})
        self.assertEqual(self.applied({"spec": {}}, path=OLD)["spec"], {})
        self.assertEqual(self.applied({"metadata": {"name": "a", "labels": {"x": "y"}}}, path=OLD)["spec"], {"a": "A"})


class IgnoredPartTests(CustomApplyTestCase):
    """Fields that an endpoint ignores, and objects that do not fit their schema."""

    def test_filter_of_the_request(self) -> None:
        """In a version without a status subresource clients own the status, whatever other versions have."""
        schema = struct(status=struct(s=TEXT))
        self.define_versions(schema, schema, subresources={"status": {}})
        self.assertEqual(self.owners(self.applied({"status": {"s": "1"}})), {})
        found = self.applied({"status": {"s": "1"}}, path=OLD)
        self.assertEqual(self.owners(found), {"me": {"f:status": {"f:s": {}}}})

    def test_ill_typed_status(self) -> None:
        """A status of the wrong type is ignored by the main resource, but clears the managed fields."""
        self.define(struct(spec=struct(a=TEXT), status=struct(n={"type": "integer"})), subresources={"status": {}})
        self.create({"spec": {"a": "1"}})
        found = self.merge({"spec": {"a": "2"}, "status": {"n": "many"}})
        self.assertEqual((found["spec"], found["metadata"].get("managedFields")), ({"a": "2"}, None))

    def test_live_object_does_not_fit(self) -> None:
        """After a type became stricter, updates clear managed fields, and applies fail until the object fits."""
        self.define(struct(spec=struct(a={"x-kubernetes-preserve-unknown-fields": True}, b=TEXT)))
        self.applied({"spec": {"a": "x"}})
        integer = {"openAPIV3Schema": struct(spec=struct(a={"type": "integer"}, b=TEXT))}
        self.redefine(lambda versions: [{**versions[0], "schema": integer}])
        about = "(default/a; example.com/v1, Kind=Kite)"
        misfit = ".spec.a: expected numeric (int or float), got string"
        code, status = self.apply({"spec": {"a": 1}})
        self.assertEqual((code, status["message"]), (500, f"failed to create typed live object {about}: {misfit}"))
        self.assertEqual(self.owners(self.merge({"spec": {"b": "y"}})), {})
        code, status = self.apply({"spec": {"a": 1}})
        expected = f"failed to create manager for existing fields: failed to convert new object {about} to smd typed"
        self.assertEqual((code, status["message"]), (500, f"{expected}: {misfit}"))
        self.merge({"spec": {"a": 1}})
        self.assertEqual(set(self.owners(self.applied({"spec": {"a": 1}}))), {"before-first-apply", "me"})

    def test_fields_of_other_version(self) -> None:
        """An apply fails when another manager's version does not have a field of the object."""
        self.define_versions(struct(spec=struct(a=TEXT, new=TEXT)), struct(spec=struct(a=TEXT)))
        self.applied({"spec": {"a": "1"}}, "old", OLD)
        code, status = self.apply({"spec": {"new": "1"}})
        self.assertEqual(
            (code, status["message"]), (500, "failed to convert new object: .spec.new: field not declared in schema")
        )

    def test_removed_version(self) -> None:
        """While managed fields name a removed version, applies fail; an update clears them."""
        schema = struct(spec=struct(a=TEXT, b=TEXT))
        self.define_versions(schema, schema)
        self.applied({"spec": {"a": "1"}}, "old", OLD)
        self.redefine(lambda versions: versions[:1])
        code, status = self.apply({"spec": {"b": "1"}})
        self.assertEqual(
            (code, status["message"]), (500, "request to convert CR to an invalid group/version: example.com/v1beta1")
        )
        self.assertEqual(self.owners(self.merge({"spec": {"b": "2"}})), {})


class ScaleTests(CustomApplyTestCase):
    """Applies to C{scale}."""

    def scale(self, replicas: int, query: str = "") -> tuple[int, dict[str, Any]]:
        """Apply a Scale."""
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "a"},
            "spec": {"replicas": replicas},
        }
        url = f"{KITES}/a/scale?fieldManager=scaler{query}"
        code, found = self.client.ask("PATCH", url, orjson.dumps(body), Content_Type=APPLY)
        return code, found

    def test_apply(self) -> None:
        """An apply that would change a Scale, or whose replicas have no owner yet, fails as in the reference."""
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        schema = struct(spec=struct(replicas={"type": "integer"}), status=struct(replicas={"type": "integer"}))
        self.define(schema, subresources={"scale": paths})
        self.create({"spec": {}})
        why = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
        code, status = self.scale(1)
        self.assertEqual(
            (code, status["message"]),
            (
                500,
                "failed to create manager for existing fields: failed to convert live object "
                f"(/; autoscaling/v1, Kind=Scale) {why}",
            ),
        )
        self.applied({"spec": {"replicas": 1}})
        self.assertEqual(self.scale(1)[0], 200)
        self.assertEqual(self.scale(2)[0], 409)
        code, status = self.scale(2, "&force=true")
        self.assertEqual(
            (code, status["message"]), (500, f"failed to convert new object (/a; autoscaling/v1, Kind=Scale) {why}")
        )
        self.assertEqual(self.get()["spec"], {"replicas": 1})


class DefaultsOfVersionsTests(CustomApplyTestCase):
    """An object has the defaults of the version in which it is stored."""

    STORED = struct(spec=struct(a=TEXT, b={**TEXT, "default": "stored"}))
    OTHER = struct(spec=struct(a={**TEXT, "default": "other"}, b=TEXT))

    def test_reads(self) -> None:
        """A read in another version does not show that version's defaults, and a JSON patch does not test them."""
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
            found = self.merge({"metadata": {"labels": {"a": "b"}}}, OLD)
            self.assertEqual((found["spec"], found["metadata"]["generation"]), ({"a": "other", "b": "stored"}, 2))

    def test_fields_that_are_not_stored(self) -> None:
        """A default of a field that the stored version lacks is lost, also in the answer to a dry run."""
        other = struct(spec=struct(mine={**TEXT, "default": "other"}, b=TEXT))
        self.define_versions(self.STORED, other)
        for query in ("&dryRun=All", ""):
            self.assertEqual(self.create({"spec": {}}, OLD, query)["spec"], {"b": "stored"})

    def test_stored_before(self) -> None:
        """An object that was stored in another version keeps that version's fields and defaults until it is written."""
        older = struct(spec=struct(a={**TEXT, "default": "other"}, gone=TEXT))
        self.define_versions(older, self.STORED)
        self.create({"spec": {"gone": "1"}})
        self.redefine(lambda versions: [{**one, "storage": one["name"] == "v1beta1"} for one in versions])
        found = self.get()
        self.assertEqual(found["spec"], {"a": "other", "gone": "1"})
        self.assertEqual(self.get(OLD)["spec"], {"a": "other"})
        # An update that changes nothing rewrites it in the current storage version.
        again = self.merge({}, OLD)
        self.assertNotEqual(again["metadata"]["resourceVersion"], found["metadata"]["resourceVersion"])
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
        older = struct(spec=struct(gone=TEXT))
        self.define_versions(older, self.STORED)
        self.create({"spec": {"gone": "1"}})
        self.redefine(lambda versions: [{**one, "storage": one["name"] == "v1beta1"} for one in versions])
        watchers = [self.server.client(), self.server.client()]
        began = [watcher.begin(f"{path}?watch=1") for watcher, path in zip(watchers, (KITES, OLD), strict=True)]
        self.assertEqual(self.client.ask("DELETE", f"{OLD}/a")[0], 200)
        self.server.settle()
        for watcher, head, expected in zip(watchers, began, ({"gone": "1"}, {}), strict=True):
            found = events((head + watcher.taken()).partition(b"\r\n\r\n")[2])
            self.assertEqual(
                [(one["type"], one["object"]["spec"]) for one in found], [("ADDED", expected), ("DELETED", expected)]
            )

    def test_default_of_status(self) -> None:
        """A status that creation drops has its default when it is read, which validation does not see."""
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


class ConvertedElsewhereTests(CustomApplyTestCase):
    """Kinds that a plugin converts."""

    def test_same_version(self) -> None:
        """Applies in the storage version that all managers use convert nothing."""
        plugin = HostAndPort()
        self.server.custom._conversion_of = Conversions(
            Outgoing(None, lambda namespace, name: None), self.server.clock, [plugin]
        )
        self.server.define(self.client, two_versions())
        self.applied({"spec": {"address": "here:1"}})
        self.applied({"spec": {"note": "x"}}, "other")
        self.assertEqual(self.applied({})["spec"], {"note": "x"})
        self.assertEqual(plugin.calls, [])
