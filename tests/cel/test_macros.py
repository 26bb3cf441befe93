"""Tests for L{kubetwist.cel.macros}."""

from __future__ import annotations

from tests.cel.support import CelTestCase


class ArgumentTests(CelTestCase):
    """Tests for the arguments of macros."""

    def test_macros(self) -> None:
        """Macros tell which of their arguments they cannot use."""
        self.assertRefused(
            {
                "has(i)": "1:5: invalid argument to has() macro",
                "ints.all(1, true)": "1:10: argument must be a simple name",
                "ints.map(any.a, 1)": "1:13: argument is not an identifier",
                "ints.filter(__result__, true)": "1:13: iteration variable overwrites accumulator variable",
                "ints.all(x, x, true)": "1:13: duplicate variable name: x",
                "cel.bind(any.a, 1, 2)": "1:13: cel.bind() variable names must be simple identifiers",
            }
        )


class GrowthTests(CelTestCase):
    """Tests for macros that repeat their target."""

    def test_growing_macros(self) -> None:
        """Macros that repeat their target cannot make more of a short text than can be taken."""
        self.assertRefused({"any.?a" + ".optMap(x, x)" * 40: "-1:0: expression node count exceeds limit: 150000"})
