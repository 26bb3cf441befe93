"""
What values must satisfy by an OpenAPI schema, beyond having its shape.

L{ValueSchema.accepts} is compiled for the many values that do; L{ValueSchema.problems} then says what is wrong with the
few that do not, in the words and the order of kubernetes/kube-openapi, C{pkg/validation/validate}. On updates, what was
wrong before and did not change is forgiven: kubernetes/apiextensions-apiserver,
C{pkg/apiserver/validation/ratcheting.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import orjson

from ..api.errors import Cause, shown
from ..api.formats import FORMATS, is_recognized
from ..api.goquote import quoted
from ..api.patterns import compiled
from ..api.resource import JSONObject
from .gotext import go_text

#: How many alternatives of C{allOf}, C{anyOf}, C{oneOf} and C{not} are tried for one object. A schema within the limits
#: of a request and an object likewise can ask for billions.
MOST_ALTERNATIVES: Final = 200_000

_INT32: Final = 1 << 31
_INT64: Final = 1 << 63
_FLOAT32: Final = 3.4028235677973366e38


class TooManyAlternatives(Exception):
    """An object would keep the server busy for too long."""


class _Work:
    """How many alternatives may still be tried; one count for the thread that validates."""

    left = MOST_ALTERNATIVES

    @classmethod
    def spend(cls, count: int) -> None:
        cls.left -= count
        if cls.left < 0:
            raise TooManyAlternatives


class Problem(NamedTuple):
    """
    One thing wrong with a value.

    @ivar text: What tells it from others: a problem is not told twice.
    @ivar name: Where it is; L{None} where the reference has lost that.
    """

    text: str
    reason: str
    message: str
    name: str | None

    def cause(self, prefix: str) -> Cause:
        """As the answer has it; C{prefix} is the path of the value that was validated."""
        name = (self.name or "").removeprefix(".")
        field = f"{prefix}.{name}" if prefix and name else prefix or name
        return Cause(self.reason, self.message, field or "<nil>")


class Result:
    """
    What checking a value against a schema found.

    @ivar matches: How much fitted; of several alternatives that fail, the best is told about.
    """

    __slots__ = ("_known", "matches", "problems")

    def __init__(self, problems: Iterable[Problem] = (), matches: int = 0) -> None:
        self.problems = list(problems)
        self.matches = matches
        self._known: set[str] | None = None

    def add(self, *problems: Problem) -> None:
        """Add what is not there yet."""
        known = self._known
        if known is None:
            known = self._known = {problem.text for problem in self.problems}
        for problem in problems:
            if problem.text not in known:
                known.add(problem.text)
                self.problems.append(problem)

    def merge(self, other: Result) -> None:
        """Add another's problems and matches."""
        self.matches += other.matches
        if other.problems:
            self.add(*other.problems)


class Correlation:
    """
    A value of an update and the one that it replaces.

    @ivar schema: The schema at this place, which says how items of lists are told apart.
    """

    __slots__ = ("_by_keys", "old", "schema", "value")

    def __init__(self, value: Any, old: Any, schema: ValueSchema) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._by_keys: dict[bytes, Any] | None = None

    @property
    def unchanged(self) -> bool:
        """Whether the two are the same."""
        if self.value.__class__ is not self.old.__class__:
            return False
        return self.value is self.old or _encoded(self.value) == _encoded(self.old)

    def field(self, name: str) -> Correlation | None:
        """The two values of a field, where both have it."""
        if not isinstance(self.value, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.value or name not in self.old:
            return None
        schema = self.schema.properties.get(name) or self.schema.additional
        return None if schema is None else Correlation(self.value[name], self.old[name], schema)

    def item(self, index: int) -> Correlation | None:
        """The two values of an item, which only lists of type map can tell."""
        schema = self.schema
        if schema.list_type != "map" or schema.items is None or not isinstance(self.old, list):
            return None
        if self._by_keys is None:
            self._by_keys = {}
            for item in self.old:
                if isinstance(item, dict):
                    self._by_keys.setdefault(_keys_of(item, schema.list_map_keys), item)
        value = self.value[index]
        old = self._by_keys.get(_keys_of(value, schema.list_map_keys)) if isinstance(value, dict) else None
        return None if old is None else Correlation(value, old, schema.items)


def _keys_of(item: JSONObject, names: tuple[str, ...]) -> bytes:
    return orjson.dumps([item.get(name) for name in names])


def _encoded(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


class ValueSchema:
    """
    The conditions of one level of a schema.

    @ivar types: One of JSON's, or integer and string; empty for any.
    @ivar additional: The schema of fields that are not among C{properties}.
    @ivar closed: Whether there must be none.
    """

    def __init__(self, schema: JSONObject) -> None:
        kind = schema.get("type") or ""
        self.types: tuple[str, ...] = (kind,) if kind else ()
        if schema.get("x-kubernetes-int-or-string"):
            self.types = ("integer", "string")
        self.nullable = bool(schema.get("nullable"))
        only = self.types[0] if len(self.types) == 1 else ""
        name = schema.get("format") or ""
        self.format = name if name and is_recognized(only, name) else ""
        self.enum: list[Any] | None = schema.get("enum") or None
        self.choices = _Choices(self.enum or ())
        self.maximum = _number(schema.get("maximum"))
        self.exclusive_maximum = bool(schema.get("exclusiveMaximum"))
        self.minimum = _number(schema.get("minimum"))
        self.exclusive_minimum = bool(schema.get("exclusiveMinimum"))
        self.multiple_of = _number(schema.get("multipleOf"))
        self.max_length: int | None = schema.get("maxLength")
        self.min_length: int | None = schema.get("minLength")
        self.pattern: str = schema.get("pattern") or ""
        self.max_items: int | None = schema.get("maxItems")
        self.min_items: int | None = schema.get("minItems")
        self.unique_items = bool(schema.get("uniqueItems"))
        self.max_properties: int | None = schema.get("maxProperties")
        self.min_properties: int | None = schema.get("minProperties")
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.properties = {name: ValueSchema(part) for name, part in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.additional = ValueSchema(additional) if isinstance(additional, dict) else None
        self.closed = additional is False
        items = schema.get("items")
        self.items = ValueSchema(items) if isinstance(items, dict) else None
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.list_map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.all_of = [ValueSchema(part) for part in schema.get("allOf") or ()]
        self.any_of = [ValueSchema(part) for part in schema.get("anyOf") or ()]
        self.one_of = [ValueSchema(part) for part in schema.get("oneOf") or ()]
        negated = schema.get("not")
        self.negated = ValueSchema(negated) if negated is not None else None
        self._regexp: Any = None
        self._accepts: Callable[[Any], bool] | None = None

    # --- whether a value is good

    def accepts(self, value: Any) -> bool:
        """
        Whether a value satisfies all conditions.

        @raise TooManyAlternatives: Finding that out takes too long.
        """
        _Work.left = MOST_ALTERNATIVES
        return self.compiled()(value)

    def compiled(self) -> Callable[[Any], bool]:
        """L{accepts} as a function."""
        if self._accepts is None:
            self._accepts = _compiled(self)
        return self._accepts

    @property
    def regexp(self) -> Any:
        """The pattern; it can be compiled, or the schema would have been refused."""
        if self._regexp is None:
            self._regexp = compiled(self.pattern)
        return self._regexp

    # --- what is wrong with it

    def problems(self, value: Any, path: str = "", correlation: Correlation | None = None) -> list[Problem]:
        """
        Everything that is wrong with a value.

        @param path: How messages call it.
        @param correlation: It and what it replaces.
        @raise TooManyAlternatives: Finding that out takes too long.
        """
        _Work.left = MOST_ALTERNATIVES
        result = self._forgiven(value, path, correlation)
        return result.problems

    def _forgiven(self, value: Any, path: str, correlation: Correlation | None) -> Result:
        """As L{check}, without the problems of what has not changed."""
        result = self.check(value, path, correlation)
        if result.problems and correlation is not None and correlation.unchanged:
            result = Result(matches=result.matches)
        return result

    def check(self, value: Any, path: str, correlation: Correlation | None = None) -> Result:
        """Check one value; the order is that in which problems are told."""
        result = Result()
        if value is None:
            result.merge(self._type(value, path))
            result.merge(self._enum(value, path))
            return result
        if self.types or self.format:
            result.merge(self._type(value, path))
            result.matches += 1
        result.merge(self._combined(value, path, correlation))
        result.matches += 1
        if isinstance(value, str):
            result.merge(self._string(value, path))
            result.matches += 1
            if self.format and self.format.replace("-", "") in FORMATS:
                if not FORMATS[self.format.replace("-", "")](value):
                    result.add(_type_problem(path, self.format, value))
                result.matches += 1
        elif isinstance(value, int | float) and not isinstance(value, bool):
            result.merge(self._number(value, path))
            result.matches += 1
        elif isinstance(value, list):
            result.merge(self._list(value, path, correlation))
            result.matches += 1
        result.merge(self._enum(value, path))
        result.matches += 1
        if isinstance(value, dict):
            result.merge(self._object(value, path, correlation))
            result.matches += 1
        result.matches += 1
        return result

    def _type(self, value: Any, path: str) -> Result:
        types = self.types
        joined = ",".join(types)
        if value is None:
            if types and not self.nullable:
                return Result([_type_problem(path, joined, "null")])
            return Result(matches=1)
        found, form = json_type(value)
        fits = found in types or (found == "number" and "integer" in types and value.is_integer())
        fits = fits or (found == "integer" and "number" in types)
        textual = isinstance(value, str | list)
        if self.format and not textual and not fits and form != self.format:
            return Result([_type_problem(path, self.format, form)])
        if self.format and textual and not ("number" in types or "integer" in types):
            return Result(matches=1)
        return Result(matches=1) if fits else Result([_type_problem(path, joined, found)])

    def _enum(self, value: Any, path: str) -> Result:
        if self.enum is None or value in self.choices:
            return Result()
        choices = [one if isinstance(one, str) else _encoded(one).decode() for one in self.enum]
        supported = ", ".join(map(quoted, choices))
        message = f"Unsupported value: {shown(value)}: supported values: {supported}"
        text = f"{path} in body should be one of {go_text(self.enum)}"
        return Result([Problem(text, "FieldValueNotSupported", message, path)])

    def _string(self, value: str, path: str) -> Result:
        """Only the first of a string's problems is told."""
        if self.max_length is not None and len(value) > self.max_length:
            text = f"{path} in body should be at most {self.max_length} chars long"
            message = f"Too long: may not be more than {self.max_length} bytes"
            return Result([Problem(text, "FieldValueTooLong", message, path)])
        if self.min_length is not None and len(value) < self.min_length:
            return Result([_invalid(path, value, f"should be at least {self.min_length} chars long")])
        if self.pattern and not self.regexp.search(value):
            return Result([_invalid(path, value, f"should match '{self.pattern}'")])
        return Result()

    def _number(self, value: float, path: str) -> Result:
        result = Result(matches=1)
        result.add(*self._range(value, "Checked", path))
        if self.multiple_of is not None:
            result.add(*self._bound(value, self.multiple_of, "MultipleOf", path, _multiple))
        if self.minimum is not None:
            tell = _minimum_exclusive if self.exclusive_minimum else _minimum
            result.add(*self._bound(value, self.minimum, "Minimum boundary", path, tell))
        if self.maximum is not None:
            tell = _maximum_exclusive if self.exclusive_maximum else _maximum
            result.add(*self._bound(value, self.maximum, "Maximum boundary", path, tell))
        return result

    def _bound(
        self, value: float, bound: float, name: str, path: str, tell: Callable[[float, float], str]
    ) -> list[Problem]:
        found = self._range(bound, name, path)
        if not found and isinstance(value, int):
            bound = int(bound)
        why = tell(value, bound)
        if why:
            found.append(_invalid(path, value, why))
        return found

    def _range(self, value: float, what: str, path: str) -> list[Problem]:
        """Whether a number fits the type and format that the schema gives, if it gives one."""
        if not fits_range(value, self):
            named = f"with format {self.format}" if self.format in _RANGES else "(default format)"
            text = f"{what} value must be of type {self.types[0]} {named} in {path}"
            return [_lost(text)]
        return []

    def _list(self, value: list[Any], path: str, correlation: Correlation | None) -> Result:
        result = Result(matches=1)
        if self.items is not None:
            for index, item in enumerate(value):
                inner = correlation.item(index) if correlation is not None else None
                result.merge(self.items._forgiven(item, f"{path}[{index}]", inner))
        size = len(value)
        if self.min_items is not None and size < self.min_items:
            result.add(_invalid(path, size, f"should have at least {self.min_items} items"))
        if self.max_items is not None and size > self.max_items:
            result.add(_too_many(path, size, self.max_items, "items"))
        if self.unique_items and not _distinct(value):
            result.add(_invalid(path, "", "shouldn't contain duplicates"))
        return result

    def _object(self, value: JSONObject, path: str, correlation: Correlation | None) -> Result:
        result = Result()
        size = len(value)
        if self.min_properties is not None and size < self.min_properties:
            result.add(_invalid(path, size, f"should have at least {self.min_properties} properties"))
        if self.max_properties is not None and size > self.max_properties:
            result.add(_too_many(path, size, self.max_properties, "properties"))
        if self.closed:
            for name in value:
                if name not in self.properties:
                    text = f"{path}.{name} in body is a forbidden property"
                    result.add(Problem(text, "FieldValueInvalid", f"Invalid value: {quoted(name)}: {text}", path))
        elif self.additional is not None:
            for name, item in value.items():
                if name not in self.properties:
                    inner = correlation.field(name) if correlation is not None else None
                    result.merge(self.additional._forgiven(item, f"{path}.{name}", inner))
        for name, part in self.properties.items():
            if name in value:
                where = f"{path}.{name}" if path else name
                inner = correlation.field(name) if correlation is not None else None
                if not path and name in ("kind", "apiVersion"):
                    # They are always in the version that is asked for, so that nobody sees whether they change.
                    inner = None
                result.merge(part._forgiven(value[name], where, inner))
        for name in self.required:
            if name not in value:
                where = f"{path}.{name}"
                result.add(Problem(f"{where} in body is required", "FieldValueRequired", "Required value", where))
        return result

    def _combined(self, value: Any, path: str, correlation: Correlation | None) -> Result:
        main = Result(matches=1)
        _Work.spend(len(self.all_of) + len(self.any_of) + len(self.one_of) + (self.negated is not None))
        if self.any_of:
            self._any_of(main, value, path, correlation)
        if self.one_of:
            self._one_of(main, value, path, correlation)
        if self.all_of:
            results = [part.check(value, path, correlation) for part in self.all_of]
            for result in results:
                main.merge(result)
            failed = sum(1 for result in results if result.problems)
            if failed:
                end = ". None validated" if failed == len(results) else ""
                main.add(_lost(f"{quoted(path)} must validate all the schemas (allOf){end}"))
        if self.negated is not None and not self.negated.check(value, path, correlation).problems:
            main.add(_lost(f"{quoted(path)} must not validate the schema (not)"))
        return main

    def _any_of(self, main: Result, value: Any, path: str, correlation: Correlation | None) -> None:
        best: Result | None = None
        for part in self.any_of:
            result = part.check(value, path, correlation)
            if not result.problems:
                main.merge(result)
                return
            if best is None or result.matches > best.matches:
                best = result
        main.add(_lost(f"{quoted(path)} must validate at least one schema (anyOf)"))
        if best is not None:
            main.merge(best)

    def _one_of(self, main: Result, value: Any, path: str, correlation: Correlation | None) -> None:
        best: Result | None = None
        good: list[Result] = []
        for part in self.one_of:
            result = part.check(value, path, correlation)
            if not result.problems:
                good.append(result)
                best = None
            elif not good and (best is None or result.matches > best.matches):
                best = result
        if len(good) == 1:
            main.merge(good[0])
            return
        end = f"Found {len(good)} valid alternatives" if good else "Found none valid"
        main.add(_lost(f"{quoted(path)} must validate one and only one schema (oneOf). {end}"))
        if best is not None:
            main.merge(best)


# --- compiling


def _compiled(schema: ValueSchema) -> Callable[[Any], bool]:
    """The conditions as a function; what a value's class decides is decided once."""
    common: list[Callable[[Any], bool]] = []
    if schema.all_of or schema.any_of or schema.one_of or schema.negated is not None:
        common.append(_combination(schema))
    if schema.enum is not None:
        choices = schema.choices
        common.append(lambda value: value in choices)
    tests: dict[type, Callable[[Any], bool]] = {
        cls: _conjunction(sample, schema, [*own, *common])
        for cls, sample, own in (
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


def _conjunction(sample: Any, schema: ValueSchema, tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    if isinstance(sample, float) and "integer" in schema.types and "number" not in schema.types:
        # Whether it may be here depends on the number.
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


def _string_tests(schema: ValueSchema) -> list[Callable[[Any], bool]]:
    tests: list[Callable[[Any], bool]] = []
    most, least = schema.max_length, schema.min_length
    if most is not None:
        tests.append(lambda value: len(value) <= most)
    if least is not None:
        tests.append(lambda value: len(value) >= least)
    if schema.pattern:
        tests.append(lambda value: schema.regexp.search(value) is not None)
    check = FORMATS.get(schema.format.replace("-", "")) if schema.format else None
    if check is not None:
        tests.append(check)
    return tests


def _number_tests(schema: ValueSchema) -> list[Callable[[Any], bool]]:
    bounds = (schema.multiple_of, schema.maximum, schema.minimum)
    if bounds == (None, None, None) and not schema.types:
        return []
    if bounds == (None, None, None) and schema.types == ("number",) and schema.format != "float":
        return []
    return [lambda value: not schema._number(value, "").problems]


def _list_tests(schema: ValueSchema) -> list[Callable[[Any], bool]]:
    tests: list[Callable[[Any], bool]] = []
    most, least = schema.max_items, schema.min_items
    if most is not None:
        tests.append(lambda value: len(value) <= most)
    if least is not None:
        tests.append(lambda value: len(value) >= least)
    if schema.items is not None:
        item = schema.items.compiled()
        tests.append(lambda value: all(map(item, value)))
    if schema.unique_items:
        tests.append(_distinct)
    return tests


def _object_tests(schema: ValueSchema) -> list[Callable[[Any], bool]]:
    tests: list[Callable[[Any], bool]] = []
    most, least, required = schema.max_properties, schema.min_properties, schema.required
    if most is not None:
        tests.append(lambda value: len(value) <= most)
    if least is not None:
        tests.append(lambda value: len(value) >= least)
    if len(required) == 1:
        only = required[0]
        tests.append(lambda value: only in value)
    elif required:
        names = frozenset(required)
        tests.append(lambda value: names <= value.keys())
    parts = {name: part.compiled() for name, part in schema.properties.items()}
    if schema.closed:
        known = frozenset(schema.properties)
        tests.append(lambda value: known >= value.keys())
    if schema.additional is not None:
        other = schema.additional.compiled()
        tests.append(lambda value: all(parts.get(name, other)(item) for name, item in value.items()))
    elif parts:

        def fields(value: JSONObject) -> bool:
            for name, item in value.items():
                test = parts.get(name)
                if test is not None and not test(item):
                    return False
            return True

        tests.append(fields)
    return tests


def _combination(schema: ValueSchema) -> Callable[[Any], bool]:
    count = len(schema.all_of) + len(schema.any_of) + len(schema.one_of) + (schema.negated is not None)
    all_of = [part.compiled() for part in schema.all_of]
    any_of = [part.compiled() for part in schema.any_of]
    one_of = [part.compiled() for part in schema.one_of]
    negated = schema.negated.compiled() if schema.negated is not None else None

    def test(value: Any) -> bool:
        _Work.spend(count)
        if any_of and not any(part(value) for part in any_of):
            return False
        if one_of and sum(1 for part in one_of if part(value)) != 1:
            return False
        if not all(part(value) for part in all_of):
            return False
        return negated is None or not negated(value)

    return test


# --- values


def json_type(value: Any) -> tuple[str, str]:
    """The type of a value that is not null, and its format if it has one by itself."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


_RANGES: Final = frozenset(("int32", "int64", "float", "double"))


def fits_range(value: float, schema: ValueSchema) -> bool:
    """Whether a number is one that the schema's type and format can hold."""
    kind = schema.types[0] if len(schema.types) == 1 else ""
    if kind == "integer":
        limit = _INT32 if schema.format == "int32" else _INT64
        return (isinstance(value, int) or value.is_integer()) and -limit <= value < limit
    if kind == "number" and schema.format == "float":
        return abs(value) <= _FLOAT32
    return True


def _number(bound: Any) -> float | None:
    return None if bound is None else float(bound)


def _multiple(value: float, factor: float) -> str:
    if factor <= 0:
        return f"must be positive: {go_text(factor)}"
    if isinstance(factor, int) and isinstance(value, int):
        good = value % factor == 0
    else:
        quotient = 1 / factor * value if factor < 1 else value / factor
        good = abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))
    return "" if good else f"should be a multiple of {go_text(factor)}"


def _minimum(value: float, bound: float) -> str:
    return "" if value >= bound else f"should be greater than or equal to {go_text(bound)}"


def _minimum_exclusive(value: float, bound: float) -> str:
    return "" if value > bound else f"should be greater than {go_text(bound)}"


def _maximum(value: float, bound: float) -> str:
    return "" if value <= bound else f"should be less than or equal to {go_text(bound)}"


def _maximum_exclusive(value: float, bound: float) -> str:
    return "" if value < bound else f"should be less than {go_text(bound)}"


class _Choices:
    """The values of an enum, found as fast among many as among few."""

    __slots__ = ("_encoded", "_flags", "_numbers", "_texts")

    def __init__(self, values: Iterable[Any]) -> None:
        values = list(values)
        self._texts = frozenset(one for one in values if isinstance(one, str))
        self._flags = frozenset(one for one in values if isinstance(one, bool))
        self._numbers = frozenset(one for one in values if isinstance(one, int | float) and not isinstance(one, bool))
        self._encoded = frozenset(_encoded(one) for one in values if isinstance(one, list | dict))

    def __contains__(self, value: Any) -> bool:
        """Whether a value is one of them; null never is, not even where the enum has it."""
        if isinstance(value, str):
            return value in self._texts
        if isinstance(value, bool):
            return value in self._flags
        if isinstance(value, int | float):
            return value in self._numbers
        return value is not None and _encoded(value) in self._encoded


def _distinct(values: list[Any]) -> bool:
    return len({_encoded(value) for value in values}) == len(values)


# --- problems


def _type_problem(path: str, wanted: str, found: str) -> Problem:
    text = f"{path} in body must be of type {wanted}: {quoted(found)}"
    return Problem(text, "FieldValueTypeInvalid", f"Invalid value: {quoted(found)}: {text}", path)


def _invalid(path: str, value: Any, why: str) -> Problem:
    text = f"{path} in body {why}"
    return Problem(text, "FieldValueInvalid", f"Invalid value: {shown(value)}: {text}", path)


def _too_many(path: str, size: int, most: int, what: str) -> Problem:
    text = f"{path} in body should have at most {most} {what}"
    return Problem(text, "FieldValueTooMany", f"Too many: {size}: must have at most {most} items", path)


def _lost(text: str) -> Problem:
    """A problem of which the reference has only the words."""
    return Problem(text, "FieldValueInvalid", f'Invalid value: "": {text}', None)
