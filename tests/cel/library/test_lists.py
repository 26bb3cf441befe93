"""Tests for L{kubetwist.cel.library.kubelists}, L{kubetwist.cel.library.lists} and L{kubetwist.cel.library.sets}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import floats, integers, lists, one_of, text

from kubetwist.cel.errors import EvaluationError

from .support import ExpressionTestCase

_ANYTHING = lists(one_of(integers(-3, 3), floats(-3, 3), text("ab", max_size=1), lists(integers(0, 1), max_size=1)))
_NUMBERS = lists(integers(-100, 100))


class KubernetesListTests(ExpressionTestCase):
    """The functions that Kubernetes adds."""

    def test_order(self) -> None:
        """Lists of everything that has an order are known to be sorted, and their ends are found."""
        self.assertHolds(
            (
                "[1, 2, 2, 3].isSorted()",
                "![2, 1].isSorted()",
                "[].isSorted() && [1].isSorted()",
                "['a', 'b'].isSorted() && !['b', 'a'].isSorted()",
                "[false, true].isSorted() && [b'a', b'b'].isSorted()",
                "[duration('1s'), duration('1m')].isSorted()",
                "[timestamp('2020-01-01T00:00:00Z'), timestamp('2021-01-01T00:00:00Z')].isSorted()",
                "[1, 3, 2].max() == 3 && [1, 3, 2].min() == 1",
                "['b', 'a'].max() == 'b' && [1.5, 0.5].min() == 0.5 && [2u, 3u].max() == 3u",
                "[duration('1s'), duration('1m')].max() == duration('60s')",
                "([0] + []).min() == 0",
            )
        )

    def test_sum(self) -> None:
        """Numbers and durations are summed up; nothing sums up to zero."""
        self.assertHolds(
            (
                "[1, 3].sum() == 4",
                "[1.0, 3.0].sum() == 4.0",
                "[1u, 3u].sum() == 4u",
                "[duration('1m'), duration('1s')].sum() == duration('1m1s')",
                "[].sum() == 0",
                "[1.0].filter(x, false).sum() == 0.0",
                "[duration('1m')].filter(x, false).sum() == duration('0s')",
            )
        )

    def test_index(self) -> None:
        """Elements are found from either end, whatever they are; what is not there is at -1."""
        self.assertHolds(
            (
                "[1, 2, 2, 3].indexOf(2) == 1 && [1, 2, 2, 3].lastIndexOf(2) == 2",
                "[1.0].indexOf(1.1) == -1 && [1].lastIndexOf(3) == -1",
                "[].indexOf('string') == -1",
                "[[1], [2]].indexOf([2]) == 1",
                "[{'a': 1}, {'a': 2}].lastIndexOf({'a': 2}) == 1",
                "['b', 'b'].indexOf('b') == 0",
            )
        )

    def test_failures(self) -> None:
        """The ends of nothing, and sums beyond 64 bits, are errors."""
        self.assertFails(
            {
                "[].min()": "min called on empty list",
                "[].max()": "max called on empty list",
                "[9223372036854775807, 1].sum()": "integer overflow",
                "[18446744073709551615u, 1u].sum()": "unsigned integer overflow",
                "[duration('2540400h'), duration('2540400h')].sum()": "duration overflow",
            }
        )

    def test_costs(self) -> None:
        """Looking at every element costs one for each, of texts a tenth of their length."""
        self.assertCosts(
            {
                "x.sum()": 101,
                "x.isSorted()": 101,
                "x.max()": 101,
                "x.indexOf(5)": 101,
                "y.indexOf('z')": 1 + 30,
            },
            x=list(range(100)),
            y=["e" * 99, "e" * 215],
        )

    @given(_NUMBERS)
    def test_algebra(self, numbers: list[int]) -> None:
        """Sums and ends are those of the numbers."""
        self.assertEqual(self.evaluate("x.sum()", x=numbers), sum(numbers))
        if numbers:
            self.assertEqual(self.evaluate("[x.min(), x.max()]", x=numbers), [min(numbers), max(numbers)])
        self.assertEqual(self.evaluate("x.isSorted()", x=numbers), numbers == sorted(numbers))


class ExtendedListTests(ExpressionTestCase):
    """The functions that cel-go adds."""

    def test_parts(self) -> None:
        """Lists are cut, turned round, flattened and made of ranges."""
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
        """Elements are sorted by their order or by that of keys; equal keys leave them as they were."""
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
        """The first of equal elements stays, and numbers are equal across their types."""
        self.assertHolds(
            (
                "[1, 2, 2, 1, 3].distinct() == [1, 2, 3] && ['b', 'a', 'b'].distinct() == ['b', 'a']",
                "[[1], [1], [2]].distinct() == [[1], [2]] && [].distinct() == []",
                "x.distinct() == [dyn(1), dyn('a'), dyn(true)]",
                "[double('NaN'), double('NaN')].distinct().size() == 2",
            ),
            x=[1, 1.0, "a", True, "a", True],
        )

    @given(_ANYTHING)
    def test_algebra(self, values: list[object]) -> None:
        """Distinct elements are a set equivalent to the list; turning a list round twice changes nothing."""
        self.assertHolds(
            (
                "x.distinct().distinct() == x.distinct()",
                "sets.equivalent(x, x.distinct())",
                "x.reverse().reverse() == x",
                "x.slice(0, x.size()) == x",
            ),
            x=values,
        )

    @given(_NUMBERS)
    def test_sorted(self, numbers: list[int]) -> None:
        """What was sorted is sorted, and by the negated keys the other way round."""
        self.assertEqual(self.evaluate("x.sort()", x=numbers), sorted(numbers))
        self.assertEqual(self.evaluate("x.sortBy(n, -n)", x=numbers), sorted(numbers, reverse=True))

    def test_costs(self) -> None:
        """What makes a list costs that list and its elements; what compares them all, the square of their number."""
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
        """A range that nobody could pay for is not made."""
        self.assertFails({"lists.range(9223372036854775807)": "operation cancelled: actual cost limit exceeded"})
        large = [[number] for number in range(20_000)]
        for text_ in ("x.distinct()", "sets.contains(x, x)", "sets.equivalent(x, x)"):
            with self.assertRaises(EvaluationError) as raised:
                self.evaluate(text_, x=large)
            self.assertTrue(raised.exception.cost_exceeded)


class SetTests(ExpressionTestCase):
    """Lists as sets."""

    def test_relations(self) -> None:
        """Order and repetition do not matter; numbers are equal across their types."""
        self.assertHolds(
            (
                "sets.contains([1, 2, 3], [2, 1, 1]) && !sets.contains([1], [1, 2]) && sets.contains([1], [])",
                "sets.equivalent([1, 2], [2, 1, 2]) && !sets.equivalent([1], [1, 2]) && sets.equivalent([], [])",
                "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && !sets.intersects([], [])",
                "sets.contains([[1], [2]], [[2]]) && sets.intersects([{'a': 1}], [{'a': 1}])",
                "sets.contains([dyn(1), dyn(2u)], [dyn(1.0), dyn(2)])",
                "!sets.contains([double('NaN')], [double('NaN')])",
                "!sets.intersects([dyn(true)], [dyn(1)]) && !sets.intersects([dyn('1')], [dyn(1)])",
            )
        )

    @given(_ANYTHING, _ANYTHING)
    def test_algebra(self, one: list[object], other: list[object]) -> None:
        """The relations hang together as those of sets."""
        self.assertHolds(
            (
                "sets.equivalent(x, y) == (sets.contains(x, y) && sets.contains(y, x))",
                "sets.intersects(x, y) == sets.intersects(y, x)",
                "sets.intersects(x, y) == x.exists(e, e in y)",
                "sets.contains(x, y) == y.all(e, e in x)",
                "sets.contains(x + y, x) && sets.contains(x + y, y)",
            ),
            x=one,
            y=other,
        )

    def test_costs(self) -> None:
        """Relations cost the product of the sizes; equivalence twice that."""
        self.assertCosts(
            {"sets.contains(x, y)": 9, "sets.intersects(x, y)": 9, "sets.equivalent(x, y)": 15}, x=[1, 2], y=[1, 2, 3]
        )
