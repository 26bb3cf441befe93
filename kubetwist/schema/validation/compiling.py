"""
Compilation of schemas to functions that return whether a value is valid.

L{ValidationBudget} limits the number of alternatives that are tried for one object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.formats import FORMATS
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from .conditions import Conditions
from .constraints import distinct

#: Maximum number of alternatives of allOf, anyOf, oneOf and not that are tried for one object. A schema and an object
#: within the size limits of requests can require billions.
MAX_ALTERNATIVES: Final = 200_000
#: Maximum number while errors are collected, which takes longer.
MAX_ALTERNATIVES_FOR_ERRORS: Final = 20_000


class ValidationBudgetExceeded(Exception):
    """Validating an object exceeds the maximum number of alternatives."""


class ValidationBudget:
    """The remaining number of alternatives; one counter per process, since one thread validates."""

    remaining = MAX_ALTERNATIVES

    @classmethod
    def reset(cls, collecting_errors: bool = False) -> None:
        """Reset the counter for the next object; C{collecting_errors} selects the lower limit."""
        cls.remaining = MAX_ALTERNATIVES_FOR_ERRORS if collecting_errors else MAX_ALTERNATIVES

    @classmethod
    def consume(cls, count: int) -> None:
        """
        Subtract alternatives before they are tried.

        @raise ValidationBudgetExceeded: The maximum is exceeded.
        """
        cls.remaining -= count
        if cls.remaining < 0:
            raise ValidationBudgetExceeded


def compile_schema(schema: Conditions) -> Callable[[JSONValue], bool]:
    """Return the function that validates values by a schema; it is compiled once."""
    if schema.test is None:
        schema.test = _compile(schema)
    return schema.test


def _compile(schema: Conditions) -> Callable[[JSONValue], bool]:
    """Compile a schema to one test per Python class of values."""
    common: list[Callable[[JSONValue], bool]] = []
    if schema.all_of or schema.any_of or schema.one_of or schema.negated is not None:
        common.append(_combination(schema))
    if schema.enum is not None:
        choices = schema.choices
        common.append(lambda value: value in choices)
    tests: dict[type, Callable[[JSONValue], bool]] = {
        cls: _conjunction(sample, schema, [*class_tests, *common])
        for cls, sample, class_tests in (
            (str, "", _string_tests(schema)),
            (int, 0, _number_tests(schema)),
            (float, 0.5, _number_tests(schema)),
            (bool, False, []),
            (list, [], _list_tests(schema)),
            (dict, {}, _object_tests(schema)),
        )
    }
    null = (schema.nullable or not schema.types) and schema.enum is None
    tests[type(None)] = lambda value: null
    return lambda value: tests[value.__class__](value)


def _conjunction(
    sample: JSONValue, schema: Conditions, tests: list[Callable[[JSONValue], bool]]
) -> Callable[[JSONValue], bool]:
    if isinstance(sample, float) and "integer" in schema.types and "number" not in schema.types:
        # Whether the type is integer depends on the value.
        tests = [lambda value: not schema._type(value, "").problems, *tests]
    elif (schema.types or schema.format) and schema._type(sample, "").problems:
        return lambda value: False
    if not tests:
        return lambda value: True
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) and second(value)
    return lambda value: all(test(value) for test in tests)


def _string_tests(schema: Conditions) -> list[Callable[[JSONValue], bool]]:
    tests: list[Callable[[JSONValue], bool]] = []
    maximum, minimum = schema.max_length, schema.min_length
    if maximum is not None:
        tests.append(lambda value: len(value) <= maximum)
    if minimum is not None:
        tests.append(lambda value: len(value) >= minimum)
    if schema.pattern:
        tests.append(lambda value: schema.regexp.search(value) is not None)
    check = FORMATS.get(schema.format.replace("-", "")) if schema.format else None
    if check is not None:
        tests.append(check)
    return tests


def _number_tests(schema: Conditions) -> list[Callable[[JSONValue], bool]]:
    bounds = (schema.multiple_of, schema.maximum, schema.minimum)
    if bounds == (None, None, None) and not schema.types:
        return []
    if bounds == (None, None, None) and schema.types == ("number",) and schema.format != "float":
        return []
    return [lambda value: not schema._number(value, "").problems]


def _list_tests(schema: Conditions) -> list[Callable[[JSONValue], bool]]:
    tests: list[Callable[[JSONValue], bool]] = []
    maximum, minimum = schema.max_items, schema.min_items
    if maximum is not None:
        tests.append(lambda value: len(value) <= maximum)
    if minimum is not None:
        tests.append(lambda value: len(value) >= minimum)
    if schema.items is not None:
        item = compile_schema(schema.items)
        tests.append(lambda value: all(map(item, value)))
    if schema.unique_items:
        tests.append(distinct)
    return tests


def _object_tests(schema: Conditions) -> list[Callable[[JSONValue], bool]]:
    tests: list[Callable[[JSONValue], bool]] = []
    maximum, minimum, required = schema.max_properties, schema.min_properties, schema.required
    if maximum is not None:
        tests.append(lambda value: len(value) <= maximum)
    if minimum is not None:
        tests.append(lambda value: len(value) >= minimum)
    if len(required) == 1:
        only = required[0]
        tests.append(lambda value: only in value)
    elif required:
        names = frozenset(required)
        tests.append(lambda value: names <= value.keys())
    property_tests = {name: compile_schema(subschema) for name, subschema in schema.properties.items()}
    if schema.closed:
        allowed_names = frozenset(schema.properties)
        tests.append(lambda value: allowed_names >= value.keys())
    if schema.additional is not None:
        other = compile_schema(schema.additional)
        tests.append(lambda value: all(property_tests.get(name, other)(item) for name, item in value.items()))
    elif property_tests:

        def fields(value: JSONObject) -> bool:
            for name, item in value.items():
                test = property_tests.get(name)
                if test is not None and not test(item):
                    return False
            return True

        tests.append(fields)
    return tests


def _combination(schema: Conditions) -> Callable[[JSONValue], bool]:
    count = len(schema.all_of) + len(schema.any_of) + len(schema.one_of) + (schema.negated is not None)
    all_of = [compile_schema(subschema) for subschema in schema.all_of]
    any_of = [compile_schema(subschema) for subschema in schema.any_of]
    one_of = [compile_schema(subschema) for subschema in schema.one_of]
    negated = compile_schema(schema.negated) if schema.negated is not None else None

    def test(value: JSONValue) -> bool:
        ValidationBudget.consume(count)
        if any_of and not any(subschema(value) for subschema in any_of):
            return False
        if one_of and sum(1 for subschema in one_of if subschema(value)) != 1:
            return False
        if not all(subschema(value) for subschema in all_of):
            return False
        return negated is None or not negated(value)

    return test
