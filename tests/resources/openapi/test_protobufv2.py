"""Tests for L{kubetwist.resources.openapi.protobufv2}."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.openapi.protobufv2 import encode_v2

VENDOR = 31

POD = {
    "description": "A pod, \N{SNOWMAN} and all.",
    "type": "object",
    "required": ["name", "count"],
    "properties": {
        "name": {"type": "string", "pattern": "^x", "maxLength": 300, "default": ""},
        "count": {"type": "integer", "format": "int32", "minimum": -1.5, "exclusiveMinimum": True, "maximum": 0},
        "x-ray": {"$ref": "#/definitions/Spec", "description": "Inside."},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"additionalProperties": True},
        "closed": {"additionalProperties": False},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", 1]}, "uniqueItems": True},
        "both": {"type": ["string", "integer"], "allOf": [{"minLength": 1}, {"title": "T"}]},
    },
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
    "x-kubernetes-list-type": "set",
}


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Return the numbers and values of the fields of a message: integers, eight bytes, or bytes with a length."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            octet = data[position]
            position += 1
            value |= (octet & 127) << shift
            shift += 7
            if octet < 128:
                return value

    while position < len(data):
        number, wire_type = divmod(varint(), 8)
        if wire_type == 0:
            yield number, varint()
        elif wire_type == 1:
            position += 8
            yield number, struct.unpack("<d", data[position - 8 : position])[0]
        else:
            assert wire_type == 2, wire_type
            size = varint()
            assert position + size <= len(data)
            position += size
            yield number, data[position - size : position]


def every(data: bytes, *numbers: int) -> list[Any]:
    """Return all values at a path of field numbers."""
    found: list[Any] = [data]
    for expected in numbers:
        found = [value for one in found for number, value in fields(one) if number == expected]
    return found


def one(data: bytes, *numbers: int) -> Any:
    """Return the only value at a path of field numbers."""
    (found,) = every(data, *numbers)
    return found


def pairs(entries: list[bytes]) -> dict[str, bytes]:
    """Return pairs of a name and a value as a mapping; an empty value may be left out."""
    return {one(entry, 1).decode(): b"".join(every(entry, 2)) for entry in entries}


def anything(data: bytes) -> Any:
    """Return the value of an C{Any} from its YAML."""
    return yaml.safe_load(one(data, 2).decode())


def extensions(data: bytes, number: int) -> dict[str, Any]:
    """Return the extensions of a message, in its field C{number}."""
    return {name: anything(value) for name, value in pairs(every(data, number)).items()}


class SchemaTests(SynchronousTestCase):
    """Definitions encoded by L{encode_v2}."""

    def setUp(self) -> None:
        """Encode a definition."""
        self.definitions = pairs(every(encode_v2({"definitions": {"Pod": POD, "Empty": {}}}), 9, 1))
        self.pod = self.definitions["Pod"]
        self.properties = pairs(every(self.pod, 25, 1))

    def test_definitions(self) -> None:
        """Definitions keep their names and their order, also empty ones."""
        self.assertEqual(list(self.definitions), ["Pod", "Empty"])
        self.assertEqual(self.definitions["Empty"], b"")

    def test_schema(self) -> None:
        """A schema has its description, type, required fields, and properties."""
        self.assertEqual(one(self.pod, 4).decode(), POD["description"])
        self.assertEqual(one(self.pod, 22, 1), b"object")
        self.assertEqual(every(self.pod, 19), [b"name", b"count"])
        self.assertEqual(list(self.properties), list(POD["properties"]))

    def test_extensions(self) -> None:
        """Extensions are encoded as YAML; properties with such names are not extensions."""
        self.assertEqual(
            extensions(self.pod, VENDOR), {name: value for name, value in POD.items() if name.startswith("x-")}
        )
        self.assertEqual(one(self.properties["x-ray"], 1), b"#/definitions/Spec")
        self.assertEqual(one(self.properties["x-ray"], 4), b"Inside.")

    def test_limits(self) -> None:
        """Limits are numbers, booleans and strings; values equal to the protobuf default are left out."""
        count, name = self.properties["count"], self.properties["name"]
        self.assertEqual(
            dict(fields(count)), {22: b"\n\x07integer", 2: b"int32", 9: -1.5, 10: 1}, "a maximum of 0 is not written"
        )
        self.assertEqual((one(name, 11), one(name, 13)), (300, b"^x"))
        self.assertEqual(anything(one(name, 5)), "")
        self.assertEqual(one(self.properties["tags"], 16), 1)

    def test_inner_schemas(self) -> None:
        """Schemas of items, of additional properties and of allOf are schemas."""
        tags = one(self.properties["tags"], 23, 1)
        self.assertEqual(one(tags, 22, 1), b"string")
        self.assertEqual([anything(value) for value in every(tags, 20)], ["a", 1])
        self.assertEqual(one(self.properties["labels"], 21, 1, 22, 1), b"string")
        self.assertEqual(one(self.properties["open"], 21, 2), 1)
        self.assertEqual(one(self.properties["closed"], 21, 2), 0)
        self.assertEqual(every(self.properties["both"], 22, 1), [b"string", b"integer"])
        first, second = every(self.properties["both"], 24)
        self.assertEqual((one(first, 12), one(second, 3)), (1, b"T"))

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**53), 2**53)
            | st.text(st.characters(exclude_categories=["Cs"])),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc:- #", max_size=5), inner),
            max_leaves=8,
        )
    )
    @settings(max_examples=100, deadline=None)
    def test_any_value(self, value: Any) -> None:
        """Any value of an extension can be decoded from its YAML."""
        encoded = encode_v2({"x-any": value})
        self.assertEqual(extensions(encoded, 16), {"x-any": value})


class OperationTests(SynchronousTestCase):
    """Documents and operations encoded by L{encode_v2}."""

    def test_document(self) -> None:
        """A document has its version, info and security definitions."""
        encoded = encode_v2(
            {
                "swagger": "2.0",
                "info": {"title": "Kubernetes", "version": "v1.36"},
                "securityDefinitions": {
                    "Token": {"type": "apiKey", "name": "authorization", "in": "header", "description": "A token."},
                    "Password": {"type": "basic"},
                },
                "security": [{"Token": []}],
            }
        )
        self.assertEqual((one(encoded, 1), one(encoded, 2, 1), one(encoded, 2, 2)), (b"2.0", b"Kubernetes", b"v1.36"))
        known = pairs(every(encoded, 13, 1))
        self.assertEqual(
            dict(fields(one(known["Token"], 2))),
            dict(enumerate([b"apiKey", b"authorization", b"header", b"A token."], 1)),
        )
        self.assertEqual(one(known["Password"], 1, 1), b"basic")
        self.assertEqual(pairs(every(encoded, 12, 1)), {"Token": b""})

    def test_operation(self) -> None:
        """Operations are in the field of their method, with their parameters, responses and extensions."""
        operation = {
            "tags": ["core_v1"],
            "description": "replace",
            "operationId": "replaceIt",
            "produces": ["a/b", "a/c"],
            "consumes": ["*/*"],
            "schemes": ["https"],
            "parameters": [
                {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pod"}},
                {"$ref": "#/parameters/pretty-1"},
            ],
            "responses": {
                "200": {"description": "OK", "schema": {"$ref": "#/definitions/Pod"}},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": "put",
        }
        document = {"paths": {"/api/v1/": {"put": operation, "parameters": [{"$ref": "#/parameters/name-2"}]}}}
        paths = pairs(every(encode_v2(document), 8, 2))
        self.assertEqual(list(paths), ["/api/v1/"])
        item = paths["/api/v1/"]
        self.assertEqual([number for number, _ in fields(item)], [3, 9])
        self.assertEqual(one(item, 9, 2, 1), b"#/parameters/name-2")
        put = one(item, 3)
        self.assertEqual(
            [every(put, number) for number in (1, 3, 5, 6, 7, 10)],
            [[b"core_v1"], [b"replace"], [b"replaceIt"], [b"a/b", b"a/c"], [b"*/*"], [b"https"]],
        )
        body, shared = every(put, 8)
        self.assertEqual(one(shared, 2, 1), b"#/parameters/pretty-1")
        self.assertEqual(one(body, 1, 1, 2), b"body")
        self.assertEqual(one(body, 1, 1, 4), 1)
        self.assertEqual(one(body, 1, 1, 5, 1), b"#/definitions/Pod")
        responses = pairs(every(put, 9, 1))
        self.assertEqual(list(responses), ["200", "401"])
        self.assertEqual(one(responses["200"], 1, 2, 1, 1), b"#/definitions/Pod")
        self.assertEqual(one(responses["401"], 1, 1), b"Unauthorized")
        self.assertEqual(extensions(put, 13), {"x-kubernetes-action": "put"})

    def test_parameters(self) -> None:
        """Parameters have a separate message for each location, with the same fields under different numbers."""
        common = {"name": "n", "description": "d", "type": "string", "required": True, "uniqueItems": True}
        places = {place: {**common, "in": place, "x-a": 1} for place in ("header", "formData", "query", "path")}
        shared = pairs(every(encode_v2({"parameters": places}), 10, 1))
        for place, member, shift in (("header", 1, 0), ("formData", 2, 1), ("query", 3, 1), ("path", 4, 0)):
            message = one(shared[place], 2, member)
            self.assertEqual(
                {number: value for number, value in fields(message) if number < 22},
                {1: 1, 2: place.encode(), 3: b"d", 4: b"n", 5 + shift: b"string", 19 + shift: 1},
            )
            self.assertEqual(extensions(message, 22 + shift), {"x-a": 1})
