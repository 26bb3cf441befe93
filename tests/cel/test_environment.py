"""Tests for L{kubetwist.cel.environment}."""

from __future__ import annotations

import sys

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CompileErrors, EvaluationError
from kubetwist.cel.functions import Library, function, overload
from kubetwist.cel.types import DYN, INT, STRING


class EnvironmentTests(SynchronousTestCase):
    """Tests for L{Environment}."""

    def test_extend(self) -> None:
        """An extended environment has additional variables, and the original environment is unchanged."""
        base = Environment({"i": INT})
        extended = base.extend({"s": STRING})
        self.assertEqual(extended.compile("s + string(i)").evaluate({"i": 1, "s": "a"})[0], "a1")
        self.assertRaises(CompileErrors, base.compile, "s")

    def test_overloads_of_libraries(self) -> None:
        """Overloads of one function may be in several libraries; of overloads with the same id the first counts."""
        one = Library("one", (function("f", overload("f_int", (INT,), INT, lambda number: number + 1)),))
        two = Library(
            "two",
            (
                function(
                    "f",
                    overload("f_string", (STRING,), STRING, lambda text: text + "!"),
                    overload("f_int", (INT,), INT, lambda number: number + 100),
                ),
            ),
        )
        environment = Environment({}, (one, two))
        self.assertEqual(environment.compile("f(1)").evaluate({})[0], 2)
        self.assertEqual(environment.compile("f('a')").evaluate({})[0], "a!")

    def test_check(self) -> None:
        """An expression can be checked without being compiled."""
        environment = Environment({"i": INT})
        checked = environment.check("i + 1")
        self.assertEqual(checked.types[checked.root.id], INT)
        self.assertRaises(CompileErrors, environment.check, "i + 'a'")


class ProgramTests(SynchronousTestCase):
    """Tests for L{Program}."""

    def test_wrong_values(self) -> None:
        """A value that does not have its declared type causes an evaluation error."""
        program = Environment({"i": INT, "s": STRING}).compile("i + 1 > 2 && s.startsWith('a')")
        for values in ({"i": "a", "s": "a"}, {"i": None, "s": "a"}, {"i": 7, "s": 7}):
            error = self.assertRaises(EvaluationError, program.evaluate, values)
            self.assertIn("no such overload", error.message)

    def test_limits(self) -> None:
        """An evaluation is cancelled at its cost or time limit, and the error distinguishes them."""
        program = Environment({"any": DYN}).compile("any.all(x, any.all(y, x == y))")
        values = {"any": [1] * 300}
        error = self.assertRaises(EvaluationError, program.evaluate, values, 1000)
        self.assertEqual((error.cost_exceeded, error.interrupted), (True, False))
        error = self.assertRaises(EvaluationError, program.evaluate, values, 10**9, 0.0)
        self.assertEqual((error.cost_exceeded, error.interrupted), (False, True))

    def test_recursion_limit_is_restored(self) -> None:
        """Deep expressions are evaluated with a higher recursion limit, which is restored afterwards."""
        before = sys.getrecursionlimit()
        self.assertEqual(Environment().compile("(" * 200 + "1" + ")" * 200).evaluate({})[0], 1)
        program = Environment({"any": DYN}).compile("any" + ".a" * 200)
        self.assertRaises(EvaluationError, program.evaluate, {"any": {}})
        self.assertEqual(sys.getrecursionlimit(), before)
