"""Tests for L{kubetwist.cel.library.sets}."""

from __future__ import annotations

from hypothesis import given

from tests.cel.library.support import ExpressionTestCase
from tests.cel.library.values import ANYTHING


class SetTests(ExpressionTestCase):
    """Tests for functions on lists as sets."""

    def test_relations(self) -> None:
        """Order and duplicates are ignored; numbers are equal across types."""
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

    @given(ANYTHING, ANYTHING)
    def test_algebra(self, one: list[object], other: list[object]) -> None:
        """Containment, equivalence and intersection are consistent."""
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
        """C{contains} and C{intersects} cost the product of the sizes, C{equivalent} twice the product."""
        self.assertCosts(
            {"sets.contains(x, y)": 9, "sets.intersects(x, y)": 9, "sets.equivalent(x, y)": 15}, x=[1, 2], y=[1, 2, 3]
        )
