"""Shared helpers of the tests of CEL: an environment with a few variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel import types
from kubetwist.cel.environment import Environment, Program
from kubetwist.cel.errors import CompileErrors, EvaluationError
from kubetwist.cel.library.optionals import OPTIONALS
from kubetwist.cel.standard import BINDINGS, TWO_VARIABLE_COMPREHENSIONS
from kubetwist.cel.types import Type, list_of, map_of

VARIABLES: Mapping[str, Type] = {
    "any": types.DYN,
    "flag": types.BOOL,
    "i": types.INT,
    "u": types.UINT,
    "d": types.DOUBLE,
    "s": types.STRING,
    "ints": list_of(types.INT),
    "texts": list_of(types.STRING),
    "counts": map_of(types.STRING, types.INT),
}
VALUES: Mapping[str, Any] = {
    "any": {"a": {"b": "text", "n": None}, "list": [1, 2, {"x": 1.5}], "dash-ed": True},
    "flag": True,
    "i": 7,
    "d": 2.5,
    "s": "text",
    "ints": [1, 2, 3],
    "texts": ["a", "bb", "ccc"],
    "counts": {"one": 1, "two": 2},
}

ENVIRONMENT = Environment(VARIABLES, (OPTIONALS, TWO_VARIABLE_COMPREHENSIONS, BINDINGS))


class CelTestCase(SynchronousTestCase):
    """Assertions on expressions."""

    environment = ENVIRONMENT

    def compile(self, text: str) -> Program:
        """Compile an expression."""
        return self.environment.compile(text)

    def evaluate(self, text: str, **values: Any) -> Any:
        """Return the value of an expression."""
        return self.compile(text).evaluate({**VALUES, **values})[0]

    def cost(self, text: str, **values: Any) -> int:
        """Return the cost of an evaluation."""
        return self.compile(text).evaluate({**VALUES, **values})[1]

    def assertValues(self, expected: Mapping[str, Any]) -> None:
        """Assert that expressions have these values, with exactly these types."""
        for text, value in expected.items():
            found = self.evaluate(text)
            self.assertEqual((found, type(found)), (value, type(value)), text)

    def assertFails(self, expected: Mapping[str, str]) -> None:
        """Assert that evaluations fail with these messages."""
        for text, message in expected.items():
            error = self.assertRaises(EvaluationError, self.evaluate, text)
            self.assertEqual(error.message, message, text)

    def assertRefused(self, expected: Mapping[str, str]) -> None:
        """Assert that expressions do not compile, with this first line of the error."""
        for text, message in expected.items():
            error = self.assertRaises(CompileErrors, self.compile, text)
            self.assertEqual(str(error).splitlines()[0], f"ERROR: <input>:{message}", text)
