"""Tests for L{kubetwist.resources.openapi.custom}: custom resources in OpenAPI documents."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.customresources.crd import CustomDefinition
from kubetwist.resources.openapi.builder import Builder
from kubetwist.resources.openapi.custom import CustomSchemas
from kubetwist.resources.openapi.schemas import references
from kubetwist.schema.openapi import V2_REFERENCE, V3_REFERENCE
from tests.resources.customserver import CustomServer, definition
from tests.resources.server import definitions

PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}
TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": "string", "nullable": True}


def shown(schema: dict[str, Any], reference: str, **spec: Any) -> dict[str, Any]:
    """Return the schema in the document of a kind with this schema."""
    crd = definition(schema)
    crd["spec"].update(spec)
    crd["metadata"]["uid"] = "u"
    crd["status"] = {"acceptedNames": {"singular": "kite", "listKind": "KiteList", **crd["spec"]["names"]}}
    schemas = CustomSchemas(CustomDefinition(crd, definitions(), lambda crd: None).versions[0])
    found: dict[str, Any] = schemas.definitions(reference)[schemas.names[0]]
    return found


def parts(reference: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of the fields of a spec."""
    spec = {"type": "object", "properties": properties}
    found = shown({"type": "object", "properties": {"spec": spec}}, reference)
    converted: dict[str, Any] = found["properties"]["spec"]["properties"]
    return converted


class CustomSchemasTests(SynchronousTestCase):
    """Tests for L{CustomSchemas}."""

    def test_anything(self) -> None:
        """A kind that may have any fields is only an object in OpenAPI 2."""
        schema = {"type": "object", "description": "d", "properties": {"spec": TEXT}}
        for converted in (
            shown({**schema, **PRESERVE}, V2_REFERENCE),
            shown(schema, V2_REFERENCE, preserveUnknownFields=True),
        ):
            self.assertEqual(set(converted), {"type", "x-kubernetes-group-version-kind"})
        converted = shown({**schema, **PRESERVE}, V3_REFERENCE)
        self.assertEqual(set(converted["properties"]), {"apiVersion", "kind", "metadata", "spec"})

    def test_any_fields(self) -> None:
        """Fields that preserve unknown fields have neither a type nor properties in OpenAPI 2."""
        schema = {"type": "object", "properties": {"a": TEXT}, "required": ["a"], **PRESERVE}
        converted = parts(V2_REFERENCE, a=schema, b={"type": "array", "items": TEXT, "nullable": True})
        self.assertEqual(converted, {"a": {"required": ["a"], **PRESERVE}, "b": {}})
        self.assertEqual(parts(V3_REFERENCE, a=schema), {"a": schema})

    def test_nulls(self) -> None:
        """Nullable fields are not required in OpenAPI 2."""
        properties = {"a": TEXT_OR_NULL, "b": TEXT}
        both = {"type": "object", "properties": properties, "required": ["a", "b"]}
        one = {"type": "object", "properties": {"a": TEXT_OR_NULL}, "required": ["a"]}
        values = {"type": "object", "additionalProperties": TEXT, "nullable": True}
        converted = parts(V2_REFERENCE, both=both, one=one, values=values)
        self.assertEqual(converted["both"], {"type": "object", "properties": {"a": {}, "b": TEXT}, "required": ["b"]})
        self.assertEqual(converted["one"], {"type": "object", "properties": {"a": {}}})
        self.assertEqual(converted["values"], {"additionalProperties": TEXT})
        self.assertEqual(parts(V3_REFERENCE, both=both)["both"], both)

    def test_embedded(self) -> None:
        """An embedded object has a kind and metadata, except in OpenAPI 2 if it may have any fields."""
        schema = {"type": "object", **EMBEDDED, "properties": {"spec": TEXT}, "required": ["spec", "kind"]}
        for reference in (V2_REFERENCE, V3_REFERENCE):
            converted = parts(reference, e=schema)["e"]
            self.assertEqual(converted["required"], ["spec", "kind", "apiVersion"])
            self.assertEqual(set(converted["properties"]), {"apiVersion", "kind", "metadata", "spec"})
            self.assertIn("Standard object's metadata", converted["properties"]["metadata"]["description"])
        anything = {"type": "object", **EMBEDDED, **PRESERVE}
        self.assertEqual(parts(V2_REFERENCE, e=anything)["e"], {**EMBEDDED, **PRESERVE})
        self.assertIn("metadata", parts(V3_REFERENCE, e=anything)["e"]["properties"])


class DocumentsTests(SynchronousTestCase):
    """Both documents of a server with a custom resource."""

    def setUp(self) -> None:
        """Build the documents of a server with a definition that has both subresources."""
        server = CustomServer()
        subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.tail", "statusReplicasPath": ".status.x"}}
        server.define(server.client(), definition(subresources=subresources))
        served_resources = server.installer.served_resources
        snapshot = [(one, tuple(served_resources.resources(one))) for one in served_resources.group_versions()]
        builder = Builder(definitions(), "1.36")
        self.v2 = json.loads(builder.v2(snapshot).decompress())
        self.v3 = {name: json.loads(packed.decompress()) for name, (_, packed) in builder.v3(snapshot, {}).items()}

    def test_discovery(self) -> None:
        """The discovery documents of custom resources are not described, unlike the documents of built-in resources."""
        described = {path for path in self.v2["paths"] if path.endswith("/")}
        v1 = "/apis/apiextensions.k8s.io/v1/"
        self.assertEqual(described & {v1, "/apis/apiextensions.k8s.io/"}, {v1, "/apis/apiextensions.k8s.io/"})
        self.assertEqual([path for path in described if "example.com" in path], [])
        self.assertIn("apis/apiextensions.k8s.io", self.v3)
        self.assertEqual([name for name in self.v3 if "example.com" in name], ["apis/example.com/v1"])

    def test_kinds(self) -> None:
        """Every operation, also on subresources, has the kind of the custom resource."""
        kind = {"group": "example.com", "version": "v1", "kind": "Kite"}
        item = "/apis/example.com/v1/namespaces/{namespace}/kites/{name}"
        for paths in (self.v2["paths"], self.v3["apis/example.com/v1"]["paths"]):
            for path in (item, f"{item}/status", f"{item}/scale"):
                for method in ("get", "put", "patch"):
                    self.assertEqual(paths[path][method]["x-kubernetes-group-version-kind"], kind)
                described = {one.get("description") for one in paths[path]["parameters"]}
                self.assertIn("name of the Kite", described)

    def test_definitions(self) -> None:
        """Both documents contain all types that they refer to, and no types of versions that are not served."""
        for document, schemas in (
            (self.v2, self.v2["definitions"]),
            (self.v3["apis/example.com/v1"], self.v3["apis/example.com/v1"]["components"]["schemas"]),
        ):
            self.assertEqual([name for name in references(document) if name not in schemas and "-" not in name], [])
            self.assertIn("com.example.v1.KiteList", schemas)
            self.assertIn("io.k8s.api.autoscaling.v1.Scale", schemas)
            self.assertNotIn("io.k8s.api.core.v1.Pod", schemas)
