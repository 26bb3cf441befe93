"""What the tests of CEL's libraries share: expressions in the environment of Kubernetes."""

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
    """Asserts things of expressions."""

    def evaluate(self, text: str, **variables: Any) -> Any:
        """The value of an expression, whose variables are of any type."""
        return _compiled(text, tuple(variables)).evaluate(variables)[0]

    def cost(self, text: str, **variables: Any) -> int:
        """What an expression costs."""
        return _compiled(text, tuple(variables)).evaluate(variables)[1]

    def assertHolds(self, expressions: Iterable[str], **variables: Any) -> None:
        """All of these are true."""
        for text in expressions:
            try:
                value = self.evaluate(text, **variables)
            except (CompileErrors, EvaluationError) as error:
                value = error
            self.assertIs(value, True, f"{text}: {value}")

    def assertFails(self, problems: Mapping[str, str], **variables: Any) -> None:
        """Evaluation of all of these fails, with these messages."""
        for text, message in problems.items():
            with self.assertRaises(EvaluationError) as raised:
                self.evaluate(text, **variables)
            self.assertEqual(raised.exception.message, message, text)

    def assertRefused(self, problems: Mapping[str, str]) -> None:
        """None of these compiles; the first issue has this message."""
        for text, message in problems.items():
            with self.assertRaises(CompileErrors) as raised:
                kubernetes_environment().compile(text)
            self.assertEqual(raised.exception.issues[0].message, message, text)

    def assertCosts(self, prices: Mapping[str, int], **variables: Any) -> None:
        """Evaluation of these costs this much."""
        for text, price in prices.items():
            self.assertEqual(self.cost(text, **variables), price, text)
