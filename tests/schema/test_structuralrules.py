"""Tests for L{kubetwist.schema.structuralrules}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.structuralrules import unsupported, validate_structural
from tests.schema.structures import TEXT


class StructuralTests(SynchronousTestCase):
    """Tests for L{validate_structural} and L{unsupported}."""

    def fields(self, schema: dict[str, Any]) -> list[str]:
        """Return the paths at which a schema is not structural."""
        return [cause.field for cause in validate_structural(schema, "s")]

    def test_types(self) -> None:
        """Every value needs a type, unless it may have any type."""
        schema = {"type": "object", "properties": {"a": {}, "b": {"x-kubernetes-preserve-unknown-fields": True}}}
        self.assertEqual(self.fields(schema), ["s.properties[a].type"])

    def test_combinations(self) -> None:
        """Logical junctors must not contain types, and constrain only fields of the structure."""
        inner = {"anyOf": [{"properties": {"b": {"type": "string"}}}]}
        schema = {"type": "object", "properties": {"a": {"type": "object", **inner}}}
        self.assertEqual(self.fields(schema), ["s.properties[a].anyOf[0].properties[b].type"])
        self.assertEqual(
            self.fields({"type": "object", "anyOf": [{"required": ["b"]}, {"properties": {"b": {}}}]}),
            ["s.properties[b]"],
        )

    def test_int_or_string(self) -> None:
        """An int-or-string value may spell out its alternatives."""
        both = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        for spelled in (both, {"allOf": [both]}):
            part = {"x-kubernetes-int-or-string": True, **spelled}
            self.assertEqual(self.fields({"type": "object", "properties": {"a": part}}), [])

    def test_pattern(self) -> None:
        """A pattern that cannot be compiled is an error with Go's message."""
        part = {"type": "string", "pattern": "[a-"}
        (cause,) = validate_structural({"type": "object", "properties": {"a": part}}, "s")
        self.assertIn("isn't: error parsing regexp: missing closing ]: `[a-`", cause.message)

    def test_unsupported(self) -> None:
        """References and definitions at any depth are rejected."""
        self.assertIn("$ref", unsupported({"properties": {"a": {"items": {"$ref": "#/x"}}}}))
        self.assertEqual(unsupported({"properties": {"a": {"items": TEXT}}}), "")
