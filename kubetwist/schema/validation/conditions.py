"""Constraints of one level of an OpenAPI schema, and validation of scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from ...api.errors import shown
from ...api.featuregates import DEFAULT_RELEASE, Release
from ...api.formats import is_recognized
from ...api.go.text import go_text
from ...api.jsontypes import JSONObject, JSONValue
from ...api.patterns import Pattern, compile_pattern
from .constraints import (
    FLOAT32,
    INT32,
    INT64,
    Choices,
    bound,
    is_exact,
    json_type,
    maximum,
    maximum_exclusive,
    minimum,
    minimum_exclusive,
    multiple,
)
from .result import Problem, Result, composite_error, invalid_value, type_problem

RANGES: Final = frozenset(("int32", "int64", "float", "double"))
#: The first release that passes types and formats to the validation of numbers.
_CHECKS_RANGES: Final = (1, 36)


class Conditions:
    """
    The constraints of one level of a schema.

    @ivar types: One JSON type, or integer and string; empty for any type.
    @ivar additional: The schema of fields that are not in C{properties}.
    @ivar closed: Whether fields must be in C{properties}.
    @ivar release: The release whose rules apply.
    @ivar checks_ranges: Whether numbers must be in the range of their type and format.
    @ivar test: The compiled test of L{kubetwist.schema.validation.compiling}; L{None} before it is compiled.
    """

    properties: dict[str, Self]
    additional: Self | None
    items: Self | None
    all_of: list[Self]
    any_of: list[Self]
    one_of: list[Self]
    negated: Self | None

    def __init__(self: Self, schema: JSONObject, release: Release = DEFAULT_RELEASE) -> None:
        self.release = release
        self.checks_ranges = release >= _CHECKS_RANGES
        read = self._read
        kind = schema.get("type") or ""
        self.types: tuple[str, ...] = (kind,) if kind else ()
        if schema.get("x-kubernetes-int-or-string"):
            self.types = ("integer", "string")
        self.nullable = bool(schema.get("nullable"))
        single_type = self.types[0] if len(self.types) == 1 else ""
        name = schema.get("format") or ""
        self.format = name if name and is_recognized(single_type, name, release) else ""
        self.enum: list[JSONValue] | None = schema.get("enum") or None
        self.choices = Choices(self.enum or ())
        self.maximum = bound(schema.get("maximum"))
        self.exclusive_maximum = bool(schema.get("exclusiveMaximum"))
        self.minimum = bound(schema.get("minimum"))
        self.exclusive_minimum = bool(schema.get("exclusiveMinimum"))
        self.multiple_of = bound(schema.get("multipleOf"))
        self.max_length: int | None = schema.get("maxLength")
        self.min_length: int | None = schema.get("minLength")
        self.pattern: str = schema.get("pattern") or ""
        self.max_items: int | None = schema.get("maxItems")
        self.min_items: int | None = schema.get("minItems")
        self.unique_items = bool(schema.get("uniqueItems"))
        self.max_properties: int | None = schema.get("maxProperties")
        self.min_properties: int | None = schema.get("minProperties")
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.properties = {name: read(subschema) for name, subschema in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.additional = read(additional) if isinstance(additional, dict) else None
        self.closed = additional is False
        items = schema.get("items")
        self.items = read(items) if isinstance(items, dict) else None
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.list_map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.all_of = [read(subschema) for subschema in schema.get("allOf") or ()]
        self.any_of = [read(subschema) for subschema in schema.get("anyOf") or ()]
        self.one_of = [read(subschema) for subschema in schema.get("oneOf") or ()]
        negated = schema.get("not")
        self.negated = read(negated) if negated is not None else None
        self._regexp: Pattern | None = None
        self.test: Callable[[JSONValue], bool] | None = None

    def _read(self, schema: JSONObject) -> Self:
        return type(self)(schema, self.release)

    @property
    def regexp(self) -> Pattern:
        """Return the compiled pattern, which is valid, since the schema is validated."""
        if self._regexp is None:
            self._regexp = compile_pattern(self.pattern)
        return self._regexp

    def _type(self, value: JSONValue, path: str) -> Result:
        types = self.types
        joined = ",".join(types)
        if value is None:
            if types and not self.nullable:
                return Result([type_problem(path, joined, "null")])
            return Result(matches=1)
        actual, actual_format = json_type(value)
        matches = actual in types or (actual == "number" and "integer" in types and is_exact(value))
        matches = matches or (actual == "integer" and "number" in types)
        is_string_or_list = isinstance(value, str | list)
        if self.format and not is_string_or_list and not matches and actual_format != self.format:
            return Result([type_problem(path, self.format, actual_format)])
        if self.format and is_string_or_list and not ("number" in types or "integer" in types):
            return Result(matches=1)
        return Result(matches=1) if matches else Result([type_problem(path, joined, actual)])

    def _number(self, value: float, path: str) -> Result:
        result = Result(matches=1)
        if self.checks_ranges:
            result.add(*self._range(value, "Checked", path))
        if self.multiple_of is not None:
            result.add(*self._bound(value, self.multiple_of, "MultipleOf", path, multiple))
        if self.minimum is not None:
            check = minimum_exclusive if self.exclusive_minimum else minimum
            result.add(*self._bound(value, self.minimum, "Minimum boundary", path, check))
        if self.maximum is not None:
            check = maximum_exclusive if self.exclusive_maximum else maximum
            result.add(*self._bound(value, self.maximum, "Maximum boundary", path, check))
        return result

    def _bound(
        self, value: float, bound: float, name: str, path: str, check: Callable[[float, float], str]
    ) -> list[Problem]:
        actual = self._range(bound, name, path) if self.checks_ranges else []
        if not actual and isinstance(value, int):
            bound = int(bound)
        if check is multiple and bound <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {go_text(bound)}"
            return [*actual, Problem(text, "FieldValueInvalid", f"Invalid value: {shown(bound)}: {text}", path)]
        message = check(value, bound)
        if message:
            actual.append(invalid_value(path, value, message))
        return actual

    def _range(self, value: float, description: str, path: str) -> list[Problem]:
        """Validate that a number is in the range of the type and format of the schema."""
        if not fits_range(value, self):
            expected = f"with format {self.format}" if self.format in RANGES else "(default format)"
            text = f"{description} value must be of type {self.types[0]} {expected} in {path}"
            return [composite_error(text)]
        return []


def fits_range(value: float, schema: Conditions) -> bool:
    """Return whether a number is in the range of the type and format of a schema."""
    kind = schema.types[0] if len(schema.types) == 1 else ""
    if kind == "integer":
        limit = INT32 if schema.format == "int32" else INT64
        return (isinstance(value, int) or value.is_integer()) and -limit <= value < limit
    if kind == "number" and schema.format == "float":
        return abs(value) <= FLOAT32
    return True
