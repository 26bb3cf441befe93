"""Tests for L{kubetwist.cel.comprehensions}."""

from __future__ import annotations

from tests.cel.support import CelTestCase


class MacroTests(CelTestCase):
    """Tests for macros that expand to comprehensions."""

    def test_quantifiers(self) -> None:
        """Quantifiers iterate over elements or keys and stop as soon as the result is known."""
        self.assertValues(
            {
                "ints.all(x, x > 0)": True,
                "ints.all(x, x > 1)": False,
                "ints.exists(x, x == 2)": True,
                "ints.exists(x, x > 3)": False,
                "ints.exists_one(x, x > 2)": True,
                "ints.existsOne(x, x > 1)": False,
                "counts.all(k, counts[k] > 0)": True,
                "[].all(x, false)": True,
                "[].exists(x, true)": False,
                "ints.all(n, v, n + 1 == v)": True,
                "counts.exists(k, v, k == 'two' && v == 2)": True,
                "counts.existsOne(k, v, v == 1)": True,
            }
        )

    def test_quantifiers_absorb_errors(self) -> None:
        """A decisive element absorbs errors; without one, the first error is the result."""
        self.assertValues(
            {
                "[0, 1].exists(x, 1 / x > 0)": True,
                "[0, 2].all(x, 4 / x > 3)": False,
            }
        )
        self.assertFails(
            {
                "[0, 1].all(x, 1 / x > 0)": "division by zero",
                "any.list.exists(x, x.y == 1)": "no such key: y",
                "[0, 1].exists_one(x, 1 / x > 0)": "division by zero",
                "dyn([1]).all(x, x)": "no such overload",
            }
        )

    def test_collecting(self) -> None:
        """C{map}, C{filter} and C{transformMap} return lists and maps of all or some elements."""
        self.assertValues(
            {
                "ints.map(x, x * x)": [1, 4, 9],
                "ints.map(x, x > 1, x * x)": [4, 9],
                "ints.filter(x, x != 2)": [1, 3],
                "counts.map(k, counts[k])": [1, 2],
                "ints.map(x, 'same')": ["same", "same", "same"],
                "ints.map(x, ints.filter(y, y < x))": [[], [1], [1, 2]],
                "ints.transformList(n, v, n * v)": [0, 2, 6],
                "ints.transformList(n, v, n > 0, v)": [2, 3],
                "counts.transformMap(k, v, v * 10)": {"one": 10, "two": 20},
                "counts.transformMap(k, v, v > 1, k + '!')": {"two": "two!"},
                "counts.transformMapEntry(k, v, {v: k})": {1: "one", 2: "two"},
            }
        )
        self.assertFails(
            {
                "counts.transformMapEntry(k, v, {'same': v})": "insert failed: key same already exists",
                "ints.map(x, 1 / (x - 2))": "division by zero",
                "ints.filter(x, dyn(x))": "no such overload",
                "dyn(1).map(x, x)": "got 'types.Int', expected iterable type",
                "dyn('a').all(k, v, true)": "unsupported comprehension range type: types.String",
            }
        )

    def test_binding(self) -> None:
        """The value of a bound variable is computed at most once, and only if it is used."""
        self.assertValues(
            {
                "cel.bind(x, i * 2, x + x)": 28,
                "cel.bind(x, 1 / 0, true)": True,
                "cel.bind(x, ints.map(y, y + 1), x[0] + x[1])": 5,
                "cel.bind(x, 1, cel.bind(x, x + 1, x) + x)": 3,
                "ints.map(x, cel.bind(y, x * 10, y + x))": [11, 22, 33],
            }
        )
        self.assertFails({"cel.bind(x, 1 / 0, x == 1 || x == 2)": "division by zero"})
