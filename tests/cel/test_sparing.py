"""Tests for evaluations with a cost allowance."""

from __future__ import annotations

from kubetwist.cel.errors import EvaluationError
from kubetwist.cel.sparing import BRIEF_COST, CALL_COST, TakesLong, allowance, briefly

from .support import VALUES, CelTestCase


class SparingTests(CelTestCase):
    """Tests for L{briefly}."""

    def test_cheap(self) -> None:
        """Evaluations within the allowance have their usual value, cost and errors."""
        for text in ("i + 1", "ints.all(x, x > 0)"):
            program = self.compile(text)
            self.assertEqual(briefly(program.evaluate, VALUES), program.evaluate(VALUES))
        error = self.assertRaises(EvaluationError, briefly, self.compile("1 / (i - i)").evaluate, VALUES)
        self.assertEqual(error.message, "division by zero")

    def test_costly(self) -> None:
        """Evaluations beyond the allowance are cancelled, and no expression can suppress that."""
        values = {**VALUES, "ints": [1] * BRIEF_COST}
        for text in ("ints.all(x, x > 0)", "ints.all(x, x > 0) || true", "[ints].all(l, l.all(x, x > 0)) || flag"):
            program = self.compile(text)
            self.assertRaises(TakesLong, briefly, program.evaluate, values)
            self.assertTrue(program.evaluate(values)[0])

    def test_together(self) -> None:
        """All evaluations within one call share the allowance, and each has a minimum cost."""
        program = self.compile("i + 1")
        _, cost = program.evaluate(VALUES)
        made: list[int] = []

        def evaluate_often() -> None:
            while True:
                program.evaluate(VALUES)
                made.append(1)

        self.assertRaises(TakesLong, briefly, evaluate_often)
        self.assertLessEqual(len(made) * (cost + CALL_COST), BRIEF_COST)
        self.assertIsNone(allowance.get())

    def test_own_limit(self) -> None:
        """An evaluation that exceeds its own limit fails with that error, with or without an allowance."""
        program = self.compile("ints.all(x, x > 0)")
        error = self.assertRaises(EvaluationError, briefly, program.evaluate, VALUES, 2)
        self.assertTrue(error.cost_exceeded)
