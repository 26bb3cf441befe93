"""Tests for L{kubetwist.cel.cost}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.estimates import MAX, Estimate
from kubetwist.cel.types import ObjectType, Type, list_of, map_of
from tests.cel.librarycosts import LibraryCostTestCase
from tests.cel.support import ENVIRONMENT, VALUES, CelTestCase


class EstimateTests(CelTestCase):
    """Tests for estimated costs."""

    item = ObjectType("Item", {"name": types.STRING, "tags": list_of(types.STRING)})
    environment = Environment(
        {
            "items": list_of(item),
            "labels": map_of(types.STRING, types.STRING),
            "s": types.STRING,
            "i": types.INT,
            "any": types.DYN,
        }
    )

    @staticmethod
    def sizes(path: tuple[str, ...], _type: Type) -> Estimate | None:
        """Return sizes: ten items with five tags each, five labels, strings of up to twenty characters."""
        return {
            ("items",): Estimate(0, 10),
            ("items", "@items", "tags"): Estimate(0, 5),
            ("items", "@items", "name"): Estimate(0, 20),
            ("items", "@items", "tags", "@items"): Estimate(0, 20),
            ("labels",): Estimate(2, 5),
            ("labels", "@values"): Estimate(0, 20),
            ("labels", "@keys"): Estimate(0, 20),
        }.get(path)

    def test_estimates(self) -> None:
        """Estimated costs follow from the sizes of traversed values and of intermediate results."""
        for expression, expected in {
            "1 + 2": Estimate(1, 1),
            "i == 1 ? [i] : [i, i]": Estimate(13, 14),
            "i > 1 && s == 'abc'": Estimate(2, 4),
            "items.all(x, x.name != '')": Estimate(2, 2 + 10 * (3 + 2 + 0)),
            "items.all(x, x.tags.exists(t, t == 'abc'))": Estimate(2, 2 + 10 * (3 + 2 + 1 + 5 * (4 + 2))),
            "items.map(x, x.name).filter(n, n.startsWith('ab')).size()": Estimate(24, 314),
            "labels.all(k, labels[k].size() > 0)": Estimate(8, 42),
            "has(items[0].name)": Estimate(2, 2),
            "[[1, 2], [3]].map(l, l.size()).size()": Estimate(70, 70),
            "('abc' + 'de').contains('x')": Estimate(2, 2),
            "any.x.y": Estimate(1, 1),
            "dyn(i)": Estimate(2, 2),
        }.items():
            found = self.compile(expression).estimated_cost(self.sizes)
            self.assertEqual(found, expected, expression)

    def test_unknown_sizes(self) -> None:
        """Without sizes the maximum cost is unlimited, without overflow."""
        found = self.compile("items.all(x, items.all(y, x.name == y.name))").estimated_cost()
        self.assertEqual(found.max, MAX)


class EstimatesHoldTests(CelTestCase):
    """Tests that estimated costs are upper bounds."""

    @given(
        strategies.sampled_from(
            (
                "ints.all(x, x > 3)",
                "ints.exists(x, x > 3) || texts.all(t, t.contains('a'))",
                "ints.map(x, x + 1).filter(x, x > 2).size() > 1",
                "texts.exists_one(t, t == s) ? s + s : s",
                "texts.map(t, t + s).all(t, t.contains(s))",
                "s.matches('a+b') && s in texts",
                "texts.all(t, ints.exists(x, x == size(t)))",
            )
        ),
        strategies.lists(strategies.integers(-5, 5), max_size=8),
        strategies.lists(strategies.text("ab", max_size=15), max_size=8),
        strategies.text("ab", max_size=30),
    )
    def test_within(self, expression: str, ints: list[int], texts: list[str], s: str) -> None:
        """
        No evaluation costs more than its estimate for the sizes of its variables. C{startsWith} is left out, since
        cel-go estimates it by the size of the prefix and tracks the size of the string.
        """
        program = ENVIRONMENT.compile(expression)
        longest = max(map(len, texts), default=0)
        sizes: dict[tuple[str, ...], Any] = {
            ("ints",): len(ints),
            ("texts",): len(texts),
            ("texts", "@items"): longest,
            ("s",): len(s),
        }

        def size_of(path: tuple[str, ...], type_: Type) -> Estimate | None:
            return Estimate(0, sizes[path]) if path in sizes else None

        cost = program.evaluate({**VALUES, "ints": ints, "texts": texts, "s": s})[1]
        self.assertLessEqual(cost, program.estimated_cost(size_of).max, (expression, ints, texts, s))


class LibraryEstimateTests(LibraryCostTestCase):
    """Tests for estimates of functions of libraries."""

    def test_estimates(self) -> None:
        """The estimates of the cost model are used, and their result sizes determine further estimates."""

        def size_of(path: tuple[str, ...], type_: Type) -> Estimate | None:
            return Estimate(0, 50) if path == ("s",) else None

        for text, expected in {
            "weigh(i)": Estimate(1, 101),
            "s.grow().startsWith(s)": Estimate(3, 8),
            "s.grow() == s.grow()": Estimate(5, 14),
        }.items():
            self.assertEqual(self.compile(text).estimated_cost(size_of), expected, text)
