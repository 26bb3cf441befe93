"""Tests for L{kubetwist.schema.validation.validator}."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.validation import compiling as schemacompiling
from kubetwist.schema.validation.validator import (
    CorrelatedObject,
    SchemaValidator,
    ValidationBudgetExceeded,
)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from([0.5, 2.5]), st.text("ab", max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    max_leaves=6,
)


def keywords(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Strategy of schemas with a few keywords each."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean"]),
            "nullable": st.booleans(),
            "minimum": st.integers(-3, 3),
            "exclusiveMinimum": st.booleans(),
            "maximum": st.integers(-3, 3),
            "multipleOf": st.integers(1, 3),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a", "b$"]),
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "maxProperties": st.integers(0, 2),
            "required": st.lists(st.sampled_from("xy"), max_size=2, unique=True),
            "properties": st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "items": inner,
            "x-kubernetes-int-or-string": st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    )


SCHEMAS = st.recursive(keywords(st.just({})), keywords, max_leaves=4)


def reported(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    """Return the fields and messages of the errors of a value."""
    causes = [problem.cause("") for problem in SchemaValidator(schema).problems(value)]
    return [(cause.field, cause.message) for cause in causes]


class AgreementTests(SynchronousTestCase):
    """Tests that both validations agree."""

    @settings(max_examples=200, deadline=None)
    @given(SCHEMAS, VALUES)
    def test_same_verdict(self, schema: dict[str, Any], value: Any) -> None:
        """A value is accepted exactly if it has no errors."""
        compiled = SchemaValidator(schema)
        self.assertEqual(compiled.accepts(value), not compiled.problems(value))

    @settings(max_examples=100, deadline=None)
    @given(SCHEMAS, VALUES)
    def test_unchanged_is_tolerated(self, schema: dict[str, Any], value: Any) -> None:
        """An unchanged value has no errors."""
        compiled = SchemaValidator(schema)
        correlation = CorrelatedObject(value, value, compiled)
        assume(correlation.unchanged)
        self.assertEqual(compiled.problems(value, "", correlation), [])


class MessageTests(SynchronousTestCase):
    """Tests for messages."""

    def test_numbers(self) -> None:
        """All errors of a number are reported, C{multipleOf} first."""
        found = reported({"type": "integer", "multipleOf": 5, "maximum": 100}, 101)
        self.assertEqual(
            found,
            [
                ("<nil>", "Invalid value: 101:  in body should be a multiple of 5"),
                ("<nil>", "Invalid value: 101:  in body should be less than or equal to 100"),
            ],
        )

    def test_fraction_for_integer(self) -> None:
        """A fraction instead of an integer has two errors, one of them without a path."""
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        self.assertEqual(
            reported(schema, {"n": 5.5}),
            [
                ("n", 'Invalid value: "number": n in body must be of type integer: "number"'),
                ("<nil>", 'Invalid value: "": Checked value must be of type integer (default format) in n'),
            ],
        )

    def test_huge_integer(self) -> None:
        """A number beyond 64 bits, or a float too large to be exact, is not an integer."""
        schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}}
        for value, text in ((1 << 63, "9.223372036854776e+18"), (1e30, "1e+30")):
            self.assertEqual(
                reported(schema, {"n": value}),
                [
                    ("n", 'Invalid value: "number": n in body must be of type integer: "number"'),
                    ("<nil>", 'Invalid value: "": Checked value must be of type integer (default format) in n'),
                    ("n", f"Invalid value: {text}: n in body should be less than or equal to 5"),
                ],
            )

    def test_fraction_of_multiple(self) -> None:
        """An integer cannot be a multiple of a fraction below one."""
        self.assertEqual(
            reported({"properties": {"n": {"type": "number", "multipleOf": 0.5}}}, {"n": 2}),
            [("n", "Invalid value: 0: factor MultipleOf declared for n must be positive: 0")],
        )

    def test_one(self) -> None:
        """A limit of one is in the singular."""
        self.assertEqual(
            reported(
                {"properties": {"s": {"maxLength": 1}, "l": {"type": "array", "maxItems": 1}}}, {"s": "ab", "l": [1, 2]}
            ),
            [
                ("s", "Too long: may not be more than 1 byte"),
                ("l", "Too many: 2: must have at most 1 item"),
            ],
        )

    def test_converted_to_choice(self) -> None:
        """A value is in an enum if it is after conversion to the type of the enum value."""
        self.assertTrue(SchemaValidator({"enum": [2]}).accepts(2.5))
        self.assertTrue(SchemaValidator({"enum": ["a"]}).accepts(97))
        self.assertFalse(SchemaValidator({"enum": [2.0]}).accepts(2.5))
        self.assertFalse(SchemaValidator({"enum": ["97"]}).accepts(97))

    def test_enum(self) -> None:
        """Enum values are listed in the order of the schema, quoted."""
        schema = {"type": "object", "properties": {"n": {"enum": [3, 1], "type": "integer"}}}
        self.assertEqual(reported(schema, {"n": 4}), [("n", 'Unsupported value: 4: supported values: "3", "1"')])
        schema = {"type": "object", "properties": {"n": {"enum": [{"b": "<&>", "a": 1}, "<"]}}}
        supported = '"{\\"a\\":1,\\"b\\":\\"\\\\u003c\\\\u0026\\\\u003e\\"}", "<"'
        self.assertEqual(reported(schema, {"n": 4}), [("n", f"Unsupported value: 4: supported values: {supported}")])

    def test_one_of(self) -> None:
        """If no alternative matches, the errors of the best one are reported as well."""
        schema = {"type": "object", "properties": {"s": {"oneOf": [{"required": ["git"]}, {"required": ["http"]}]}}}
        self.assertEqual(
            reported(schema, {"s": {}}),
            [
                (
                    "<nil>",
                    'Invalid value: "": "s" must validate one and only one schema (oneOf). Found none valid',
                ),
                ("s.git", "Required value"),
            ],
        )

    def test_forbidden_property(self) -> None:
        """A field that a closed object must not have is reported with its name as the value."""
        schema = {"type": "object", "properties": {"c": {"type": "object", "additionalProperties": False}}}
        self.assertEqual(
            reported(schema, {"c": {"x": 1}}), [("c", 'Invalid value: "x": c.x in body is a forbidden property')]
        )


class RatchetingTests(SynchronousTestCase):
    """Tests for updates of invalid values."""

    SCHEMA = SchemaValidator(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "maximum": 1},
                "l": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {
                        "type": "object",
                        "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}},
                    },
                },
                "plain": {"type": "array", "items": {"type": "integer", "maximum": 1}},
            },
        }
    )

    def names(self, new: dict[str, Any], old: dict[str, Any]) -> list[str | None]:
        """Return the paths of the errors of an update."""
        return [one.name for one in self.SCHEMA.problems(new, "", CorrelatedObject(new, old, self.SCHEMA))]

    def test_fields(self) -> None:
        """An invalid unchanged field is tolerated while other fields change; a newly invalid one is not."""
        self.assertEqual(self.names({"a": 5, "b": 1}, {"a": 5}), [])
        self.assertEqual(self.names({"a": 6}, {"a": 5}), ["a"])

    def test_lists(self) -> None:
        """Items with keys are correlated separately; other lists as a whole."""
        old = {"l": [{"k": "x", "v": 5}], "plain": [5]}
        self.assertEqual(self.names({"l": [{"k": "y", "v": 1}, {"k": "x", "v": 5}], "plain": [5]}, old), [])
        self.assertEqual(self.names({"l": [{"k": "y", "v": 5}], "plain": [5]}, old), ["l[0].v"])
        self.assertEqual(self.names({**old, "plain": [5, 1]}, old), ["plain[0]"])

    def test_items_without_keys(self) -> None:
        """An unchanged list of type map whose items lack keys is an error; other unchanged lists are tolerated."""
        for item in ({"v": 5}, {"k": None}, {"k": {}, "v": 5}, "x", None):
            wrong = {"l": [item]}
            self.assertNotEqual(self.names(wrong, wrong), [], item)
        same = {"l": [{"k": "x", "v": 5}, {"k": "y", "v": 5}]}
        self.assertEqual(self.names({"l": same["l"][::-1]}, same), [])

    def test_fields_without_schema(self) -> None:
        """An unchanged invalid object with fields without a schema is an error."""
        schema = SchemaValidator(
            {"properties": {"o": {"x-kubernetes-preserve-unknown-fields": True, "type": "object", "required": ["a"]}}}
        )
        for value, count in (({"o": {"b": 1}}, 1), ({"o": {}}, 0)):
            self.assertEqual(len(schema.problems(value, "", CorrelatedObject(value, value, schema))), count, value)


class BoundTests(SynchronousTestCase):
    """Tests for hostile schemas."""

    def test_alternatives(self) -> None:
        """Validation of an object with millions of alternatives is aborted."""
        self.patch(schemacompiling, "MAX_ALTERNATIVES", 1000)
        self.patch(schemacompiling, "MAX_ALTERNATIVES_FOR_ERRORS", 1000)
        items = {"anyOf": [{"maximum": number} for number in range(50)]}
        schema = SchemaValidator({"type": "array", "items": items})
        self.assertRaises(ValidationBudgetExceeded, schema.accepts, [49] * 100)
        self.assertRaises(ValidationBudgetExceeded, schema.problems, [49] * 100)

    def test_pattern(self) -> None:
        """Patterns that cause backtracking elsewhere take linear time."""
        schema = SchemaValidator({"type": "string", "pattern": "^(a+)+$"})
        self.assertFalse(schema.accepts("a" * 100_000 + "b"))
