"""Tests for L{kubetwist.cel.macros}."""

from __future__ import annotations

from tests.cel.support import CelTestCase


class ArgumentTests(CelTestCase):
    """Tests for invalid arguments of macros."""

    def test_macros(self) -> None:
        """Errors have the position of the invalid argument."""
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
    """Tests for macros that copy their target."""

    def test_growing_macros(self) -> None:
        """Nested macros that copy their target are limited in the number of nodes."""
        self.assertRefused({"any.?a" + ".optMap(x, x)" * 40: "-1:0: expression node count exceeds limit: 150000"})
