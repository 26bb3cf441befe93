"""Tests for L{kubetwist.cel.ast}."""

from __future__ import annotations

from itertools import count

from kubetwist.cel.ast import Builder, Call, Comprehension, Expr, Ident, Literal, Select, children, walk

from .support import CelTestCase

TEXT = "any.a.filter(x, x > 1 && has(x.b)).map(x, [{'k': x.?c.orValue(i)}]).size() == 2"
_WORDS = {Ident: "name", Select: "field", Call: "function", Literal: "value", Comprehension: "iter_var"}


def word(expr: Expr) -> str:
    """Return the attribute that distinguishes a node from other nodes of its type."""
    return str(getattr(expr, _WORDS.get(type(expr), ""), ""))


def format_tree(expr: Expr) -> str:
    """Return a tree without its ids."""
    return f"{type(expr).__name__} {word(expr)}({', '.join(map(format_tree, children(expr)))})"


class TreeTests(CelTestCase):
    """Tests for L{walk}, L{children} and L{Builder}."""

    def test_walk(self) -> None:
        """L{walk} visits every node once, in depth-first order."""
        root = self.compile("i + ints[0] * s.size()").checked.root
        self.assertEqual(list(map(word, walk(root))), ["_+_", "i", "_*_", "_[_]", "ints", "0", "size", "s"])

    def test_ids(self) -> None:
        """Each node of an expression has a unique id, including nodes of macro expansions."""
        ids = [node.id for node in walk(self.compile(TEXT).checked.root)]
        self.assertEqual(len(ids), len(set(ids)))

    def test_deep(self) -> None:
        """L{walk} handles a chain of thousands of terms without recursion."""
        root = self.compile(" && ".join(["flag"] * 3000)).checked.root
        self.assertEqual(sum(isinstance(node, Ident) for node in walk(root)), 3000)

    def test_copy(self) -> None:
        """A copy is an equal tree with new ids, each derived from the id of the copied node."""
        root = self.compile(TEXT).checked.root
        ids = count(10_000)
        sources: list[int] = []

        def copied(of: int) -> int:
            sources.append(of)
            return next(ids)

        copy = Builder(lambda: next(ids), copied).copy(root)
        self.assertEqual(format_tree(copy), format_tree(root))
        self.assertTrue({node.id for node in walk(root)} <= set(sources))
        self.assertFalse({node.id for node in walk(root)} & {node.id for node in walk(copy)})

    def test_build(self) -> None:
        """Nodes get the ids that C{next_id} returns, one each."""
        ids = count(1)
        builder = Builder(lambda: next(ids), lambda of: of)
        made = builder.call("f", builder.literal(1), builder.select(builder.ident("a"), "b"))
        self.assertEqual(format_tree(made), "Call f(Literal 1(), Select b(Ident a()))")
        self.assertEqual(sorted(node.id for node in walk(made)), [1, 2, 3, 4])
        self.assertEqual(word(builder.result()), Builder.accumulator)
