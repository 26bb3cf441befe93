"""Tests for L{kubetwist.resources.customresources}: custom resources over HTTP in memory."""

from __future__ import annotations

import copy
from typing import Any

import orjson

from kubetwist.schema.protobuf.codec import read_envelope
from tests.resources.customcase import CustomTestCase
from tests.resources.customserver import DEFINITIONS, KITES, definition, kite
from tests.resources.server import events

MERGE = "application/merge-patch+json"


def numbered(template: dict[str, Any], number: int) -> dict[str, Any]:
    """Return another established definition, in one of ten groups."""
    crd = copy.deepcopy(template)
    group, plural = f"g{number % 10}.example.com", f"kites{number}"
    crd["metadata"] |= {"name": f"{plural}.{group}", "uid": f"uid-{number}"}
    crd["spec"]["group"] = group
    for names in (crd["spec"]["names"], crd["status"]["acceptedNames"]):
        names |= {
            "plural": plural,
            "singular": f"kite{number}",
            "kind": f"Kite{number}",
            "listKind": f"Kite{number}List",
        }
    return crd


class LifeTests(CustomTestCase):
    """The life cycle of definitions."""

    def test_established(self) -> None:
        """A definition is established immediately, and its objects can be created."""
        found = self.define()
        conditions = [(one["type"], one["status"]) for one in found["status"]["conditions"]]
        self.assertEqual(conditions, [("NamesAccepted", "True"), ("Established", "True")])
        self.assertEqual(found["status"]["acceptedNames"]["listKind"], "KiteList")
        code, created = self.client.ask("POST", KITES, kite("a", spec={"tail": 3}))
        self.assertEqual((code, created["spec"]), (201, {"tail": 3, "colour": "red"}))
        self.assertEqual(created["metadata"]["generation"], 1)

    def test_apply_needs_create(self) -> None:
        """A client that may patch, but not create, cannot create an object by an apply."""
        self.define()
        self.server.authorizer.refused.add("create")
        apply = {"Content_Type": "application/apply-patch+yaml"}
        code, status = self.client.ask("PATCH", f"{KITES}/a?fieldManager=m", kite("a"), **apply)
        self.assertEqual((code, status["reason"]), (403, "Forbidden"))
        self.assertIn('cannot create resource "kites" in API group "example.com"', status["message"])
        self.server.authorizer.refused.clear()
        self.assertEqual(self.client.ask("PATCH", f"{KITES}/a?fieldManager=m", kite("a"), **apply)[0], 201)

    def test_unknown_is_text(self) -> None:
        """Paths of undefined groups and resources are answered by a plain-text 404."""
        self.assertEqual(self.text(KITES), (404, b"404 page not found\n"))
        self.define()
        self.assertEqual(self.text(KITES.replace("kites", "boats")), (404, b"404 page not found\n"))
        self.assertEqual(self.text("/apis/example.com/v2"), (404, b"404 page not found\n"))

    def test_discovery(self) -> None:
        """Group and version list the defined resources until the definition is deleted."""
        self.define(subresources={"status": {}})
        code, group = self.client.ask("GET", "/apis/example.com")
        self.assertEqual((code, group["preferredVersion"]["version"]), (200, "v1"))
        _, listed = self.client.ask("GET", "/apis/example.com/v1")
        self.assertEqual([one["name"] for one in listed["resources"]], ["kites", "kites/status"])
        for method in ("POST", "DELETE", "HEAD"):
            self.assertEqual(self.client.request(method, "/apis/example.com/v1").code, 200)
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.server.settle()
        self.assertEqual(self.text("/apis/example.com")[0], 404)
        self.assertEqual(self.text("/apis/example.com/v1")[0], 404)

    def test_deletion_waits_for_objects(self) -> None:
        """A deleted definition stays while an object has a finalizer, rejects creations, and is removed afterwards."""
        self.define()
        held = kite("held")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        self.client.ask("POST", KITES, held)
        self.client.ask("POST", KITES, kite("plain"))
        code, deleted = self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(code, 200)
        self.assertEqual(deleted["status"]["conditions"][-1]["reason"], "InstanceDeletionPending")
        self.server.settle()
        self.assertEqual(self.client.ask("GET", f"{KITES}/plain")[0], 404)
        code, status = self.client.ask("POST", KITES, kite("late"))
        self.assertEqual(code, 403)
        self.assertIn("create not allowed while custom resource definition is terminating", status["message"])
        _, listed = self.client.ask("GET", "/apis/example.com/v1")
        self.assertNotIn("create", listed["resources"][0]["verbs"])
        self.client.ask("PATCH", f"{KITES}/held", {"metadata": {"finalizers": None}}, Content_Type=MERGE)
        self.server.settle()
        self.assertEqual(self.client.ask("GET", f"{DEFINITIONS}/kites.example.com")[0], 404)
        self.assertEqual(self.text(KITES)[0], 404)

    def test_deletion_waits_for_finalizers(self) -> None:
        """
        After the objects are deleted, a definition that a finalizer of another controller holds serves requests again.
        """
        crd = definition()
        crd["metadata"]["finalizers"] = ["example.com/hold"]
        self.server.define(self.client, crd)
        self.client.ask("POST", KITES, kite("gone"))
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.server.settle()
        _, found = self.client.ask("GET", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(found["metadata"]["finalizers"], ["example.com/hold"])
        self.assertEqual(self.client.ask("GET", f"{KITES}/gone")[0], 404)
        self.assertEqual(self.client.ask("POST", KITES, kite("late"))[0], 201)
        _, listed = self.client.ask("GET", "/apis/example.com/v1")
        self.assertIn("create", listed["resources"][0]["verbs"])
        body = {"spec": {"names": {"shortNames": ["kt"]}}}
        self.client.ask("PATCH", f"{DEFINITIONS}/kites.example.com", body, Content_Type=MERGE)
        self.server.settle()
        _, found = self.client.ask("GET", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(found["status"]["acceptedNames"]["shortNames"], ["kt"])
        body = {"metadata": {"finalizers": None}}
        self.client.ask("PATCH", f"{DEFINITIONS}/kites.example.com", body, Content_Type=MERGE)
        self.server.settle()
        self.assertEqual(self.client.ask("GET", f"{DEFINITIONS}/kites.example.com")[0], 404)

    def test_apply_while_terminating(self) -> None:
        """An apply creates no object while the objects of the definition are being deleted."""
        self.define()
        held = kite("held")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        self.client.ask("POST", KITES, held)
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.server.settle()
        apply = {"Content_Type": "application/apply-patch+yaml"}
        code, status = self.client.ask("PATCH", f"{KITES}/late?fieldManager=m", kite("late"), **apply)
        self.assertEqual((code, status["reason"]), (403, "Forbidden"))
        self.assertEqual(self.client.ask("PATCH", f"{KITES}/held?fieldManager=m", kite("held"), **apply)[0], 200)

    def test_preconditions(self) -> None:
        """A DELETE of a definition checks its preconditions, with specific messages, even if it is marked already."""
        self.define()
        held = kite("held")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        self.client.ask("POST", KITES, held)
        path = f"{DEFINITIONS}/kites.example.com"
        for _ in range(2):
            for conditions, what in (
                ({"uid": "x"}, "UID in precondition: x, UID in object meta: "),
                ({"resourceVersion": "x"}, "ResourceVersion in precondition: x, ResourceVersion in object meta: "),
            ):
                code, status = self.client.ask("DELETE", path, {"preconditions": conditions})
                self.assertEqual((code, status["details"]["kind"]), (409, "customresourcedefinitions"))
                self.assertIn(f"Precondition failed: {what}", status["message"])
            self.assertEqual(self.client.ask("DELETE", path)[0], 200)

    def test_empty_dependencies(self) -> None:
        """A schema with dependencies is rejected, even if they are empty."""
        schema = {"type": "object", "dependencies": {}}
        code, status = self.client.ask("POST", DEFINITIONS, definition(schema))
        self.assertEqual(code, 422)
        self.assertIn("dependencies: Forbidden: dependencies is not supported", status["message"])

    def test_names_conflict(self) -> None:
        """A second definition of a kind is not accepted until the first one is deleted."""
        self.define()
        found = self.define(None, "wings", "Kite")
        reasons = [one["reason"] for one in found["status"]["conditions"]]
        self.assertEqual(reasons, ["ListKindConflict", "NotAccepted"])
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.server.settle()
        _, found = self.client.ask("GET", f"{DEFINITIONS}/wings.example.com")
        self.assertEqual(found["status"]["conditions"][1]["reason"], "InitialNamesAccepted")

    def test_changed_schema(self) -> None:
        """A changed schema applies from the next request on, also to stored objects."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        patch = [
            {
                "op": "add",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/later",
                "value": {"type": "string", "default": "added"},
            }
        ]
        path = f"{DEFINITIONS}/kites.example.com"
        self.client.ask("PATCH", path, patch, Content_Type="application/json-patch+json")
        self.assertEqual(self.client.ask("GET", f"{KITES}/a")[1]["later"], "added")

    def test_built_in_group_versions_stay(self) -> None:
        """A definition in a built-in group-version does not change the built-in resources."""
        crd = definition()
        crd["spec"]["group"] = "apiextensions.k8s.io"
        crd["metadata"] = {
            "name": "kites.apiextensions.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        }
        self.server.define(self.client, crd)
        self.assertEqual(self.client.ask("GET", DEFINITIONS)[0], 200)
        _, listed = self.client.ask("GET", "/apis/apiextensions.k8s.io/v1")
        self.assertNotIn("kites", [one["name"] for one in listed["resources"]] if "resources" in listed else [])


class ObjectTests(CustomTestCase):
    """Requests for objects."""

    def test_list(self) -> None:
        """Items of a list repeat their kind, and the list always has a continue token."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        _, found = self.client.ask("GET", KITES)
        self.assertEqual((found["kind"], found["metadata"]["continue"]), ("KiteList", ""))
        self.assertEqual(found["items"][0]["kind"], "Kite")

    def test_cluster_wide_list(self) -> None:
        """Namespaced objects can be listed without a namespace, but not created."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        self.assertEqual(len(self.client.ask("GET", "/apis/example.com/v1/kites")[1]["items"]), 1)
        answer = self.client.answer("POST", "/apis/example.com/v1/kites", kite("b"))
        self.assertEqual((answer.code, answer.body), (404, b"404 page not found\n"))

    def test_cluster_scoped_through_namespace(self) -> None:
        """CVE-2019-11247: a cluster-scoped object is not found below a namespace."""
        crd = definition()
        crd["spec"]["scope"] = "Cluster"
        self.server.define(self.client, crd)
        self.assertEqual(self.client.ask("POST", "/apis/example.com/v1/kites", kite("a"))[0], 201)
        self.assertEqual(self.client.ask("GET", "/apis/example.com/v1/kites/a")[0], 200)
        self.assertEqual(self.text(f"{KITES}/a"), (404, b"404 page not found\n"))

    def test_unknown_fields(self) -> None:
        """Unknown fields are dropped with a warning, or rejected with strict validation."""
        self.define()
        answer = self.client.answer("POST", KITES, kite("a", spec={"sails": 1}))
        self.assertEqual(answer.headers["warning"], ['299 - "unknown field \\"spec.sails\\""'])
        self.assertEqual(orjson.loads(answer.body)["spec"], {"colour": "red"})
        code, status = self.client.ask("POST", f"{KITES}?fieldValidation=Strict", kite("b", spec={"sails": 1}))
        self.assertEqual(code, 400)
        self.assertIn('strict decoding error: unknown field "spec.sails"', status["message"])

    def test_invalid(self) -> None:
        """An object that violates the schema is rejected, and the causes contain the reasons."""
        self.define()
        code, status = self.client.ask("POST", KITES, kite("a", spec={"tail": 0}))
        self.assertEqual(code, 422)
        text = "Invalid value: 0: spec.tail in body should be greater than or equal to 1"
        cause = {"reason": "FieldValueInvalid", "message": text, "field": "spec.tail"}
        self.assertEqual(status["details"]["causes"], [cause])

    def test_without_kind(self) -> None:
        """The error about a body without a kind quotes its beginning."""
        self.define()
        code, status = self.client.ask("POST", KITES, {"metadata": {"name": "a"}})
        self.assertEqual(code, 400)
        body = '{"metadata":{"name":"a"}}'
        self.assertEqual(
            status["message"],
            "the object provided is unrecognized (must be of type Kite): "
            f"Object 'Kind' is missing in '{body}' ({body})",
        )

    def test_version_without_group(self) -> None:
        """An error about a version without a group omits the group."""
        self.define()
        code, status = self.client.ask("POST", KITES, kite("a") | {"apiVersion": "/v1"})
        self.assertEqual(code, 400)
        self.assertTrue(status["message"].startswith("the API version in the data (v1) does not match"))

    def test_no_strategic_merge(self) -> None:
        """Strategic merge patches are not supported for custom resources."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        code, status = self.client.ask("PATCH", f"{KITES}/a", {}, Content_Type="application/strategic-merge-patch+json")
        self.assertEqual(code, 415)
        self.assertTrue(status["message"].endswith("application/merge-patch+json, application/apply-patch+yaml"))

    def test_patch_of_collection(self) -> None:
        """A patch without a name is a bad request instead of an unsupported method."""
        self.define()
        code, status = self.client.ask("PATCH", KITES, {}, Content_Type=MERGE)
        self.assertEqual((code, status["message"]), (400, "name must be provided"))
        self.assertEqual(self.client.ask("PATCH", KITES, {})[0], 415)

    def test_head(self) -> None:
        """HEAD is answered like GET without a body; built-in kinds do not support it."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        for path in (KITES, f"{KITES}/a"):
            answer = self.client.request("HEAD", path)
            self.assertEqual((answer.code, answer.body), (200, b""))
        self.assertEqual(self.client.request("HEAD", f"{KITES}/none").code, 404)

    def test_update_needs_version(self) -> None:
        """A PUT without a resourceVersion is invalid; the error names the plural as the kind."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        code, status = self.client.ask("PUT", f"{KITES}/a", kite("a"))
        self.assertEqual((code, status["details"]["kind"]), (422, "kites"))

    def test_generation(self) -> None:
        """A change outside of the metadata increments the generation."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        for patch, generation in (({"metadata": {"labels": {"a": "b"}}}, 1), ({"spec": {"tail": 2}}, 2)):
            _, found = self.client.ask("PATCH", f"{KITES}/a", patch, Content_Type=MERGE)
            self.assertEqual(found["metadata"]["generation"], generation)

    def test_watch(self) -> None:
        """A watch sends created objects."""
        self.define()
        watcher = self.server.client()
        watcher.begin(f"{KITES}?watch=1")
        self.client.ask("POST", KITES, kite("a"))
        self.server.clock.advance(0)
        (event,) = events(watcher.taken())
        self.assertEqual((event["type"], event["object"]["kind"]), ("ADDED", "Kite"))

    def test_apply(self) -> None:
        """Server-side apply creates an object and records the ownership of its fields."""
        self.define()
        body = orjson.dumps(kite("a", spec={"tail": 2}))
        code, created = self.client.ask(
            "PATCH", f"{KITES}/a?fieldManager=me", body, Content_Type="application/apply-patch+yaml"
        )
        self.assertEqual(code, 201)
        (entry,) = created["metadata"]["managedFields"]
        self.assertEqual((entry["manager"], entry["fieldsV1"]), ("me", {"f:spec": {"f:tail": {}}}))

    def test_selectable_fields(self) -> None:
        """Objects are selected by the selectable fields of the definition, and by no other fields."""
        self.define(selectableFields=[{"jsonPath": ".spec.colour"}])
        self.client.ask("POST", KITES, kite("a"))
        self.client.ask("POST", KITES, kite("b", spec={"colour": "blue"}))
        _, found = self.client.ask("GET", f"{KITES}?fieldSelector=spec.colour%3Dblue")
        self.assertEqual([one["metadata"]["name"] for one in found["items"]], ["b"])
        code, status = self.client.ask("GET", f"{KITES}?fieldSelector=spec.tail%3D1")
        self.assertEqual((code, status["message"]), (400, "field label not supported: spec.tail"))

    def test_many_definitions(self) -> None:
        """Thousands of definitions add neither rules nor apps; their paths are not found after their removal."""
        template = self.define()
        mux, custom = self.server.installer.mux, self.server.custom

        def routing() -> tuple[int, int]:
            apps = {id(app): app for _, app in mux.claims()}.values()
            return len(apps), sum(len(list(app.app.url_map.iter_rules())) for app in apps)

        before = routing()
        crds = [numbered(template, number) for number in range(2000)]
        for crd in crds:
            custom.install(crd, terminating=False)
        self.assertEqual(routing(), before)
        last = "/apis/g9.example.com/v1/namespaces/default/kites1999"
        self.assertEqual(self.client.ask("GET", last)[0], 200)
        self.assertEqual(self.client.ask("GET", f"{last}/a")[1]["details"]["kind"], "kites1999")
        self.assertEqual(self.client.request("GET", "/apis/g9.example.com/v1/namespaces/default/kites1998").code, 404)
        for crd in crds:
            custom.remove(crd["metadata"]["name"])
        self.assertEqual(routing(), before)
        for path in (last, "/apis/g9.example.com/v1", "/apis/g9.example.com"):
            self.assertEqual(self.text(path), (404, b"404 page not found\n"))
        custom.install(crds[-1], terminating=False)
        self.assertEqual(self.client.ask("GET", last)[0], 200)

    def test_authorized_resource(self) -> None:
        """A path is of the resource for which it was authorized, even if a definition has the name of a subresource."""
        self.define(None, "status", "Situation")
        self.assertEqual(self.client.ask("GET", "/apis/example.com/v1/status")[0], 200)
        for path in ("status", "status/a"):
            code, body = self.text(f"/apis/example.com/v1/namespaces/default/{path}")
            self.assertEqual((code, body), (404, b"404 page not found\n"))
            asked = self.server.authorizer.asked[-1]
            self.assertEqual((asked.resource, asked.name, asked.subresource), ("namespaces", "default", "status"))

    def test_large_definitions(self) -> None:
        """A definition with compiled rules is validated in a thread from 2 KiB on."""
        threads = self.server.done_in_threads
        for length, expected in ((100, False), (2100, True)):
            threads.clear()
            crd = definition({"type": "object", "description": "x" * length})
            code, _ = self.client.ask("POST", f"{DEFINITIONS}?dryRun=All", crd)
            self.assertEqual(code, 201)
            self.assertEqual("_prepared_creation" in [function.__name__ for function in threads], expected)

    def test_costly_rules(self) -> None:
        """Expensive rules are evaluated in a thread, cheap ones in the reactor, with equal results."""
        tail = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
        small = "self.tail.all(x, self.tail.all(y, x + y < 1998))"
        spec = {"type": "object", "properties": {"tail": tail}, "x-kubernetes-validations": [{"rule": small}]}
        self.define({"type": "object", "properties": {"spec": spec}})
        threads = self.server.done_in_threads
        for size, expected in ((5, []), (100, ["_prepared_creation"])):
            for value, code in ((1, 201), (999, 422)):
                threads.clear()
                created = kite(f"k{size}", spec={"tail": [*range(1, size), value]})
                self.assertEqual(self.client.ask("POST", KITES, created)[0], code)
                self.assertEqual([function.__name__ for function in threads], expected)

    def test_table(self) -> None:
        """The columns are defined by the definition; the default is the age."""
        self.define(additionalPrinterColumns=[{"name": "Colour", "type": "string", "jsonPath": ".spec.colour"}])
        self.client.ask("POST", KITES, kite("a", spec={}))
        _, table = self.client.ask("GET", KITES, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        self.assertEqual([one["name"] for one in table["columnDefinitions"]], ["Name", "Colour"])
        self.assertEqual(table["rows"][0]["cells"], ["a", "red"])


class UntypedTests(CustomTestCase):
    """Fields of any type."""

    def setUp(self) -> None:
        """Create an object of a kind whose fields are not declared."""
        super().setUp()
        self.define({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, subresources={"status": {}})
        fields = {"spec": {"a": 1, "l": [0], "o": {"b": True}}}
        self.client.ask("POST", f"{KITES}?fieldManager=maker", kite("a", **fields))

    def change(self, body: Any, media: str = MERGE, query: str = "fieldManager=f") -> dict[str, Any]:
        """Patch the object."""
        code, found = self.client.ask("PATCH", f"{KITES}/a?{query}", body, Content_Type=media)
        self.assertEqual(code, 200, found)
        return found

    def test_retyped(self) -> None:
        """Replacing 1 by true is a change: it increments the generation and the ownership."""
        for generation, (spec, step) in enumerate(
            (({"a": True}, "f:a"), ({"l": [False]}, "f:l"), ({"o": {"b": 1}}, "f:o")), start=2
        ):
            found = self.change({"spec": spec}, query=f"fieldManager=m{generation}")
            self.assertEqual(found["metadata"]["generation"], generation)
            owners = [
                entry["manager"]
                for entry in found["metadata"]["managedFields"]
                if set(entry["fieldsV1"].get("f:spec", {}).get(step, {"none": {}})) <= {"f:b", "."}
            ]
            self.assertIn(f"m{generation}", owners)

    def test_floats(self) -> None:
        """A float in place of an equal integer increments the generation, and is stored as that integer."""
        found = self.change(b'{"spec":{"a":1.0}}')
        self.assertEqual((found["metadata"]["generation"], str(found["spec"]["a"])), (2, "1"))
        self.assertEqual([entry["manager"] for entry in found["metadata"]["managedFields"]], ["maker"])
        self.assertEqual(self.change(b'{"spec":{"a":1}}')["metadata"]["generation"], 2)
        self.assertEqual(self.change(b'{"metadata":{"annotations":{"a":"1.0"}}}')["metadata"]["generation"], 2)
        body = b'{"kind":"Kite","apiVersion":"example.com/v1","metadata":{"name":"a","resourceVersion":"%s"},"spec":%s}'
        version = self.client.ask("GET", f"{KITES}/a")[1]["metadata"]["resourceVersion"].encode()
        code, found = self.client.ask("PUT", f"{KITES}/a", body % (version, b'{"a":1,"l":[0.0],"o":{"b":true}}'))
        self.assertEqual((code, found["metadata"]["generation"], str(found["spec"]["l"])), (200, 3, "[0]"))

    def test_floats_of_statuses(self) -> None:
        """A float outside of the status in a status patch changes nothing."""
        body = b'{"spec":{"a":7.0},"status":{"b":2.0}}'
        code, found = self.client.ask("PATCH", f"{KITES}/a/status", body, Content_Type=MERGE)
        self.assertEqual((code, found["spec"]["a"], str(found["status"])), (200, 1, "{'b': 2}"))
        revision = found["metadata"]["resourceVersion"]
        _, found = self.client.ask("PATCH", f"{KITES}/a/status", body, Content_Type=MERGE)
        self.assertEqual(found["metadata"]["resourceVersion"], revision)

    def test_conflicts(self) -> None:
        """Applying true conflicts with another manager's 1, and applying 1.0 does not."""
        apply = {"Content_Type": "application/apply-patch+yaml"}
        for spec, code in (({"a": True}, 409), ({"a": 1.0}, 200), ({"a": 1}, 200)):
            answer, _ = self.client.ask("PATCH", f"{KITES}/a?fieldManager=b", kite("a", spec=spec), **apply)
            self.assertEqual(answer, code, spec)


class FloatTests(CustomTestCase):
    """Whole floats and schemas."""

    def test_sets(self) -> None:
        """1 and 1.0 are different items of a set in a request, and are stored alike."""
        numbers = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}
        self.define({"type": "object", "properties": {"set": numbers}})
        for items, code in ((b"[1,1.0]", 201), (b"[1.0,1.0]", 422), (b"[1,1]", 422)):
            body = b'{"kind":"Kite","apiVersion":"example.com/v1","metadata":{"generateName":"a"},"set":%s}' % items
            answer, created = self.client.ask("POST", KITES, body)
            self.assertEqual(answer, code, items)
            if code == 201:
                self.assertEqual(str(created["set"]), "[1, 1]")

    def test_nested(self) -> None:
        """Lists and maps in a set are compared by their JSON, in which 1.0 is 1; messages show that, too."""
        free = {"x-kubernetes-preserve-unknown-fields": True}
        self.define(
            {"type": "object", "properties": {"set": {"type": "array", "x-kubernetes-list-type": "set", "items": free}}}
        )
        body = b'{"kind":"Kite","apiVersion":"example.com/v1","metadata":{"name":"a"},"set":[{"a":1.0},{"a":1}]}'
        code, status = self.client.ask("POST", KITES, body)
        self.assertEqual(code, 422)
        self.assertIn('set[1]: Duplicate value: {"a":1}', status["message"])
        body = b'{"kind":"Kite","apiVersion":"example.com/v1","metadata":{"name":"a"},"set":[1.0,1.0]}'
        code, status = self.client.ask("POST", KITES, body)
        self.assertTrue(status["message"].endswith("set[1]: Duplicate value: 1"), status)

    def test_retyped(self) -> None:
        """For ratcheting, a float in place of an equal integer is a change."""
        free = {"x-kubernetes-preserve-unknown-fields": True}
        schema: dict[str, Any] = {"type": "object", "properties": {"l": {"type": "array", "items": free}}}
        self.define(schema)
        self.client.ask("POST", KITES, kite("a", l=[1, 2]))
        _, crd = self.client.ask("GET", f"{DEFINITIONS}/kites.example.com")
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["l"]["maxItems"] = 1
        self.client.ask("PUT", f"{DEFINITIONS}/kites.example.com", crd)
        self.server.settle()
        for items, code in ((b"[1,2]", 200), (b"[1.0,2]", 422), (b"[true,2]", 422)):
            answer, _ = self.client.ask("PATCH", f"{KITES}/a", b'{"l":%s}' % items, Content_Type=MERGE)
            self.assertEqual(answer, code, items)


class SubresourceTests(CustomTestCase):
    """The subresources status and scale."""

    SCALE = {  # noqa: RUF012
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }

    def test_status(self) -> None:
        """If the status is a subresource, it is written by its path only."""
        self.define(subresources={"status": {}})
        _, created = self.client.ask("POST", KITES, kite("a", status={"phase": "Up"}))
        self.assertNotIn("status", created)
        patch = {"spec": {"tail": 5}, "status": {"phase": "Up"}}
        _, found = self.client.ask("PATCH", f"{KITES}/a/status", patch, Content_Type=MERGE)
        self.assertEqual((found.get("spec"), found["status"]), (None, {"phase": "Up"}))
        self.assertEqual(found["metadata"]["generation"], 1)

    def test_protobuf(self) -> None:
        """Neither custom resources nor their scales have a protobuf form; errors do."""
        self.define(subresources=self.SCALE)
        self.client.ask("POST", KITES, kite("a", spec={"replicas": 3}))
        protobuf = "application/vnd.kubernetes.protobuf"
        for path in (KITES, f"{KITES}/a", f"{KITES}?watch=1", f"{KITES}/a/status", f"{KITES}/a/scale"):
            answer = self.client.answer("GET", path, Accept=protobuf)
            envelope = read_envelope(answer.body)
            self.assertEqual((answer.code, envelope.api_version, envelope.kind), (406, "v1", "Status"), path)
            self.assertIn(b"NotAcceptable", envelope.raw)

    def test_not_acceptable(self) -> None:
        """Unacceptable media types are refused in the words for custom resources."""
        self.define(subresources=self.SCALE)
        self.client.ask("POST", KITES, kite("a"))
        accepted = (
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf"
        )
        for method, path in (("GET", f"{KITES}/a"), ("GET", KITES), ("DELETE", KITES), ("GET", f"{KITES}/a/scale")):
            code, status = self.client.ask(method, path, Accept="text/html")
            self.assertEqual((code, status["message"], status.get("details")), (406, accepted, None))
        view = "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadata"
        code, status = self.client.ask("GET", f"{KITES}/a", Accept=f"{view}List")
        self.assertEqual((code, status["message"]), (500, "content is not a list"))
        code, status = self.client.ask("GET", KITES, Accept=view)
        self.assertEqual(code, 406)
        self.assertIn("(*unstructured.UnstructuredList)", status["message"])

    def test_missing_subresource(self) -> None:
        """A subresource that the definition lacks is not found."""
        self.define()
        self.client.ask("POST", KITES, kite("a"))
        code, status = self.client.ask("GET", f"{KITES}/a/scale")
        self.assertEqual((code, status["reason"]), (404, "NotFound"))

    def test_scale(self) -> None:
        """A Scale reads and writes the fields at the definition's paths."""
        self.define(subresources=self.SCALE)
        self.client.ask("POST", KITES, kite("a", spec={}))
        self.assertEqual(self.client.ask("GET", f"{KITES}/a/scale")[0], 500)
        code, scale = self.client.ask("PATCH", f"{KITES}/a/scale", {"spec": {"replicas": 3}}, Content_Type=MERGE)
        self.assertEqual((code, scale["kind"], scale["spec"]), (200, "Scale", {"replicas": 3}))
        self.assertEqual(self.client.ask("GET", f"{KITES}/a")[1]["spec"]["replicas"], 3)
        code, _ = self.client.ask("PATCH", f"{KITES}/a/scale", {"spec": {"replicas": -1}}, Content_Type=MERGE)
        self.assertEqual(code, 422)

    def test_kinds_in_patches_of_scales(self) -> None:
        """A patch of a Scale may omit the kind; Scale is the only known kind there."""
        self.define(subresources=self.SCALE)
        self.client.ask("POST", KITES, kite("a", spec={"replicas": 1}))
        for index, fields in enumerate(({"kind": None}, {"apiVersion": None}, {"kind": "", "apiVersion": ""})):
            body = {**fields, "spec": {"replicas": index}}
            code, scale = self.client.ask("PATCH", f"{KITES}/a/scale", body, Content_Type=MERGE)
            self.assertEqual((code, scale["kind"], scale["spec"]), (200, "Scale", {"replicas": index} if index else {}))
        for kind, version in (("Kite", "example.com/v1"), ("ConfigMap", "v1")):
            body = {"kind": kind, "apiVersion": version}
            code, status = self.client.ask("PATCH", f"{KITES}/a/scale", body, Content_Type=MERGE)
            self.assertEqual(code, 422)
            self.assertIn(f'no kind "{kind}" is registered for version "{version}" in scheme', status["message"])

    def test_kinds_in_patches(self) -> None:
        """A patch cannot change or remove the kind or version of an object, except in a patch of the status."""
        self.define(subresources=self.SCALE)
        self.client.ask("POST", KITES, kite("a"))
        for fields, code, reason in (
            ({"kind": 7}, 422, "json: cannot unmarshal number into Go struct field .kind of type string"),
            ({"kind": None}, 422, 'Object \'Kind\' is missing in \'{"apiVersion":"example.com/v1",'),
            ({"kind": "Boat"}, 422, 'Boat.example.com "a" is invalid: kind: Invalid value: "Boat": must be Kite'),
            ({"apiVersion": None}, 500, "Object 'apiVersion' is missing in 'object has no apiVersion field'"),
            (
                {"apiVersion": "/v1"},
                422,
                'Kite "a" is invalid: apiVersion: Invalid value: "v1": must be example.com/v1',
            ),
            ({"apiVersion": "a/b/c"}, 422, "unexpected GroupVersion string: a/b/c"),
        ):
            answer, status = self.client.ask("PATCH", f"{KITES}/a", fields, Content_Type=MERGE)
            self.assertEqual(answer, code, fields)
            self.assertIn(reason, status["message"])
        for fields in ({"kind": "Boat"}, {"apiVersion": "other.io/v1"}):
            body = {**fields, "status": {"phase": "Up"}}
            code, found = self.client.ask("PATCH", f"{KITES}/a/status", body, Content_Type=MERGE)
            self.assertEqual((code, found["kind"], found["apiVersion"]), (200, "Kite", "example.com/v1"))
            self.assertEqual(found["status"], {"phase": "Up"})
            self.assertNotIn("managedFields", found["metadata"])

    def test_unknown_versions_in_patches(self) -> None:
        """A version that the kind does not have declares no fields: all are reported as unknown."""
        self.define()
        self.client.ask("POST", KITES, kite("a", spec={"tail": 1}))
        answer = self.client.answer("PATCH", f"{KITES}/a", {"apiVersion": "example.com/v9"}, Content_Type=MERGE)
        self.assertEqual((answer.code, answer.header("warning")), (422, '299 - "unknown field \\"spec\\""'))
