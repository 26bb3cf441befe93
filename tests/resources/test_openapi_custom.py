"""Tests for L{kubetwist.resources.openapi_custom}: custom resources in OpenAPI documents."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.customresources.definition import CustomDefinition
from kubetwist.resources.openapi_custom import CustomSchemas
from kubetwist.schema.openapi import V2_REFERENCE, V3_REFERENCE
from tests.resources.customserver import definition
from tests.resources.server import definitions

PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}
TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": "string", "nullable": True}


def shown(schema: dict[str, Any], reference: str, **spec: Any) -> dict[str, Any]:
    """What is told of the kind whose schema that is."""
    crd = definition(schema)
    crd["spec"].update(spec)
    crd["metadata"]["uid"] = "u"
    crd["status"] = {"acceptedNames": {"singular": "kite", "listKind": "KiteList", **crd["spec"]["names"]}}
    schemas = CustomSchemas(CustomDefinition(crd, definitions(), lambda crd: None).versions[0])
    found: dict[str, Any] = schemas.definitions(reference)[schemas.names[0]]
    return found


def parts(reference: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """What is told of the fields of a spec."""
    spec = {"type": "object", "properties": properties}
    found = shown({"type": "object", "properties": {"spec": spec}}, reference)
    told: dict[str, Any] = found["properties"]["spec"]["properties"]
    return told


class CustomSchemasTests(SynchronousTestCase):
    """Tests for L{CustomSchemas}."""

    def test_anything(self) -> None:
        """Of a kind that may have any fields OpenAPI 2 tells nothing but that it is an object."""
        schema = {"type": "object", "description": "d", "properties": {"spec": TEXT}}
        for told in (
            shown({**schema, **PRESERVE}, V2_REFERENCE),
            shown(schema, V2_REFERENCE, preserveUnknownFields=True),
        ):
            self.assertEqual(set(told), {"type", "x-kubernetes-group-version-kind"})
        told = shown({**schema, **PRESERVE}, V3_REFERENCE)
        self.assertEqual(set(told["properties"]), {"apiVersion", "kind", "metadata", "spec"})

    def test_any_fields(self) -> None:
        """Fields of which anything may be have no type in OpenAPI 2, and nothing that they are known to have."""
        schema = {"type": "object", "properties": {"a": TEXT}, "required": ["a"], **PRESERVE}
        told = parts(V2_REFERENCE, a=schema, b={"type": "array", "items": TEXT, "nullable": True})
        self.assertEqual(told, {"a": {"required": ["a"], **PRESERVE}, "b": {}})
        self.assertEqual(parts(V3_REFERENCE, a=schema), {"a": schema})

    def test_nulls(self) -> None:
        """What may be null is not required in OpenAPI 2."""
        properties = {"a": TEXT_OR_NULL, "b": TEXT}
        both = {"type": "object", "properties": properties, "required": ["a", "b"]}
        one = {"type": "object", "properties": {"a": TEXT_OR_NULL}, "required": ["a"]}
        values = {"type": "object", "additionalProperties": TEXT, "nullable": True}
        told = parts(V2_REFERENCE, both=both, one=one, values=values)
        self.assertEqual(told["both"], {"type": "object", "properties": {"a": {}, "b": TEXT}, "required": ["b"]})
        self.assertEqual(told["one"], {"type": "object", "properties": {"a": {}}})
        self.assertEqual(told["values"], {"additionalProperties": TEXT})
        self.assertEqual(parts(V3_REFERENCE, both=both)["both"], both)

    def test_embedded(self) -> None:
        """An object within another has its kind and metadata, but in OpenAPI 2 not if it may have any fields."""
        schema = {"type": "object", **EMBEDDED, "properties": {"spec": TEXT}, "required": ["spec", "kind"]}
        for reference in (V2_REFERENCE, V3_REFERENCE):
            told = parts(reference, e=schema)["e"]
            self.assertEqual(told["required"], ["spec", "kind", "apiVersion"])
            self.assertEqual(set(told["properties"]), {"apiVersion", "kind", "metadata", "spec"})
            self.assertIn("Standard object's metadata", told["properties"]["metadata"]["description"])
        anything = {"type": "object", **EMBEDDED, **PRESERVE}
        self.assertEqual(parts(V2_REFERENCE, e=anything)["e"], {**EMBEDDED, **PRESERVE})
        self.assertIn("metadata", parts(V3_REFERENCE, e=anything)["e"]["properties"])
