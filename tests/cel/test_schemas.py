"""Tests for L{kubetwist.cel.schemas}, C{schemavalues} and C{names}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies

from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CompileErrors, EvaluationError
from kubetwist.cel.estimates import Estimate
from kubetwist.cel.names import escape, unescape
from kubetwist.cel.schemas import Declaration, declare
from kubetwist.cel.values import Duration, Timestamp

from .support import CelTestCase

STRING = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["count"],
            "properties": {
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "name": {"type": "string", "maxLength": 10},
                "phase": {"type": "string", "enum": ["On", "Off"]},
                "when": {"type": "string", "format": "date-time"},
                "day": {"type": "string", "format": "date"},
                "lasts": {"type": "string", "format": "duration"},
                "data": {"type": "string", "format": "byte"},
                "port": {"x-kubernetes-int-or-string": True},
                "foo-bar": STRING,
                "namespace": STRING,
                "1st": STRING,
                "note": {"type": "string", "nullable": True},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
                "rules": {
                    "type": "array",
                    "maxItems": 4,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "properties": {"key": STRING, "ratio": {"type": "number"}},
                    },
                },
                "limits": {"type": "object", "additionalProperties": {"type": "number"}},
                "labels": {"type": "object", "maxProperties": 3, "additionalProperties": STRING},
                "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
                "blob": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "template": {"type": "object", "x-kubernetes-embedded-resource": True},
            },
        }
    },
}
OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "thing"},
    "spec": {
        "count": 3,
        "ratio": 2,
        "name": "abc",
        "phase": "On",
        "when": "2024-01-02T03:04:05.5Z",
        "day": "2024-01-02",
        "lasts": "1h",
        "data": "aGk=",
        "port": "80%",
        "foo-bar": "dashed",
        "namespace": "ns",
        "note": None,
        "tags": ["a", "b"],
        "rules": [{"key": "x", "ratio": 1}, {"key": "y", "ratio": 2.5}],
        "limits": {"cpu": 2},
        "labels": {"l": "v"},
        "times": ["2024-01-01T00:00:00Z", "2023-01-01T00:00:00+02:00"],
        "blob": {"hidden": 1},
        "anything": {"x": 1},
        "template": {"kind": "Pod", "metadata": {"name": "pod"}},
    },
}


def declared(schema: dict[str, Any], **options: Any) -> Declaration:
    """The declaration of a schema that has one."""
    found = declare(schema, "self", **options)
    assert found is not None
    return found


DECLARATION = declared(SCHEMA, resource_root=True)


class SchemaTestCase(CelTestCase):
    """Expressions over an object with a schema."""

    environment = Environment({"self": DECLARATION.type})

    def evaluate(self, text: str, **values: Any) -> Any:
        """The value of an expression over the object."""
        return self.compile(text).evaluate({"self": DECLARATION.value(values.get("raw", OBJECT))})[0]


class TypeTests(SchemaTestCase):
    """What can be named, and its types."""

    def test_types(self) -> None:
        """Types and formats of the schema become types of CEL."""
        for field, shown in {
            "count": "int",
            "ratio": "double",
            "name": "string",
            "when": "google.protobuf.Timestamp",
            "day": "google.protobuf.Timestamp",
            "lasts": "google.protobuf.Duration",
            "data": "bytes",
            "port": "dyn",
            "tags": "list(string)",
            "rules": "list(self.spec.rules.@idx)",
            "limits": "map(string, double)",
            "blob": "self.spec.blob",
        }.items():
            self.assertEqual(str(self.compile(f"self.spec.{field}").output_type), shown, field)

    def test_unseen(self) -> None:
        """What the schema does not describe cannot be named."""
        for text in ("self.spec.anything", "self.spec.blob.hidden", "self.metadata.labels", "self.spec.nosuch"):
            error = self.assertRaises(CompileErrors, self.compile, text)
            self.assertIn("undefined field", str(error))
        self.assertIsNone(declare({"x-kubernetes-preserve-unknown-fields": True}, "self"))
        self.assertIsNone(declare({"type": "array", "items": {}}, "self"))

    def test_resources(self) -> None:
        """The kind, version and names of a resource can be read, of an embedded one, too."""
        self.assertValues(
            {
                "self.kind + self.apiVersion + self.metadata.name": "Thingv1thing",
                "self.spec.template.kind + self.spec.template.metadata.name": "Podpod",
                "has(self.metadata.generateName)": False,
            }
        )

    def test_references(self) -> None:
        """References are followed; a schema that contains itself ends in an object without fields."""
        schemas: dict[str, Any] = {
            "#/Node": {
                "type": "object",
                "properties": {"name": STRING, "next": {"allOf": [{"$ref": "#/Node"}]}},
            }
        }
        declaration = declared(
            {"type": "object", "properties": {"head": {"$ref": "#/Node"}, "lost": {"$ref": "#/Lost"}}},
            resolve=schemas.get,
        )
        environment = Environment({"self": declaration.type})
        self.assertEqual(str(environment.compile("self.head.name").output_type), "string")
        self.assertRaises(CompileErrors, environment.compile, "self.head.next.name")
        self.assertRaises(CompileErrors, environment.compile, "self.lost")


class ValueTests(SchemaTestCase):
    """How values are seen."""

    def test_conversions(self) -> None:
        """Values are of the types that their formats say."""
        self.assertValues(
            {
                "self.spec.ratio": 2.0,
                "self.spec.ratio == 2.0 && type(self.spec.ratio) == double": True,
                "self.spec.when": Timestamp(1704164645_500000000),
                "self.spec.day.getDate()": 2,
                "self.spec.lasts": Duration(3600_000000000),
                "self.spec.data": b"hi",
                "type(self.spec.port) == string": True,
                "self.spec.limits['cpu']": 2.0,
                "self.spec.limits.all(k, self.spec.limits[k] == 2.0)": True,
                "self.spec.times.all(t, t.getFullYear() < 2025)": True,
                "self.spec.times.map(t, t.getFullYear())": [2024, 2022],
                "self.spec.times[0] in self.spec.times": True,
                "self.spec.rules.map(r, r.ratio)": [1.0, 2.5],
                "dyn(self.spec).ratio": 2.0,
            }
        )

    def test_names(self) -> None:
        """Properties whose names are no identifiers are known by others."""
        self.assertValues(
            {
                "self.spec.foo__dash__bar": "dashed",
                "self.spec.__namespace__ + self.spec.namespace": "nsns",
                "has(self.spec.foo__dash__bar)": True,
            }
        )

    def test_null(self) -> None:
        """A property that is null is not there."""
        self.assertValues({"has(self.spec.note)": False, "has(self.spec.name)": True})
        error = self.assertRaises(EvaluationError, self.evaluate, "self.spec.note == 'x'")
        self.assertEqual(error.message, "no such key: note")

    def test_sets(self) -> None:
        """A set equals others in any order, if it stands first, and no element is added to it twice."""
        self.assertValues(
            {
                "self.spec.tags == ['b', 'a']": True,
                "['b', 'a'] == self.spec.tags": False,
                "self.spec.tags == ['b', 'c']": False,
                "self.spec.tags + ['c', 'a'] == ['c', 'b', 'a']": True,
                "(self.spec.tags + ['c', 'a']).size()": 3,
            }
        )

    def test_map_lists(self) -> None:
        """Lists of type map are equal in any order; what is added takes the place of what has its keys."""
        self.assertValues(
            {
                "self.spec.rules == [self.spec.rules[1], self.spec.rules[0]]": True,
                "self.spec.rules == [self.spec.rules[0]]": False,
                "self.spec.rules == self.spec.rules.map(r, r)": True,
                "(self.spec.rules + [self.spec.rules[0]]).size()": 2,
            }
        )

    def test_nothing_to_convert(self) -> None:
        """An object of which nothing is to be converted is passed on as it is."""
        declaration = declared(
            {"type": "object", "properties": {"a": STRING, "l": {"type": "array", "items": {"type": "integer"}}}}
        )
        raw = {"a": "x", "l": [1]}
        self.assertIs(declaration.value(raw), raw)
        self.assertIsNone(declaration.convert)

    def test_bad_values(self) -> None:
        """A value that is not what its schema says is an error where it is read, and only there."""
        raw: dict[str, Any] = {"spec": {**OBJECT["spec"], "when": "soon", "lasts": 5, "limits": [], "data": "!"}}
        program = self.compile("self.spec.count")
        self.assertEqual(program.evaluate({"self": DECLARATION.value(raw)})[0], 3)
        for text, message in {
            "self.spec.when": "Invalid date-time formatted string soon",
            "self.spec.lasts": "invalid data, expected string, got int64",
            "self.spec.limits": "invalid data, expected a map for the provided schema with type=object",
            "self.spec.data": "Invalid byte formatted string !",
        }.items():
            error = self.assertRaises(EvaluationError, self.evaluate, f"{text} == {text}", raw=raw)
            self.assertIn(message, error.message)


class SizeTests(SchemaTestCase):
    """What estimates learn from a schema."""

    def test_sizes(self) -> None:
        """Limits of the schema count; without them, what fits into a request."""
        spec = DECLARATION.at(("spec",))
        assert spec is not None and spec.fields is not None
        request = 3 * 1024 * 1024
        for field, most in {
            "name": 40,
            "phase": 3,
            "__namespace__": request - 2,
            "when": 32,
            "day": 12,
            "lasts": 32,
            "rules": 4,
            "labels": 3,
            "tags": (request - 2) // 3,
            "limits": (request - 2) // 7,
            "port": request - 2,
            "count": 0,
        }.items():
            self.assertEqual(spec.fields[field].max_elements, most, field)
        self.assertEqual(spec.min_size, 2 + len("count") + 1 + 4)

    def test_paths(self) -> None:
        """Sizes are found by the paths that estimates ask for."""
        for path, size in {
            ("self", "spec", "rules"): Estimate(0, 4),
            ("self", "spec", "rules", "@items", "key"): Estimate(0, 3 * 1024 * 1024 - 2),
            ("self", "spec", "labels", "@keys"): Estimate(0, 0),
            ("self", "spec", "count"): Estimate(0, 0),
            ("self", "nosuch"): None,
        }.items():
            self.assertEqual(DECLARATION.size_of(path, DECLARATION.type), size, path)

    def test_estimates(self) -> None:
        """So the cost of a rule is bounded by the limits in the schema."""
        program = self.compile("self.spec.rules.all(r, r.ratio > 0.5)")
        self.assertEqual(program.estimated_cost(DECLARATION.size_of), Estimate(4, 28))


class NameTests(CelTestCase):
    """Names of properties and identifiers."""

    def test_examples(self) -> None:
        """Characters that no identifier has are spelled out; key words are marked."""
        for name, identifier in {
            "plain_1": "plain_1",
            "a-b": "a__dash__b",
            "a.b/c": "a__dot__b__slash__c",
            "a__b": "a__underscores__b",
            "namespace": "__namespace__",
            "inner": "inner",
        }.items():
            self.assertEqual((escape(name), unescape(identifier)), (identifier, name))
        for name in ("1a", "a b", "é", "$", ""):
            self.assertIsNone(escape(name), name)
        for identifier in ("__nothing__", "a__in__", "x__dot__y__zzz__"):
            self.assertIsNone(unescape(identifier), identifier)

    @given(strategies.text("ab_-./1", min_size=1, max_size=8))
    def test_back_and_forth(self, name: str) -> None:
        """What an identifier is made of can be told from it."""
        identifier = escape(name)
        if identifier is not None and "___" not in name:
            self.assertEqual(unescape(identifier), name)
