"""Errors of schema validation, with the messages of kubernetes/kube-openapi, C{pkg/validation}."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from attrs import evolve

from ...api.errors import (
    FieldError,
    counted,
    shown,
)
from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue


class Problem(NamedTuple):
    """
    An error of a value.

    @ivar text: The text of kube-openapi, which identifies the error: it is not reported twice.
    @ivar reason: The reason of the cause.
    @ivar message: The message of the cause.
    @ivar name: The path; L{None} for errors without a path.
    @ivar earlier: The message before 1.32, if it was another one.
    """

    text: str
    reason: str
    message: str
    name: str | None
    earlier: str = ""

    def cause(self, prefix: str) -> FieldError:
        """Return the error for the response; C{prefix} is the path of the validated value."""
        name = (self.name or "").removeprefix(".")
        field = f"{prefix}.{name}" if prefix and name else prefix or name
        error = FieldError(self.reason, self.message, field or "<nil>")
        return error.since(1, 32, evolve(error, message=self.earlier)) if self.earlier else error


class Result:
    """
    The result of validating a value against a schema.

    @ivar matches: The match count: of several failed alternatives the one with the highest count is reported.
    """

    __slots__ = ("_texts", "matches", "problems")

    def __init__(self, problems: Iterable[Problem] = (), matches: int = 0) -> None:
        self.problems = list(problems)
        self.matches = matches
        self._texts: set[str] | None = None

    def add(self, *problems: Problem) -> None:
        """Add errors without duplicates."""
        texts = self._texts
        if texts is None:
            texts = self._texts = {problem.text for problem in self.problems}
        for problem in problems:
            if problem.text not in texts:
                texts.add(problem.text)
                self.problems.append(problem)

    def merge(self, other: Result) -> None:
        """Add the errors and the match count of another result."""
        self.matches += other.matches
        if other.problems:
            self.add(*other.problems)


# --- constructors


def type_problem(path: str, expected_type: str, actual: str) -> Problem:
    """Return the error for a value of the wrong type."""
    text = f"{path} in body must be of type {expected_type}: {quoted(actual)}"
    return Problem(text, "FieldValueTypeInvalid", f"Invalid value: {quoted(actual)}: {text}", path)


def invalid_value(path: str, value: JSONValue, message: str) -> Problem:
    """Return the error for an invalid value."""
    text = f"{path} in body {message}"
    return Problem(text, "FieldValueInvalid", f"Invalid value: {shown(value)}: {text}", path)


def too_many(path: str, size: int, limit: int, elements: str) -> Problem:
    """
    Return the error for a list or object with too many elements.

    @param path: The path of the value.
    @param size: The number of elements.
    @param limit: The maximum number.
    @param elements: C{items} or C{properties}.
    """
    text = f"{path} in body should have at most {limit} {elements}"
    return Problem(text, "FieldValueTooMany", f"Too many: {size}: must have at most {counted(limit, 'items')}", path)


def composite_error(text: str) -> Problem:
    """Return an error that has a message only."""
    return Problem(text, "FieldValueInvalid", f'Invalid value: "": {text}', None)
