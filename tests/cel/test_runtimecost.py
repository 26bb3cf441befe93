"""Tests for L{kubetwist.cel.runtimecost}."""

from __future__ import annotations

from collections.abc import Mapping

from kubetwist.cel.errors import EvaluationError
from tests.cel.librarycosts import LibraryCostTestCase
from tests.cel.support import VALUES, CelTestCase


class ActualCostTests(CelTestCase):
    """Tests for tracked costs."""

    def assertCosts(self, expected: Mapping[str, int]) -> None:
        """Assert that evaluations have these costs."""
        for text, cost in expected.items():
            self.assertEqual(self.cost(text), cost, text)

    def test_attributes(self) -> None:
        """A variable and each qualifier cost 1; a presence test and the variable in a branch are free."""
        self.assertCosts(
            {
                "i": 1,
                "any.a.b": 3,
                "any['a']['b']": 3,
                "any.list[i - 7]": 5,
                "any.list[counts.one]": 4,
                "has(any.a.b)": 2,
                "has(any.nosuch)": 1,
                "any.?a.?b": 3,
                "any.?nosuch.b.c": 1,
                "flag ? i : 2": 1,
                "(flag ? any : i).a": 2,
                "{'a': ints}.a[0]": 34,
            }
        )

    def test_literals(self) -> None:
        """Constants are free, even if they are nested; lists and maps with variables have a cost."""
        self.assertCosts(
            {
                "1": 0,
                "[1, 2]": 0,
                "{'a': [1]}": 0,
                "duration('1h')": 0,
                "i in [1, 2, 3]": 1,
                "i in []": 0,
                "[i]": 11,
                "{'a': i}": 31,
                "[[1], [i]]": 21,
            }
        )

    def test_operators(self) -> None:
        """Operators cost 1, or depend on the length of strings."""
        long = "'" + "x" * 95 + "'"
        self.assertCosts(
            {
                "i + 1": 2,
                "i == 7": 2,
                "!flag": 2,
                "flag && flag": 2,
                "flag || flag": 1,
                "s == 'text'": 2,
                "s == ''": 1,
                f"{long} + s == ''": 11,
                f"{long} == {long}": 10,
                f"{long} < s": 2,
                f"{long}.startsWith(s)": 11,
                f"{long}.contains(s)": 11,
                f"{long}.matches('^x+$')": 10,
                "ints == ints": 3,
                "ints + ints": 3,
                "2 in ints": 4,
                "size(texts)": 2,
            }
        )

    def test_macros(self) -> None:
        """Comprehensions cost as much as evaluating their expansion, per iteration."""
        self.assertCosts(
            {
                "ints.all(x, x > 0)": 1 + 3 * (3 + 2) + 1,
                "ints.all(x, x > 1)": 1 + (3 + 2) + 2 + 1,
                "ints.exists(x, x > 3)": 1 + 3 * (4 + 2) + 1,
                "ints.exists(x, x == 2)": 1 + 2 * (4 + 2) + 3 + 1,
                "ints.exists_one(x, x == 2)": 1 + 3 * 2 + 2 + 2,
                "ints.map(x, x)": 1 + 3 * (2 + 10 + 1) + 1,
                "ints.map(x, 1)": 1 + 3 * 2 + 1,
                "ints.filter(x, x == 2)": 1 + 3 * 2 + 13 + 1,
                "counts.transformMap(k, v, v)": 1 + 2 * 4 + 1,
                "[].all(x, true)": 1,
                "cel.bind(x, ints.size(), x + x)": 2 + 3,
                "cel.bind(x, ints.size(), true)": 0,
            }
        )

    def test_failures(self) -> None:
        """The cost before a failure counts, even if an operator absorbs the failure."""
        self.assertCosts({"any.nosuch == 1 || true": 3, "i / 0 == 1 || flag": 4, "any.a.n.c == 'x' || true": 5})
        error = self.assertRaises(EvaluationError, self.evaluate, "i + 1 / 0")
        self.assertEqual(error.cost, 3)

    def test_limit(self) -> None:
        """An evaluation that exceeds its cost limit is cancelled, which no operator absorbs."""
        for text in ("ints.all(x, x > 0)", "ints.all(x, x > 0) || true", "i + i + i + i + i + i + i"):
            program = self.compile(text)
            error = self.assertRaises(EvaluationError, program.evaluate, VALUES, 10)
            self.assertEqual(error.message, "operation cancelled: actual cost limit exceeded")
            self.assertTrue(error.cost_exceeded and error.cost > 10)
        cost = self.cost("ints.all(x, x > 0)")
        program = self.compile("ints.all(x, x > 0)")
        self.assertEqual(program.evaluate(VALUES, cost), (True, cost))
        self.assertRaises(EvaluationError, program.evaluate, VALUES, cost - 1)

    def test_time(self) -> None:
        """An evaluation of any cost that exceeds its time limit is cancelled."""
        program = self.compile("ints.all(x, ints.all(y, x + y >= 0))")
        error = self.assertRaises(EvaluationError, program.evaluate, {"ints": list(range(1000))}, 10**9, timeout=0.0)
        self.assertEqual((error.message, error.interrupted), ("operation interrupted", True))

    def test_growing_lists(self) -> None:
        """Repeatedly doubling a list fails before memory is exhausted."""
        text = "ints"
        for _ in range(60):
            text = f"cel.bind(x, {text}, x + x)"
        error = self.assertRaises(EvaluationError, self.evaluate, f"{text}.size() > 0")
        self.assertTrue(error.cost_exceeded)
        doubled = self.evaluate("cel.bind(x, ints, x + x)", ints=list(range(1500)))
        self.assertEqual((len(doubled), doubled[1499], doubled[1500], doubled[-1]), (3000, 1499, 0, 1499))
        self.assertEqual(list(doubled)[1498:1502], [1498, 1499, 0, 1])


class LibraryCostTests(LibraryCostTestCase):
    """Tests for costs that libraries define."""

    def test_prices(self) -> None:
        """The cost of an overload takes precedence over the cost model, and that over the default."""
        values = {"i": 5, "any": "x", "s": "y"}
        for text, cost in {
            "weigh(i)": 6,
            "pair(i)": 21,
            "pair(s)": 8,
            "pair(any)": 31,
            "s.grow() == s": 4,
        }.items():
            self.assertEqual(self.compile(text).evaluate(values)[1], cost, text)
