"""
What values must satisfy by an OpenAPI schema, beyond having its shape.

L{ValueSchema.accepts} is compiled for the many values that do; L{ValueSchema.problems} then says what is wrong with the
few that do not, in the words and the order of kubernetes/kube-openapi, C{pkg/validation/validate}. On updates, what was
wrong before and did not change is forgiven: kubernetes/apiextensions-apiserver,
C{pkg/apiserver/validation/ratcheting.go}.
"""

from __future__ import annotations

from collections.abc import Callable

from ...api.errors import (
    counted,
    go_json,
    shown,
)
from ...api.formats import (
    FORMATS,
    is_recognized,
)
from ...api.go.quote import quoted
from ...api.go.text import go_text
from ...api.jsontypes import JSONValue
from ...api.patterns import compiled
from ...api.resource import JSONObject
from .compiling import (
    TooManyAlternatives,
    Work,
    compile_schema,
)
from .constraints import (
    RANGES,
    Choices,
    bound,
    distinct,
    fits_int64,
    fits_range,
    is_exact,
    json_type,
    maximum,
    maximum_exclusive,
    minimum,
    minimum_exclusive,
    multiple,
)
from .correlation import Correlation
from .result import (
    Problem,
    Result,
    invalid_value,
    lost,
    too_many,
    type_problem,
)

__all__ = ["Correlation", "Problem", "Result", "TooManyAlternatives", "ValueSchema"]


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
        self._regexp: JSONValue = None
        self._accepts: Callable[[JSONValue], bool] | None = None

    # --- whether a value is good

    def accepts(self, value: JSONValue) -> bool:
        """
        Whether a value satisfies all conditions.

        @raise TooManyAlternatives: Finding that out takes too long.
        """
        Work.begin()
        return self.compiled()(value)

    def compiled(self) -> Callable[[JSONValue], bool]:
        """L{accepts} as a function."""
        if self._accepts is None:
            self._accepts = compile_schema(self)
        return self._accepts

    @property
    def regexp(self) -> JSONValue:
        """The pattern; it can be compiled, or the schema would have been refused."""
        if self._regexp is None:
            self._regexp = compiled(self.pattern)
        return self._regexp

    # --- what is wrong with it

    def problems(self, value: JSONValue, path: str = "", correlation: Correlation | None = None) -> list[Problem]:
        """
        Everything that is wrong with a value.

        @param path: How messages call it.
        @param correlation: It and what it replaces.
        @raise TooManyAlternatives: Finding that out takes too long.
        """
        Work.begin(telling=True)
        result = self._forgiven(value, path, correlation)
        return result.problems

    def _forgiven(self, value: JSONValue, path: str, correlation: Correlation | None) -> Result:
        """As L{check}, without the problems of what has not changed."""
        result = self.check(value, path, correlation)
        if result.problems and correlation is not None and correlation.unchanged:
            result = Result(matches=result.matches)
        return result

    def check(self, value: JSONValue, path: str, correlation: Correlation | None = None) -> Result:
        """Check one value; the order is that in which problems are told."""
        result = Result()
        if value is None:
            result.merge(self._type(value, path))
            result.merge(self._enum(value, path))
            return result
        if isinstance(value, int) and not fits_int64(value):
            value = float(value)
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
                    result.add(type_problem(path, self.format, value))
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

    def _type(self, value: JSONValue, path: str) -> Result:
        types = self.types
        joined = ",".join(types)
        if value is None:
            if types and not self.nullable:
                return Result([type_problem(path, joined, "null")])
            return Result(matches=1)
        found, form = json_type(value)
        fits = found in types or (found == "number" and "integer" in types and is_exact(value))
        fits = fits or (found == "integer" and "number" in types)
        textual = isinstance(value, str | list)
        if self.format and not textual and not fits and form != self.format:
            return Result([type_problem(path, self.format, form)])
        if self.format and textual and not ("number" in types or "integer" in types):
            return Result(matches=1)
        return Result(matches=1) if fits else Result([type_problem(path, joined, found)])

    def _enum(self, value: JSONValue, path: str) -> Result:
        if self.enum is None or value in self.choices:
            return Result()
        choices = [one if isinstance(one, str) else go_json(one, sort_keys=True) for one in self.enum]
        supported = ", ".join(map(quoted, choices))
        message = f"Unsupported value: {shown(value)}: supported values: {supported}"
        text = f"{path} in body should be one of {go_text(self.enum)}"
        return Result([Problem(text, "FieldValueNotSupported", message, path)])

    def _string(self, value: str, path: str) -> Result:
        """Only the first of a string's problems is told."""
        if self.max_length is not None and len(value) > self.max_length:
            text = f"{path} in body should be at most {self.max_length} chars long"
            message = f"Too long: may not be more than {counted(self.max_length, 'bytes')}"
            return Result([Problem(text, "FieldValueTooLong", message, path)])
        if self.min_length is not None and len(value) < self.min_length:
            return Result([invalid_value(path, value, f"should be at least {self.min_length} chars long")])
        if self.pattern and not self.regexp.search(value):
            return Result([invalid_value(path, value, f"should match '{self.pattern}'")])
        return Result()

    def _number(self, value: float, path: str) -> Result:
        result = Result(matches=1)
        result.add(*self._range(value, "Checked", path))
        if self.multiple_of is not None:
            result.add(*self._bound(value, self.multiple_of, "MultipleOf", path, multiple))
        if self.minimum is not None:
            tell = minimum_exclusive if self.exclusive_minimum else minimum
            result.add(*self._bound(value, self.minimum, "Minimum boundary", path, tell))
        if self.maximum is not None:
            tell = maximum_exclusive if self.exclusive_maximum else maximum
            result.add(*self._bound(value, self.maximum, "Maximum boundary", path, tell))
        return result

    def _bound(
        self, value: float, bound: float, name: str, path: str, tell: Callable[[float, float], str]
    ) -> list[Problem]:
        found = self._range(bound, name, path)
        if not found and isinstance(value, int):
            bound = int(bound)
        if tell is multiple and bound <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {go_text(bound)}"
            return [*found, Problem(text, "FieldValueInvalid", f"Invalid value: {shown(bound)}: {text}", path)]
        why = tell(value, bound)
        if why:
            found.append(invalid_value(path, value, why))
        return found

    def _range(self, value: float, what: str, path: str) -> list[Problem]:
        """Whether a number fits the type and format that the schema gives, if it gives one."""
        if not fits_range(value, self):
            named = f"with format {self.format}" if self.format in RANGES else "(default format)"
            text = f"{what} value must be of type {self.types[0]} {named} in {path}"
            return [lost(text)]
        return []

    def _list(self, value: list[JSONValue], path: str, correlation: Correlation | None) -> Result:
        result = Result(matches=1)
        if self.items is not None:
            for index, item in enumerate(value):
                inner = correlation.item(index) if correlation is not None else None
                result.merge(self.items._forgiven(item, f"{path}[{index}]", inner))
        size = len(value)
        if self.min_items is not None and size < self.min_items:
            result.add(invalid_value(path, size, f"should have at least {self.min_items} items"))
        if self.max_items is not None and size > self.max_items:
            result.add(too_many(path, size, self.max_items, "items"))
        if self.unique_items and not distinct(value):
            result.add(invalid_value(path, "", "shouldn't contain duplicates"))
        return result

    def _object(self, value: JSONObject, path: str, correlation: Correlation | None) -> Result:
        result = Result()
        size = len(value)
        if self.min_properties is not None and size < self.min_properties:
            result.add(invalid_value(path, size, f"should have at least {self.min_properties} properties"))
        if self.max_properties is not None and size > self.max_properties:
            result.add(too_many(path, size, self.max_properties, "properties"))
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

    def _combined(self, value: JSONValue, path: str, correlation: Correlation | None) -> Result:
        main = Result(matches=1)
        Work.spend(len(self.all_of) + len(self.any_of) + len(self.one_of) + (self.negated is not None))
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
                main.add(lost(f"{quoted(path)} must validate all the schemas (allOf){end}"))
        if self.negated is not None and not self.negated.check(value, path, correlation).problems:
            main.add(lost(f"{quoted(path)} must not validate the schema (not)"))
        return main

    def _any_of(self, main: Result, value: JSONValue, path: str, correlation: Correlation | None) -> None:
        best: Result | None = None
        for part in self.any_of:
            result = part.check(value, path, correlation)
            if not result.problems:
                main.merge(result)
                return
            if best is None or result.matches > best.matches:
                best = result
        main.add(lost(f"{quoted(path)} must validate at least one schema (anyOf)"))
        if best is not None:
            main.merge(best)

    def _one_of(self, main: Result, value: JSONValue, path: str, correlation: Correlation | None) -> None:
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
        main.add(lost(f"{quoted(path)} must validate one and only one schema (oneOf). {end}"))
        if best is not None:
            main.merge(best)
