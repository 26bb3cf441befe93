"""Shared helpers of the tests of CEL's libraries: expressions in the environment of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.environment import Program
from kubetwist.cel.errors import CompileErrors, EvaluationError
from kubetwist.cel.library.environments import kubernetes_environment
from kubetwist.cel.types import DYN


@cache
def _compiled(text: str, variables: tuple[str, ...]) -> Program:
    return kubernetes_environment().extend(dict.fromkeys(variables, DYN)).compile(text)


class ExpressionTestCase(SynchronousTestCase):
    """Assertions on expressions in the environment of Kubernetes."""

    def evaluate(self, text: str, **variables: Any) -> Any:
        """Return the value of an expression, whose variables are dynamic."""
        return _compiled(text, tuple(variables)).evaluate(variables)[0]

    def cost(self, text: str, **variables: Any) -> int:
        """Return the cost of an evaluation."""
        return _compiled(text, tuple(variables)).evaluate(variables)[1]

    def assertHolds(self, expressions: Iterable[str], **variables: Any) -> None:
        """Assert that these expressions are true."""
        for text in expressions:
            try:
                value = self.evaluate(text, **variables)
            except (CompileErrors, EvaluationError) as error:
                value = error
            self.assertIs(value, True, f"{text}: {value}")

    def assertFails(self, problems: Mapping[str, str], **variables: Any) -> None:
        """Assert that these evaluations fail with these messages."""
        for text, message in problems.items():
            with self.assertRaises(EvaluationError) as raised:
                self.evaluate(text, **variables)
            self.assertEqual(raised.exception.message, message, text)

    def assertRefused(self, problems: Mapping[str, str]) -> None:
        """Assert that these expressions do not compile, with this message of the first issue."""
        for text, message in problems.items():
            with self.assertRaises(CompileErrors) as raised:
                kubernetes_environment().compile(text)
            self.assertEqual(raised.exception.issues[0].message, message, text)

    def assertCosts(self, prices: Mapping[str, int], **variables: Any) -> None:
        """Assert that these evaluations have these costs."""
        for text, price in prices.items():
            self.assertEqual(self.cost(text, **variables), price, text)
