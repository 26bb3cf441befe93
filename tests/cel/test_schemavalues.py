"""Tests for L{kubetwist.cel.schemavalues}."""

from __future__ import annotations

from typing import Any

from kubetwist.cel.errors import EvaluationError
from kubetwist.cel.values import Duration, Timestamp
from tests.cel.schemacase import DECLARATION, OBJECT, STRING, SchemaTestCase, declared


class ValueTests(SchemaTestCase):
    """Tests for the conversion of JSON values."""

    def test_conversions(self) -> None:
        """Values have the types of their formats."""
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
        """Properties whose names are not identifiers are selected by escaped names."""
        self.assertValues(
            {
                "self.spec.foo__dash__bar": "dashed",
                "self.spec.__namespace__ + self.spec.namespace": "nsns",
                "has(self.spec.foo__dash__bar)": True,
            }
        )

    def test_null(self) -> None:
        """A null property counts as absent."""
        self.assertValues({"has(self.spec.note)": False, "has(self.spec.name)": True})
        error = self.assertRaises(EvaluationError, self.evaluate, "self.spec.note == 'x'")
        self.assertEqual(error.message, "no such key: note")

    def test_sets(self) -> None:
        """Equality of sets ignores the order if the set is the left operand, and C{+} adds no element twice."""
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
        """Equality of lists of type map ignores the order, and C{+} replaces elements with the same keys."""
        self.assertValues(
            {
                "self.spec.rules == [self.spec.rules[1], self.spec.rules[0]]": True,
                "self.spec.rules == [self.spec.rules[0]]": False,
                "self.spec.rules == self.spec.rules.map(r, r)": True,
                "(self.spec.rules + [self.spec.rules[0]]).size()": 2,
            }
        )

    def test_no_conversion(self) -> None:
        """An object that needs no conversion is passed unchanged."""
        declaration = declared(
            {"type": "object", "properties": {"a": STRING, "l": {"type": "array", "items": {"type": "integer"}}}}
        )
        raw = {"a": "x", "l": [1]}
        self.assertIs(declaration.to_cel(raw), raw)
        self.assertIsNone(declaration.convert)

    def test_bad_values(self) -> None:
        """Reading a value that does not have the type of its schema is an error; other values can be read."""
        raw: dict[str, Any] = {"spec": {**OBJECT["spec"], "when": "soon", "lasts": 5, "limits": [], "data": "!"}}
        program = self.compile("self.spec.count")
        self.assertEqual(program.evaluate({"self": DECLARATION.to_cel(raw)})[0], 3)
        for text, message in {
            "self.spec.when": "Invalid date-time formatted string soon",
            "self.spec.lasts": "invalid data, expected string, got int64",
            "self.spec.limits": "invalid data, expected a map for the provided schema with type=object",
            "self.spec.data": "Invalid byte formatted string !",
        }.items():
            error = self.assertRaises(EvaluationError, self.evaluate, f"{text} == {text}", raw=raw)
            self.assertIn(message, error.message)
