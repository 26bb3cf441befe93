"""Tests for L{kubetwist.cel.library.kubelists}, L{kubetwist.cel.library.lists} and L{kubetwist.cel.library.sets}."""

from __future__ import annotations

from hypothesis import given

from kubetwist.cel.errors import EvaluationError
from tests.cel.library.support import ExpressionTestCase
from tests.cel.library.values import ANYTHING, NUMBERS


class ExtendedListTests(ExpressionTestCase):
    """Tests for the functions on lists that cel-go adds."""

    def test_slices(self) -> None:
        """Lists are sliced, reversed, flattened and created by C{lists.range}."""
        self.assertHolds(
            (
                "[1, 2, 3, 4].slice(1, 3) == [2, 3]",
                "[1, 2].slice(0, 0) == [] && [1, 2].slice(2, 2) == []",
                "[1, 2, 3].reverse() == [3, 2, 1] && [].reverse() == []",
                "[[1, 2], [3]].flatten() == [1, 2, 3]",
                "[[[1], [2]], [[3]]].flatten() == [[1], [2], [3]]",
                "[[[1], [2]], [[3]]].flatten(2) == [1, 2, 3]",
                "[[1], [2]].flatten(0) == [[1], [2]]",
                "lists.range(3) == [0, 1, 2] && lists.range(0) == [] && lists.range(-1) == []",
                "[1, 2].first() == optional.of(1) && [1, 2].last() == optional.of(2)",
                "![].first().hasValue() && ![].last().hasValue()",
            )
        )
        self.assertFails(
            {
                "[1].slice(-1, 1)": "cannot slice(-1, 1), negative indexes not supported",
                "[1, 2].slice(2, 1)": "cannot slice(2, 1), start index must be less than or equal to end index",
                "[1].slice(0, 2)": "cannot slice(0, 2), list is length 1",
                "[[1]].flatten(-1)": "level must be non-negative",
            }
        )

    def test_sort(self) -> None:
        """C{sort} and C{sortBy} are stable."""
        self.assertHolds(
            (
                "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b'] && [].sort() == []",
                "[2.0, 1.0].sort() == [1.0, 2.0] && [true, false].sort() == [false, true]",
                "['ccc', 'a', 'bb', 'b'].sortBy(s, size(s)) == ['a', 'b', 'bb', 'ccc']",
                "[{'n': 2}, {'n': 1}].sortBy(m, m.n) == [{'n': 1}, {'n': 2}]",
                "[3, 1, 2].map(x, x + 1).sortBy(x, -x) == [4, 3, 2]",
            )
        )
        self.assertFails({"x.sort()": "list elements must have the same type"}, x=[1, "a"])
        self.assertRefused(
            {
                "[[1]].sort()": "found no matching overload for 'sort' applied to 'list(list(int)).()'",
                "[1].sortBy(e.x, e)": "argument is not an identifier",
                "'a'.sortBy(e, e)": "sortBy can only be applied to a list, identifier, comprehension, call or "
                "select expression",
            }
        )

    def test_distinct(self) -> None:
        """C{distinct} keeps the first of equal elements; numbers are equal across types."""
        self.assertHolds(
            (
                "[1, 2, 2, 1, 3].distinct() == [1, 2, 3] && ['b', 'a', 'b'].distinct() == ['b', 'a']",
                "[[1], [1], [2]].distinct() == [[1], [2]] && [].distinct() == []",
                "x.distinct() == [dyn(1), dyn('a'), dyn(true)]",
                "[double('NaN'), double('NaN')].distinct().size() == 2",
            ),
            x=[1, 1.0, "a", True, "a", True],
        )

    @given(ANYTHING)
    def test_algebra(self, values: list[object]) -> None:
        """The distinct elements are a set equivalent to the list, and reversing a list twice returns the list."""
        self.assertHolds(
            (
                "x.distinct().distinct() == x.distinct()",
                "sets.equivalent(x, x.distinct())",
                "x.reverse().reverse() == x",
                "x.slice(0, x.size()) == x",
            ),
            x=values,
        )

    @given(NUMBERS)
    def test_sorted(self, numbers: list[int]) -> None:
        """A sorted list is sorted, and sorting by the negated values reverses it."""
        self.assertEqual(self.evaluate("x.sort()", x=numbers), sorted(numbers))
        self.assertEqual(self.evaluate("x.sortBy(n, -n)", x=numbers), sorted(numbers, reverse=True))

    def test_costs(self) -> None:
        """Creating a list costs the list and its elements; comparing all elements costs the square of their number."""
        self.assertCosts(
            {
                "[1, 2, 3].slice(0, 2)": 13,
                "[[1], [2]].flatten()": 13,
                "lists.range(5)": 16,
                "[1, 2].reverse()": 13,
                "[1, 2, 3].distinct()": 29,
                "[2, 1].sort()": 19,
                "['b', 'a'].sort()": 19,
            }
        )

    def test_hostile(self) -> None:
        """A range that exceeds the cost limit is not created."""
        self.assertFails({"lists.range(9223372036854775807)": "operation cancelled: actual cost limit exceeded"})
        large = [[number] for number in range(20_000)]
        for text_ in ("x.distinct()", "sets.contains(x, x)", "sets.equivalent(x, x)"):
            with self.assertRaises(EvaluationError) as raised:
                self.evaluate(text_, x=large)
            self.assertTrue(raised.exception.cost_exceeded)
