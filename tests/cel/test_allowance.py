"""Tests for evaluations with a cost allowance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubetwist.api.requestscope import MAX_SIZE_IN_REACTOR, RequestScope
from kubetwist.cel.allowance import (
    EVALUATION_BASE_COST,
    MAX_REACTOR_COST,
    AllowanceExceeded,
    compute_rules,
    current_allowance,
    with_allowance,
)
from kubetwist.cel.errors import EvaluationError

from .support import VALUES, CelTestCase


class AllowanceTests(CelTestCase):
    """Tests for L{with_allowance}."""

    def test_cheap(self) -> None:
        """Evaluations within the allowance have their usual value, cost and errors."""
        for text in ("i + 1", "ints.all(x, x > 0)"):
            program = self.compile(text)
            self.assertEqual(with_allowance(program.evaluate, VALUES), program.evaluate(VALUES))
        error = self.assertRaises(EvaluationError, with_allowance, self.compile("1 / (i - i)").evaluate, VALUES)
        self.assertEqual(error.message, "division by zero")

    def test_expensive(self) -> None:
        """An evaluation beyond the allowance is cancelled, which no operator absorbs."""
        values = {**VALUES, "ints": [1] * MAX_REACTOR_COST}
        for text in ("ints.all(x, x > 0)", "ints.all(x, x > 0) || true", "[ints].all(l, l.all(x, x > 0)) || flag"):
            program = self.compile(text)
            self.assertRaises(AllowanceExceeded, with_allowance, program.evaluate, values)
            self.assertTrue(program.evaluate(values)[0])

    def test_shared_allowance(self) -> None:
        """All evaluations within one call share the allowance, and each has a minimum cost."""
        program = self.compile("i + 1")
        _, cost = program.evaluate(VALUES)
        made: list[int] = []

        def evaluate_often() -> None:
            while True:
                program.evaluate(VALUES)
                made.append(1)

        self.assertRaises(AllowanceExceeded, with_allowance, evaluate_often)
        self.assertLessEqual(len(made) * (cost + EVALUATION_BASE_COST), MAX_REACTOR_COST)
        self.assertIsNone(current_allowance.get())

    def test_cost_limit(self) -> None:
        """An evaluation that exceeds its cost limit fails with that error, with or without an allowance."""
        program = self.compile("ints.all(x, x > 0)")
        error = self.assertRaises(EvaluationError, with_allowance, program.evaluate, VALUES, 2)
        self.assertTrue(error.cost_exceeded)


class ComputeRulesTests(CelTestCase):
    """Tests for L{compute_rules}."""

    threaded = 0

    async def in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function as the computation thread does."""
        self.threaded += 1
        return function(*arguments)

    def computed(self, scope: RequestScope, size: int, text: str, count: int = 1) -> tuple[Any, int]:
        """Evaluate an expression, and return its value and the number of computations in the thread."""
        values = {**VALUES, "ints": [1] * count}
        coroutine = compute_rules(scope, size, self.compile(text).evaluate, values)
        with self.assertRaises(StopIteration) as caught:
            coroutine.send(None)
        return caught.exception.value[0], self.threaded

    def test_no_thread(self) -> None:
        """Without a computation thread, expressions of any cost are evaluated immediately."""
        self.assertEqual(
            (True, 0), self.computed(RequestScope(), MAX_SIZE_IN_REACTOR + 1, "ints.all(x, x > 0)", MAX_REACTOR_COST)
        )

    def test_cheap(self) -> None:
        """A cheap evaluation for a small object runs immediately."""
        self.assertEqual((True, 0), self.computed(RequestScope(in_thread=self.in_thread), 10, "ints.all(x, x > 0)"))

    def test_expensive(self) -> None:
        """An expensive evaluation for a small object is repeated in the thread."""
        self.assertEqual(
            (True, 1), self.computed(RequestScope(in_thread=self.in_thread), 10, "ints.all(x, x > 0)", MAX_REACTOR_COST)
        )

    def test_large(self) -> None:
        """An evaluation for a large object runs in the thread."""
        self.assertEqual(
            (True, 1),
            self.computed(RequestScope(in_thread=self.in_thread), MAX_SIZE_IN_REACTOR + 1, "i + 1 > 0"),
        )
