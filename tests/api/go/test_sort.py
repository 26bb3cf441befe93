"""Tests for L{kubetwist.api.go.sort}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.sort import stable_sort


class StableSortTests(SynchronousTestCase):
    """Tests for L{stable_sort} with any comparison."""

    @given(st.lists(st.integers(0, 20), max_size=200))
    def test_orders(self, ranks: list[int]) -> None:
        """For a valid comparison, the result equals any stable sort's."""
        items = list(enumerate(ranks))
        stable_sort(items, lambda one, other: one[1] < other[1])
        self.assertEqual(items, sorted(enumerate(ranks), key=lambda item: item[1]))

    @given(st.lists(st.integers(), max_size=200))
    def test_permutes(self, numbers: list[int]) -> None:
        """For any comparison, the items are preserved."""
        for answer in (True, False):
            items = list(numbers)
            stable_sort(items, lambda one, other, answer=answer: answer)  # type: ignore[misc]
            self.assertEqual(sorted(items), sorted(numbers))

    def test_always_less(self) -> None:
        """If every item is before every other, blocks of 20 are reversed, and each is put before the last one."""
        for size, expected in (
            (3, [2, 1, 0]),
            (20, [*range(19, -1, -1)]),
            (21, [20, *range(19, -1, -1)]),
            (45, [*range(44, -1, -1)]),
        ):
            items = list(range(size))
            stable_sort(items, lambda one, other: True)
            self.assertEqual(items, expected, size)
