"""Tests for hostile definitions: they cannot prevent the start, block the server, or take over resources."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import LogLevel, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.storage import Write
from kubetwist.controllers.customresources import RETRY_INITIAL, CRDController
from kubetwist.resources.openapi.builder import Builder
from kubetwist.schema.validation import compiling as schemacompiling
from tests.resources.customserver import DEFINITIONS, KITES, CustomServer, definition
from tests.resources.server import definitions

PREFIX = "/registry/apiextensions.k8s.io/customresourcedefinitions/"


def kite(**spec: Any) -> dict[str, Any]:
    """Return an object."""
    return {"apiVersion": "example.com/v1", "kind": "Kite", "metadata": {"name": "k"}, "spec": spec}


def with_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a definition whose objects have this spec."""
    return definition({"type": "object", "properties": {"spec": spec}})


class SchemaTests(SynchronousTestCase):
    """Schemas that are expensive by intention."""

    def setUp(self) -> None:
        """Create a server."""
        self.server = CustomServer()
        self.client = self.server.client()

    def refused(self, crd: dict[str, Any], code: int) -> str:
        """Return the reason for the rejection of a definition."""
        answered, status = self.client.ask("POST", DEFINITIONS, crd)
        self.assertEqual(answered, code, status)
        message: str = status["message"]
        return message

    def test_rule_bounded_depth(self) -> None:
        """A schema that is nested too deep is rejected, and a deep schema within the limit is served."""
        for depth in (60, 20_000):
            nested = '{"type":"object","properties":{"a":' * depth + '{"type":"string"}' + "}}" * depth
            body = json.dumps(with_spec({"type": "object"})).replace('{"type": "object"}', nested, 1)
            answer = self.client.answer("POST", DEFINITIONS, body.encode(), Content_Type="application/json")
            self.assertEqual(answer.code, 201 if depth == 60 else 400, answer.body[:300])

    def test_rule_bounded_parts(self) -> None:
        """A schema with too many nodes is rejected."""
        parts = {f"f{number}": {"type": "string"} for number in range(60_000)}
        self.assertIn("must have at most", self.refused(with_spec({"type": "object", "properties": parts}), 422))

    def test_rule_large_enum(self) -> None:
        """A value is looked up in a large enum as fast as in a small one."""
        choices = [f"choice-{number}" for number in range(50_000)]
        crd = with_spec({"type": "object", "properties": {"a": {"type": "string", "enum": choices}}})
        self.server.define(self.client, crd)
        self.assertEqual(self.client.ask("POST", KITES, kite(a="choice-49999"))[0], 201)
        self.assertEqual(self.client.ask("PUT", f"{KITES}/k", kite(a="other"))[0], 422)

    def test_rule_alternatives(self) -> None:
        """The number of evaluated alternatives in nested alternatives is limited."""
        schema: dict[str, Any] = {"required": ["none"]}
        for _ in range(30):
            schema = {"anyOf": [schema, schema]} if len(json.dumps(schema)) < 50_000 else schema
        self.patch(schemacompiling, "MAX_ALTERNATIVES", 500)
        crd = with_spec({"type": "object", "x-kubernetes-preserve-unknown-fields": True, **schema})
        created, status = self.client.ask("POST", DEFINITIONS, crd)
        self.assertIn(created, (201, 422), status)
        self.server.settle()
        if created == 201:
            code, status = self.client.ask("POST", KITES, kite(a=1))
            self.assertEqual(code, 422)
            self.assertIn("validating the object against its schema takes too long", status["message"])

    def test_rule_patterns(self) -> None:
        """Patterns take time in proportion to the length of the value; oversized patterns are rejected."""
        text = {"type": "string", "pattern": "^(a+)+$"}
        self.server.define(self.client, with_spec({"type": "object", "properties": {"a": text}}))
        self.assertEqual(self.client.ask("POST", KITES, kite(a="a" * 50_000 + "!"))[0], 422)
        bomb = {"type": "string", "pattern": "((a{1,100}){1,100}){1,100}"}
        crd = with_spec({"type": "object", "properties": {"a": bomb}})
        self.assertIn("pattern", self.refused(crd, 422))


class DamagedTests(SynchronousTestCase):
    """Damaged definitions in the store."""

    def test_rule_damaged_definitions(self) -> None:
        """For any stored definition, all further ones are served, and OpenAPI describes them."""
        log_events: list[Any] = []
        globalLogPublisher.addObserver(log_events.append)
        self.addCleanup(globalLogPublisher.removeObserver, log_events.append)
        server = CustomServer()
        client = server.client()
        good = server.define(client, definition())
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}

        def broken(name: str, **changes: Any) -> dict[str, Any]:
            return {**good, **head, "metadata": {**good["metadata"], "name": name, "uid": name}, **changes}

        odd = json.loads(json.dumps(good["spec"]).replace("kite", "swan").replace("Kite", "Swan"))
        status = json.loads(json.dumps(good["status"]).replace("kite", "swan").replace("Kite", "Swan"))
        odd["versions"][0]["schema"]["openAPIV3Schema"] = {
            "type": "object",
            "properties": {"spec": {"properties": [5]}},
        }
        values = {
            "text.example.com": b"not JSON",
            "list.example.com": b"[]",
            "bare.example.com": json.dumps({**head, "metadata": {"name": "bare.example.com"}}).encode(),
            "spec.example.com": json.dumps(broken("spec.example.com", spec=7)).encode(),
            "names.example.com": json.dumps(broken("names.example.com", spec={"group": "example.com"})).encode(),
            "swans.example.com": json.dumps(broken("swans.example.com", spec=odd, status=status)).encode(),
        }
        for name, value in values.items():
            self.successResultOf(server.backend.commit([Write(PREFIX + name, value, 0)]))
        server.settle()
        # And once more, as at a start.
        store = server.stores.get("apiextensions.k8s.io", "customresourcedefinitions")
        store.cache.stop()
        store.cache._stopped = False
        self.successResultOf(Deferred.fromCoroutine(store.cache.start()))
        controller = CRDController(store, server.custom, server.clock)
        controller.start()
        self.addCleanup(controller.stop)
        server.settle()
        self.assertEqual(client.ask("POST", KITES, kite(tail=1))[0], 201)
        code, listed = client.ask("GET", DEFINITIONS)
        self.assertEqual(code, 200)
        names = [item["metadata"]["name"] for item in listed["items"]]
        self.assertEqual(set(names), {"kites.example.com", *values})
        for name in ("text.example.com", "list.example.com"):
            code, answer = client.ask("DELETE", f"{DEFINITIONS}/{name}")
            self.assertEqual(code, 200, answer)
        builder = Builder(definitions(), "1.36")
        served_resources = server.custom.served_resources
        snapshot = [(one, tuple(served_resources.resources(one))) for one in served_resources.group_versions()]
        for document in (builder.v2(snapshot), builder.v3(snapshot, {})["apis/example.com/v1"][1]):
            paths = json.loads(document.decompress())["paths"]
            self.assertIn("/apis/example.com/v1/namespaces/{namespace}/kites", paths)
        self.assertTrue(
            [entry for entry in log_events if entry.get("log_level") in (LogLevel.error, LogLevel.critical)]
        )
        self.flushLoggedErrors()

    def test_failed_deletion(self) -> None:
        """A definition whose objects cannot be deleted has a condition, and is deleted when they can be."""
        server = CustomServer()
        client = server.client()
        server.define(client, definition())
        self.assertEqual(client.ask("POST", KITES, kite(tail=1))[0], 201)
        served = server.custom.served("kites.example.com")
        assert served is not None
        refusals = [APIStatusError.internal("not now")]
        delete_collection = served.main.delete_collection

        async def refuse(*arguments: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return await delete_collection(*arguments)

        self.patch(served.main, "delete_collection", refuse)
        self.assertEqual(client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")[0], 200)
        server.settle()
        found = client.ask("GET", f"{DEFINITIONS}/kites.example.com")[1]
        (condition,) = (one for one in found["status"]["conditions"] if one["type"] == "Terminating")
        self.assertEqual((condition["status"], condition["reason"]), ("True", "InstanceDeletionFailed"))
        self.assertIn("could not issue all deletes: ", condition["message"])
        server.clock.advance(RETRY_INITIAL)
        server.settle()
        self.assertEqual(client.ask("GET", f"{DEFINITIONS}/kites.example.com")[0], 404)

    def test_not_structural(self) -> None:
        """The status of an old definition with a non-structural schema has a condition."""
        server = CustomServer()
        client = server.client()
        good = server.define(client, definition())
        name = "owls.example.com"
        old = json.loads(json.dumps(good).replace("kite", "owl").replace("Kite", "Owl"))
        old["metadata"]["uid"] = "owls"
        old["metadata"].pop("resourceVersion")
        spec = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["tail"].pop("type")
        old["spec"]["preserveUnknownFields"] = True
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        self.successResultOf(server.backend.commit([Write(PREFIX + name, json.dumps({**head, **old}).encode(), 0)]))
        server.settle()
        code, found = client.ask("GET", f"{DEFINITIONS}/{name}")
        self.assertEqual(code, 200)
        (condition,) = (one for one in found["status"]["conditions"] if one["type"] == "NonStructuralSchema")
        self.assertEqual((condition["status"], condition["reason"]), ("True", "Violations"))
        self.assertEqual(
            condition["message"],
            "[spec.preserveUnknownFields: Invalid value: true: must be false,"
            " spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[tail].type: Required value: must not"
            " be empty for specified object fields]",
        )
        found["spec"]["preserveUnknownFields"] = False
        found["spec"]["versions"][0]["schema"] = good["spec"]["versions"][0]["schema"]
        code, answer = client.ask("PUT", f"{DEFINITIONS}/{name}", found)
        self.assertEqual(code, 200, answer)
        server.settle()
        found = client.ask("GET", f"{DEFINITIONS}/{name}")[1]
        self.assertNotIn("NonStructuralSchema", [one["type"] for one in found["status"]["conditions"]])
