"""Tests for L{kubetwist.cel.library.kubelists}."""

from __future__ import annotations

from hypothesis import given

from tests.cel.library.support import ExpressionTestCase
from tests.cel.library.values import NUMBERS


class KubernetesListTests(ExpressionTestCase):
    """Tests for the functions on lists that Kubernetes adds."""

    def test_order(self) -> None:
        """C{isSorted}, C{min} and C{max} are defined for lists of all comparable types."""
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
        """C{sum} adds numbers and durations, and is zero for an empty list."""
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
        """C{indexOf} and C{lastIndexOf} find elements of all types, and are -1 for missing ones."""
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
        """C{min} and C{max} of an empty list, and sums beyond 64 bits, are errors."""
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
        """Traversing a list costs 1 per element, or a tenth of the length of strings."""
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

    @given(NUMBERS)
    def test_algebra(self, numbers: list[int]) -> None:
        """C{sum}, C{min} and C{max} agree with Python."""
        self.assertEqual(self.evaluate("x.sum()", x=numbers), sum(numbers))
        if numbers:
            self.assertEqual(self.evaluate("[x.min(), x.max()]", x=numbers), [min(numbers), max(numbers)])
        self.assertEqual(self.evaluate("x.isSorted()", x=numbers), numbers == sorted(numbers))
