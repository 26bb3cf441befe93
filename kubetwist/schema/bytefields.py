"""
The fields of built-in types that are C{[]byte} in Go.

JSON has them as base64, CBOR as byte strings. A type is searched for them at its first use; most types have none.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator
from typing import Any

from ..api.jsontypes import JSONObject, JSONValue
from .gofields import json_kind, referenced_definition

#: Wraps the content of such a field.
Wrap = Callable[[bytes], Any]


class ByteFields:
    """Replaces the values of these fields, by definition."""

    def __init__(self, get_schema: Callable[[str], JSONObject]) -> None:
        """
        @param get_schema: Returns the schema of a definition.
        """
        self._get_schema = get_schema
        self._contains: dict[str, bool] = {}
        self._fields: dict[str, list[tuple[str, JSONObject]]] = {}

    def replace(self, definition: str, value: JSONObject, wrap: Wrap) -> JSONObject:
        """
        Replace the values of all fields of bytes in an object, and return it.

        @param definition: The type of the object.
        @param value: The object, which is changed.
        @param wrap: Returns the new value for the content of a field.
        """
        for name, schema in self._fields_of(definition):
            item = value.get(name)
            if item is not None:
                value[name] = self._replaced(schema, item, wrap)
        return value

    def _replaced(self, schema: JSONObject, value: JSONValue, wrap: Wrap) -> JSONValue:
        kind = json_kind(schema)
        if kind == "array" and isinstance(value, list):
            return [self._replaced(schema["items"], item, wrap) for item in value]
        if kind == "object" and isinstance(value, dict):
            part = schema["additionalProperties"]
            return {name: self._replaced(part, item, wrap) for name, item in value.items()}
        if kind == "$ref" and isinstance(value, dict):
            return self.replace(referenced_definition(schema), value, wrap)
        if kind == "string" and isinstance(value, str):
            try:
                return wrap(b64decode(value, validate=True))
            except Error:
                return value
        return value

    def _fields_of(self, definition: str) -> list[tuple[str, JSONObject]]:
        """Return the fields of a type that are bytes, or contain them."""
        fields = self._fields.get(definition)
        if fields is None:
            properties = self._get_schema(definition).get("properties") or {}
            fields = [(name, schema) for name, schema in properties.items() if self._has_bytes(schema)]
            self._fields[definition] = fields
        return fields

    def _has_bytes(self, schema: JSONObject) -> bool:
        leaf = _leaf(schema)
        if json_kind(leaf) != "$ref":
            return leaf.get("format") == "byte"
        root = referenced_definition(leaf)
        found = self._contains.get(root)
        if found is None:
            found = self._contains[root] = any(
                json_kind(part) == "string" and part.get("format") == "byte" for part in self._reachable(root)
            )
        return found

    def _reachable(self, root: str) -> Iterator[JSONObject]:
        """Yield the fields of a type, and of all types that it refers to."""
        seen, pending = {root}, [root]
        while pending:
            for schema in (self._get_schema(pending.pop()).get("properties") or {}).values():
                leaf = _leaf(schema)
                yield leaf
                if json_kind(leaf) == "$ref" and (other := referenced_definition(leaf)) not in seen:
                    seen.add(other)
                    pending.append(other)


def _leaf(schema: JSONObject) -> JSONObject:
    """Return the schema of the items of nested lists and maps."""
    while (kind := json_kind(schema)) in ("array", "object"):
        schema = schema["items" if kind == "array" else "additionalProperties"]
    return schema
