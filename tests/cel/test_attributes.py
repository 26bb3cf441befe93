"""Tests for L{kubetwist.cel.attributes}."""

from __future__ import annotations

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import EvaluationError
from kubetwist.cel.values import NONE
from tests.cel.support import CelTestCase


class SelectionTests(CelTestCase):
    """Tests for selections, keys and indices."""

    def test_paths(self) -> None:
        """Selections and indices return values in nested maps and lists."""
        self.assertValues(
            {
                "any.a.b": "text",
                "any['a']['b']": "text",
                "any.list[2].x": 1.5,
                "any.list[size(texts) - 1].x": 1.5,
                "any.list[0.0]": 1,
                "any['dash-ed']": True,
                "counts.one + counts['two']": 3,
                "{1: 'int', 2: 'two'}[dyn(1u)]": "int",
                "{'a': 1}.a": 1,
                "(flag ? any.a : any).b": "text",
            }
        )

    def test_missing(self) -> None:
        """A missing key or index is an error that contains it."""
        self.assertFails(
            {
                "any.nosuch": "no such key: nosuch",
                "any.a.b.c": "no such key: c",
                "any.a.n.c": "no such key: c",
                "counts['three']": "no such key: three",
                "any[1]": "no such key: 1",
                "any[true]": "no such key: true",
                "ints[3]": "index out of bounds: 3",
                "ints[i - 8]": "index out of bounds: -1",
                "any.list['a']": "unsupported index type 'string' in list",
                "any.list[0.5]": "unsupported index value 0.5 in list",
                "i == 7 ? any.nosuch.x : 1": "no such key: nosuch",
            }
        )

    def test_presence(self) -> None:
        """C{has} tests the presence of the last field without an error."""
        self.assertValues(
            {
                "has(any.a.b)": True,
                "has(any.a.n)": True,
                "has(any.nosuch)": False,
                "has(any.a.b.c)": False,
                "has(counts.one)": True,
                "has(any.?nosuch.x)": False,
                "'a' in any && !('z' in any)": True,
                "2 in any.list && !(5 in any.list)": True,
                "i in [1, 7]": True,
                "d in [2.5]": True,
                "dyn(1.0) in [1, 2]": True,
                "dyn(true) in [1]": False,
                "any.nosuch in [] || true": True,
            }
        )
        self.assertFails({"has(any.nosuch.x)": "no such key: nosuch"})

    def test_optionals(self) -> None:
        """An optional selection of a missing value, and every selection after it, is an empty optional."""
        self.assertValues({"any.?nosuch.b == optional.none()": True, "any.?a.b == optional.of('text')": True})
        self.assertIs(self.evaluate("any.?nosuch.b.c"), NONE)
        self.assertEqual(self.evaluate("any[?'a'].b").value, "text")
        self.assertEqual(self.evaluate("ints[?1]").value, 2)
        self.assertIs(self.evaluate("ints[?9]"), NONE)
        self.assertEqual(self.evaluate("[1, ?ints[?1], ?ints[?9]]"), [1, 2])
        self.assertEqual(self.evaluate("{'a': 1, ?'b': ints[?0], ?'c': ints[?9]}"), {"a": 1, "b": 1})
        self.assertEqual(self.evaluate("any.?a.optMap(x, x.b + '!').orValue('none')"), "text!")

    def test_keys_of_different_types(self) -> None:
        """Maps distinguish the keys C{true} and 1."""
        for key, found in ((1, "int"), (True, "bool")):
            environment = Environment({"m": types.DYN, "k": types.DYN})
            program = environment.compile("m[k]")
            self.assertEqual(program.evaluate({"m": {key: found}, "k": key})[0], found)
            other = True if key is not True else 1
            self.assertRaises(EvaluationError, program.evaluate, {"m": {key: found}, "k": other})
        both = "{dyn(1): 'int', dyn(true): 'bool', dyn('a'): 'text', dyn(0): 'zero'}"
        self.assertValues(
            {
                f"{both}[1]": "int",
                f"{both}[dyn(true)]": "bool",
                f"{both}[dyn(1.0)]": "int",
                f"{both}.size()": 4,
                f"dyn(false) in {both}": False,
                f"{both}.map(k, {both}[k]).size()": 4,
                f"{both} == {both}": True,
                "{dyn(true): 1, dyn(1): 1} == {dyn(1): 1, dyn(true): 1}": True,
                "{dyn(true): 1, ?dyn(1): optional.none()} == {dyn(true): 1}": True,
            }
        )
