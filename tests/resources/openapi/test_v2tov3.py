"""Tests for L{kubetwist.resources.openapi.v2tov3}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.openapi.v2tov3 import v3_item, v3_schema


class SchemaTests(SynchronousTestCase):
    """L{v3_schema}."""

    def test_references(self) -> None:
        """References to definitions become references to v3 schemas at any depth; other references do not change."""
        old, new = {"$ref": "#/definitions/a"}, {"$ref": "#/components/schemas/a"}
        for schema, expected in (
            (old, new),
            ({"properties": {"$ref": old}}, {"properties": {"$ref": new}}),
            ({"items": old, "additionalProperties": True}, {"items": new, "additionalProperties": True}),
            ({"items": [old, {}]}, {"items": [new, {}]}),
            ({"anyOf": [old], "not": old}, {"anyOf": [new], "not": new}),
            ({"default": old, "enum": [old]}, {"default": old, "enum": [old]}),
            ({"$ref": "elsewhere"}, {"$ref": "elsewhere"}),
        ):
            self.assertEqual(v3_schema(schema), expected)

    def test_wrapped(self) -> None:
        """A reference with further members is wrapped, as v3 allows none beside a reference."""
        found = v3_schema({"$ref": "#/definitions/a", "description": "d"})
        self.assertEqual(found, {"description": "d", "allOf": [{"$ref": "#/components/schemas/a"}]})


class ItemTests(SynchronousTestCase):
    """L{v3_item}."""

    def test_operation(self) -> None:
        """A body parameter becomes the request body, and media types are moved to the contents."""
        body = {"in": "body", "name": "body", "required": True, "schema": {"type": "object"}}
        item = {
            "post": {
                "operationId": "make",
                "consumes": ["a/b"],
                "produces": ["c/d"],
                "schemes": ["https"],
                "parameters": [body, {"in": "query", "name": "q", "type": "string"}],
                "responses": {"200": {"description": "OK", "schema": {"type": "string"}}, "401": {}},
                "x-more": 1,
            }
        }
        self.assertEqual(
            v3_item(item, {}),
            {
                "post": {
                    "operationId": "make",
                    "x-more": 1,
                    "requestBody": {"content": {"a/b": {"schema": {"type": "object"}}}, "required": True},
                    "parameters": [{"in": "query", "name": "q", "schema": {"type": "string"}}],
                    "responses": {
                        "200": {"description": "OK", "content": {"c/d": {"schema": {"type": "string"}}}},
                        "401": {"description": ""},
                    },
                }
            },
        )

    def test_shared(self) -> None:
        """References to shared parameters are resolved; unresolved ones are left out."""
        uses: list[Any] = [{"$ref": "#/parameters/p"}, {"$ref": "#/parameters/lost"}]
        found = v3_item({"parameters": uses}, {"p": {"in": "path", "name": "n", "type": "string"}})
        self.assertEqual(found, {"parameters": [{"in": "path", "name": "n", "schema": {"type": "string"}}]})
