"""Tests for L{kubetwist.cel.frame}."""

from __future__ import annotations

from typing import Any

from kubetwist.cel.errors import CelError, EvaluationError
from kubetwist.cel.frame import Activation, LazyFields
from kubetwist.cel.values import Value
from tests.cel.support import VALUES, CelTestCase


class LazyVariableTests(CelTestCase):
    """Tests for variables that are computed at first use."""

    def test_computed_once(self) -> None:
        """A lazy variable is computed once, and only if the evaluation reads it."""
        calls: list[str] = []

        def compute() -> int:
            calls.append("computed")
            return 7

        program = self.compile("flag || i + i == 14")
        program.evaluate(Activation({"flag": True}, {"i": compute}))
        self.assertEqual(calls, [])
        self.assertIs(program.evaluate(Activation({"flag": False}, {"i": compute}))[0], True)
        self.assertEqual(calls, ["computed"])

    def test_fields(self) -> None:
        """A lazy field is computed once; its error is cached, too."""
        calls: list[str] = []

        def fail() -> Value:
            calls.append("failed")
            raise CelError("nothing here")

        variables = LazyFields({"good": lambda: 1, "bad": fail})
        values = {**VALUES, "any": variables}
        self.assertEqual(self.compile("any.good + 1").evaluate(values)[0], 2)
        error = self.assertRaises(EvaluationError, self.compile("any.bad == 1 || any.bad == 2").evaluate, values)
        self.assertEqual((error.message, calls), ("nothing here", ["failed"]))

    def test_fields_not_ready(self) -> None:
        """A field whose computation raised another exception than a CEL error is computed again."""
        answers: list[Any] = [TimeoutError(), 1]

        def answer() -> Value:
            found = answers.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        values = {**VALUES, "any": LazyFields({"late": answer})}
        program = self.compile("any.late == 1 || true")
        self.assertRaises(TimeoutError, program.evaluate, values)
        self.assertIs(program.evaluate(values)[0], True)
        self.assertEqual(answers, [])
