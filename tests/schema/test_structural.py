"""Tests for L{kubetwist.schema.structural}, C{structuralrules}, and L{kubetwist.schema.validation.listrules}."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.schema.mismatch import DecodeError
from kubetwist.schema.structural import OBJECT_META, CustomType
from kubetwist.schema.validation.listrules import (
    validate_embedded_resources,
)
from tests.schema.release import definitions
from tests.schema.structures import TEXT


def custom(properties: dict[str, Any], **more: Any) -> CustomType:
    """Return a kind with some fields."""
    schema = {"type": "object", "properties": properties, **more}
    return CustomType(schema, definitions().struct(OBJECT_META))


def decoded(kind: CustomType, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a decoded object, and the errors about its pruned fields."""
    problems: list[str] = []
    return kind.decode(obj, problems), problems


class GrowthTests(SynchronousTestCase):
    """Tests for the limit on defaults."""

    def nested(self, depth: int, width: int) -> dict[str, Any]:
        """Return a list of empty items, each of which has such a list as default."""
        part: Any = {"type": "object", "properties": {"v": {"type": "string", "default": "x" * 10}}}
        for _ in range(depth):
            many = {"type": "array", "items": part, "default": [{}] * width}
            part = {"type": "object", "properties": {"l": many}}
        properties: dict[str, Any] = part["properties"]
        return properties

    def test_defaults_in_defaults(self) -> None:
        """Nested defaults are limited: objects that exceed the limit are rejected."""
        kind = custom(self.nested(12, 6))
        error = self.assertRaises(APIStatusError, decoded, kind, {"metadata": {"name": "n"}})
        self.assertEqual((error.code, error.reason), (413, "RequestEntityTooLarge"))
        self.assertEqual(decoded(kind, {"l": []}), ({"l": []}, []))
        self.assertEqual(len(decoded(custom(self.nested(3, 6)), {})[0]["l"]), 6)

    def test_many_defaults(self) -> None:
        """A small object with many items and large defaults is rejected, too."""
        inner = {"type": "object", "default": {"t": "x" * 10_000}, "properties": {"t": TEXT}}
        part = {"type": "object", "properties": {"a": inner}}
        kind = custom({"l": {"type": "array", "items": part}})
        self.assertEqual(len(decoded(kind, {"l": [{}] * 100})[0]["l"]), 100)
        self.assertEqual(self.assertRaises(APIStatusError, decoded, kind, {"l": [{}] * 1000}).code, 413)


class PruningTests(SynchronousTestCase):
    """Tests for pruning."""

    def test_paths(self) -> None:
        """Unknown fields are pruned and reported: first in the metadata, then the rest by path."""
        kind = custom(
            {
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": TEXT}}},
            }
        )
        obj = {"z": 1, "metadata": {"name": "n", "junk": 1}, "list": [{"a": "x", "b": 1}], "map": {"k": {"c": 1}}}
        result, problems = decoded(kind, obj)
        self.assertEqual(result, {"metadata": {"name": "n"}, "list": [{"a": "x"}], "map": {"k": {}}})
        names = [text.removeprefix("unknown field ").strip('"') for text in problems]
        self.assertEqual(names, ["metadata.junk", "list[0].b", "map.k.c", "z"])

    def test_preserved(self) -> None:
        """If unknown fields are preserved, known fields are still pruned."""
        strict = {"type": "object", "properties": {"a": TEXT}}
        kind = custom(
            {"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"strict": strict}}}
        )
        result, problems = decoded(kind, {"free": {"any": {"x": [None]}, "strict": {"b": 1}}})
        self.assertEqual(result, {"free": {"any": {"x": [None]}, "strict": {}}})
        self.assertEqual(problems, ['unknown field "free.strict.b"'])

    def test_open_and_closed(self) -> None:
        """Additional properties without a schema are kept, but their fields are pruned."""
        kind = custom({"open": {"type": "object", "additionalProperties": True}})
        self.assertEqual(decoded(kind, {"open": {"x": {"y": 1}}}), ({"open": {"x": {}}}, ['unknown field "open.x.y"']))

    @settings(max_examples=100, deadline=None)
    @given(
        st.recursive(
            st.one_of(st.none(), st.integers(0, 3), st.text("ab", max_size=2)),
            lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner)),
            max_leaves=8,
        )
    )
    def test_idempotent(self, value: Any) -> None:
        """Decoding a decoded object changes nothing, and decoding does not modify its input."""
        part: dict[str, Any] = {
            "type": "object",
            "properties": {"a": TEXT, "b": {"type": "array", "items": {"type": "object", "properties": {"c": TEXT}}}},
        }
        kind = custom({"a": part, "b": {"x-kubernetes-preserve-unknown-fields": True}, "c": {**part, "default": {}}})
        obj = {"a": value, "b": value, "c": value, "d": value}
        before = orjson.dumps(obj)
        once, _ = decoded(kind, obj)
        self.assertEqual(orjson.dumps(obj), before)
        self.assertEqual(decoded(kind, once), (once, []))


class DefaultTests(SynchronousTestCase):
    """Tests for defaults and nulls."""

    KIND = custom(
        {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "string", "nullable": True, "default": "y"},
            "c": TEXT,
            "d": {"type": "object", "default": {}, "properties": {"e": {"type": "integer", "default": 1}}},
            "f": {"type": "object", "properties": {"e": {"type": "integer", "default": 1}}},
        }
    )

    def test_filled(self) -> None:
        """Defaults are added to absent fields, also within defaults, but not if the parent is absent."""
        self.assertEqual(self.KIND.decode({}, []), {"a": "x", "b": "y", "d": {"e": 1}})

    def test_nulls(self) -> None:
        """A null is replaced by the default or removed, unless the field is nullable."""
        found = self.KIND.decode({"a": None, "b": None, "c": None, "f": None}, [])
        self.assertEqual(found, {"a": "x", "b": None, "d": {"e": 1}})

    def test_pruned(self) -> None:
        """A converted object loses unknown fields and nulls, but gets no defaults; nulls with a default remain."""
        self.assertEqual(self.KIND.prune({"f": {"x": 1}, "z": 1}), {"f": {}})
        found = self.KIND.prune({"a": None, "b": None, "c": None, "f": {"e": None}})
        self.assertEqual(found, {"a": None, "b": None, "f": {"e": None}})
        many = custom({"m": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}}})
        self.assertEqual(many.prune({"m": {"a": None}}), {"m": {"a": None}})
        self.assertEqual(many.decode({"m": {"a": None}}, []), {"m": {"a": "x"}})

    def test_add_defaults(self) -> None:
        """An applied object gets defaults, and keeps unknown fields and nulls."""
        obj = {"a": None, "b": None, "c": None, "f": {"x": None}, "z": [1.0, None]}
        filled = self.KIND.add_defaults(obj)
        self.assertEqual(
            filled,
            {"a": "x", "b": None, "c": None, "d": {"e": 1}, "f": {"x": None, "e": 1}, "z": [1, None]},
        )
        self.assertIsNot(filled["f"], obj["f"])
        embeds = {"type": "object", "x-kubernetes-embedded-resource": True}
        meta = {"labels": {"a": None}, "name": 5}
        self.assertEqual(
            custom({"e": embeds}).add_defaults({"e": {"metadata": meta}}), {"e": {"metadata": {"labels": {"a": ""}}}}
        )
        items = custom({"l": {"type": "array", "items": {"type": "string", "default": "x"}}})
        self.assertEqual(items.add_defaults({"l": [None, "y"]}), {"l": ["x", "y"]})

    def test_malformed_metadata(self) -> None:
        """Only malformed fields are removed from the metadata of an applied object."""
        meta = {"name": "x", "creationTimestamp": "yesterday", "labels": {"a": None}}
        self.assertEqual(self.KIND.metadata(meta), {"name": "x", "labels": {"a": ""}})

    def test_not_shared(self) -> None:
        """Objects share no mutable defaults."""
        self.KIND.decode({}, [])["d"]["e"] = 2
        self.assertEqual(self.KIND.decode({}, [])["d"], {"e": 1})

    def test_whole_numbers(self) -> None:
        """A whole float is an integer, as Go encodes it."""
        self.assertEqual(repr(custom({"n": {"type": "number"}}).decode({"n": 3.0}, [])["n"]), "3")


class MetadataTests(SynchronousTestCase):
    """Tests for the metadata of objects and of embedded resources."""

    EMBEDS = custom(
        {
            "template": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        }
    )

    def test_malformed_object_metadata(self) -> None:
        """Malformed metadata is rejected with the message of Go's decoder."""
        error = self.assertRaises(DecodeError, custom({}).decode, {"metadata": {"labels": {"x": 5}}}, [])
        self.assertEqual(
            str(error), "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
        )

    def test_embedded(self) -> None:
        """Malformed metadata of an embedded resource is rejected with its path."""
        error = self.assertRaises(DecodeError, self.EMBEDS.decode, {"template": {"metadata": {"name": 5}}}, [])
        self.assertEqual(
            str(error),
            'template.metadata: Invalid value: {"name":5}: '
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
        )
        self.assertEqual(self.EMBEDS.decode({"template": {"metadata": None}}, []), {"template": {"metadata": {}}})
        error = self.assertRaises(DecodeError, self.EMBEDS.decode, {"template": {"kind": 5}}, [])
        self.assertEqual(str(error), "template.kind: Invalid value: 5: must be a string")

    def test_embedded_rules(self) -> None:
        """An embedded resource needs a kind and an apiVersion."""
        fields = [
            cause.field for cause in validate_embedded_resources({"template": {"metadata": {}}}, self.EMBEDS.schema)
        ]
        self.assertEqual(fields, ["template.apiVersion", "template.kind"])
        obj = {"template": {"kind": "a b", "metadata": {"name": "/"}, "apiVersion": "a/b/c"}}
        fields = [cause.field for cause in validate_embedded_resources(obj, self.EMBEDS.schema)]
        self.assertEqual(fields, ["template.kind", "template.metadata.name", "template.apiVersion"])

    def test_order(self) -> None:
        """Metadata is decoded in the order of its keys, which determines the first error or unknown field."""
        meta = {"labels": {"a": 1}, "annotations": "x"}
        for obj in ({"metadata": meta}, {"template": {"metadata": meta}}):
            error = self.assertRaises(DecodeError, self.EMBEDS.decode, obj, [])
            self.assertIn("cannot unmarshal string into Go struct field ObjectMeta.annotations", str(error))
        problems: list[str] = []
        self.EMBEDS.decode({"metadata": {"z": 1, "b": 2}}, problems)
        self.assertEqual(problems, ['unknown field "metadata.b"', 'unknown field "metadata.z"'])
