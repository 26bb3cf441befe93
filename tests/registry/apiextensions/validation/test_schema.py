"""Tests for L{kubetwist.registry.apiextensions.validation.schema}."""

from __future__ import annotations

from typing import Any

from kubetwist.registry.apiextensions.validation.definition import schema_warnings
from kubetwist.registry.apiextensions.validation.schema import MAX_SUBSCHEMAS
from tests.registry.apiextensions.validation.definitioncase import TEXT, DefinitionTestCase
from tests.resources.customserver import definition


class SchemaTests(DefinitionTestCase):
    """Tests for schemas and defaults."""

    def schema(self, **properties: Any) -> list[tuple[str, str]]:
        """Return the errors of a schema with these properties."""
        errors = self.errors(definition({"type": "object", "properties": properties}))
        return [(field.removeprefix("spec.validation.openAPIV3Schema."), text) for field, text in errors]

    def test_forbidden(self) -> None:
        """uniqueItems, which takes quadratic time, and references are not supported."""
        result = self.schema(
            a={"type": "array", "items": TEXT, "uniqueItems": True}, b={"type": "string", "$ref": "#/x"}
        )
        self.assertEqual([field for field, _ in result], ["properties[a].uniqueItems", "properties[b].$ref"])

    def test_lists(self) -> None:
        """The keys of a list map are existing scalar fields."""
        items = {"type": "object", "properties": {"k": TEXT}}
        part = {
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "x"],
        }
        fields = [field for field, _ in self.schema(l=part)]
        self.assertEqual(
            fields, ["properties[l].x-kubernetes-list-map-keys", "properties[l].items.properties[k].default"]
        )

    def test_defaults(self) -> None:
        """Defaults are valid, have no unknown fields, and are validated without nested defaults."""
        inner = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
        result = self.schema(
            n={"type": "integer", "default": "x"},
            o={**inner, "default": {"a": "x", "b": 1}},
            p={**inner, "default": {}},
        )
        self.assertEqual(
            result,
            [
                (
                    "properties[n].default",
                    'Invalid value: "string":  in body must be of type integer: "string"',
                ),
                ("properties[o].default", 'Invalid value: {"a":"x","b":1}: must not have unknown fields'),
                ("properties[p].default.a", "Required value"),
            ],
        )

    def test_metadata_in_defaults(self) -> None:
        """Unknown metadata of embedded resources is removed from valid defaults."""
        resource = {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        }
        value = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "junk": 1}, "more": 1}
        crd = self.made(
            definition(
                {
                    "type": "object",
                    "properties": {
                        "one": {**resource, "default": value},
                        "list": {"type": "array", "items": resource, "default": [value]},
                    },
                }
            )
        )
        self.assertEqual(self.strategy.validate(crd), [])
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        expected = {**value, "metadata": {"name": "n"}}
        self.assertEqual(properties["one"]["default"], expected)
        self.assertEqual(properties["list"]["default"], [expected])
        result = self.schema(one={**resource, "default": {**value, "metadata": {"labels": {"a": 1}}}})
        self.assertEqual([field for field, _ in result], ["properties[one].default"])

    def test_too_many_parts(self) -> None:
        """A schema with too many subschemas is rejected before further processing."""
        parts = {f"p{number}": TEXT for number in range(MAX_SUBSCHEMAS)}
        ((_, text),) = self.errors(definition({"type": "object", "properties": parts}))
        self.assertIn("must have at most", text)

    def test_warnings(self) -> None:
        """Unrecognized formats give warnings."""
        crd = definition({"type": "object", "properties": {"a": {"type": "string", "format": "made-up"}}})
        self.assertEqual(schema_warnings(crd), ['unrecognized format "made-up"'])
