"""
Validation of values by an OpenAPI schema.

L{SchemaValidator.accepts} is a compiled function for valid values. For invalid values, L{SchemaValidator.problems}
returns the errors with the texts and in the order of kubernetes/kube-openapi, C{pkg/validation/validate}. On updates,
errors of unchanged values are ignored: kubernetes/apiextensions-apiserver, C{pkg/apiserver/validation/ratcheting.go}.
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
)
from ...api.go.quote import quoted
from ...api.go.text import go_text
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from .compiling import (
    ValidationBudget,
    ValidationBudgetExceeded,
    compile_schema,
)
from .conditions import Conditions
from .constraints import (
    distinct,
    fits_int64,
)
from .correlation import CorrelatedObject
from .result import (
    Problem,
    Result,
    composite_error,
    invalid_value,
    too_many,
    type_problem,
)

__all__ = ["CorrelatedObject", "Problem", "Result", "SchemaValidator", "ValidationBudgetExceeded"]


class SchemaValidator(Conditions):
    """Validator of one schema."""

    # --- fast validation

    def accepts(self, value: JSONValue) -> bool:
        """
        Return whether a value is valid.

        @raise ValidationBudgetExceeded: The validation needs too many alternatives.
        """
        ValidationBudget.reset()
        return self.compiled()(value)

    def compiled(self) -> Callable[[JSONValue], bool]:
        """Return L{accepts} as a compiled function."""
        return compile_schema(self)

    # --- validation with errors

    def problems(self, value: JSONValue, path: str = "", correlation: CorrelatedObject | None = None) -> list[Problem]:
        """
        Return all errors of a value.

        @param path: The path in messages.
        @param correlation: The correlation with the old value.
        @raise ValidationBudgetExceeded: The validation needs too many alternatives.
        """
        ValidationBudget.reset(collecting_errors=True)
        result = self._validate_ratcheting(value, path, correlation)
        return result.problems

    def _validate_ratcheting(self, value: JSONValue, path: str, correlation: CorrelatedObject | None) -> Result:
        """Call L{check}, and ignore the errors of an unchanged value."""
        result = self.check(value, path, correlation)
        if result.problems and correlation is not None and correlation.unchanged:
            result = Result(matches=result.matches)
        return result

    def check(self, value: JSONValue, path: str, correlation: CorrelatedObject | None = None) -> Result:
        """Validate one value; the order of the checks is the order of the errors."""
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

    def _enum(self, value: JSONValue, path: str) -> Result:
        if self.enum is None or value in self.choices:
            return Result()
        choices = [choice if isinstance(choice, str) else go_json(choice, sort_keys=True) for choice in self.enum]
        supported = ", ".join(map(quoted, choices))
        message = f"Unsupported value: {shown(value)}: supported values: {supported}"
        text = f"{path} in body should be one of {go_text(self.enum)}"
        return Result([Problem(text, "FieldValueNotSupported", message, path)])

    def _string(self, value: str, path: str) -> Result:
        """Return only the first error of a string."""
        if self.max_length is not None and len(value) > self.max_length:
            text = f"{path} in body should be at most {self.max_length} chars long"
            message = f"Too long: may not be more than {counted(self.max_length, 'bytes')}"
            earlier = f"Too long: may not be longer than {self.max_length}"
            return Result([Problem(text, "FieldValueTooLong", message, path, earlier)])
        if self.min_length is not None and len(value) < self.min_length:
            return Result([invalid_value(path, value, f"should be at least {self.min_length} chars long")])
        if self.pattern and not self.regexp.search(value):
            return Result([invalid_value(path, value, f"should match '{self.pattern}'")])
        return Result()

    def _list(self, value: list[JSONValue], path: str, correlation: CorrelatedObject | None) -> Result:
        result = Result(matches=1)
        if self.items is not None:
            for index, item in enumerate(value):
                child_correlation = correlation.index(index) if correlation is not None else None
                result.merge(self.items._validate_ratcheting(item, f"{path}[{index}]", child_correlation))
        size = len(value)
        if self.min_items is not None and size < self.min_items:
            result.add(invalid_value(path, size, f"should have at least {self.min_items} items"))
        if self.max_items is not None and size > self.max_items:
            result.add(too_many(path, size, self.max_items, "items"))
        if self.unique_items and not distinct(value):
            result.add(invalid_value(path, "", "shouldn't contain duplicates"))
        return result

    def _object(self, value: JSONObject, path: str, correlation: CorrelatedObject | None) -> Result:
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
                    child_correlation = correlation.key(name) if correlation is not None else None
                    result.merge(self.additional._validate_ratcheting(item, f"{path}.{name}", child_correlation))
        for name, subschema in self.properties.items():
            if name in value:
                field_path = f"{path}.{name}" if path else name
                child_correlation = correlation.key(name) if correlation is not None else None
                if not path and name in ("kind", "apiVersion"):
                    # Both objects have the requested version, so that changes of these fields are not visible.
                    child_correlation = None
                result.merge(subschema._validate_ratcheting(value[name], field_path, child_correlation))
        for name in self.required:
            if name not in value:
                field_path = f"{path}.{name}"
                result.add(
                    Problem(f"{field_path} in body is required", "FieldValueRequired", "Required value", field_path)
                )
        return result

    def _combined(self, value: JSONValue, path: str, correlation: CorrelatedObject | None) -> Result:
        main = Result(matches=1)
        ValidationBudget.consume(len(self.all_of) + len(self.any_of) + len(self.one_of) + (self.negated is not None))
        if self.any_of:
            self._any_of(main, value, path, correlation)
        if self.one_of:
            self._one_of(main, value, path, correlation)
        if self.all_of:
            results = [subschema.check(value, path, correlation) for subschema in self.all_of]
            for result in results:
                main.merge(result)
            failed = sum(1 for result in results if result.problems)
            if failed:
                suffix = ". None validated" if failed == len(results) else ""
                main.add(composite_error(f"{quoted(path)} must validate all the schemas (allOf){suffix}"))
        if self.negated is not None and not self.negated.check(value, path, correlation).problems:
            main.add(composite_error(f"{quoted(path)} must not validate the schema (not)"))
        return main

    def _any_of(self, main: Result, value: JSONValue, path: str, correlation: CorrelatedObject | None) -> None:
        best: Result | None = None
        for subschema in self.any_of:
            result = subschema.check(value, path, correlation)
            if not result.problems:
                main.merge(result)
                return
            if best is None or result.matches > best.matches:
                best = result
        main.add(composite_error(f"{quoted(path)} must validate at least one schema (anyOf)"))
        if best is not None:
            main.merge(best)

    def _one_of(self, main: Result, value: JSONValue, path: str, correlation: CorrelatedObject | None) -> None:
        best: Result | None = None
        good: list[Result] = []
        for subschema in self.one_of:
            result = subschema.check(value, path, correlation)
            if not result.problems:
                good.append(result)
                best = None
            elif not good and (best is None or result.matches > best.matches):
                best = result
        if len(good) == 1:
            main.merge(good[0])
            return
        suffix = f"Found {len(good)} valid alternatives" if good else "Found none valid"
        main.add(composite_error(f"{quoted(path)} must validate one and only one schema (oneOf). {suffix}"))
        if best is not None:
            main.merge(best)
