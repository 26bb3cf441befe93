"""Tests for L{kubetwist.cel.library.regex}."""

from __future__ import annotations

from tests.cel.library.support import ExpressionTestCase


class RegexTests(ExpressionTestCase):
    """Tests for C{find} and C{findAll}."""

    def test_find(self) -> None:
        """C{find} returns the first match, C{findAll} all, without empty matches at the end of another one."""
        self.assertHolds(
            (
                "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == ''",
                "'123 abc 456'.findAll('[0-9]+') == ['123', '456']",
                "'123 abc 456'.findAll('[0-9]+', 1) == ['123'] && 'a'.findAll('a', 0) == []",
                "'123 abc 456'.findAll('[0-9]+', -1) == ['123', '456'] && 'abc'.findAll('x') == []",
                "'1 a 2'.findAll('[0-9]*') == ['1', '', '', '2']",
                "'é1'.findAll('.') == ['é', '1']",
            )
        )
        self.assertFails({"'a'.find(x)": "Illegal regex: error parsing regexp: missing closing ]: `[a`"}, x="[a")

    def test_costs(self) -> None:
        """A search costs the length of the string times the length of the regular expression."""
        self.assertCosts({"x.find('abcdefgh')": 1 + 11 * 2, "x.findAll('a')": 1 + 11}, x="b" * 100)

    def test_hostile(self) -> None:
        """Regular expressions that cause backtracking elsewhere take linear time, and huge ones are rejected."""
        self.assertHolds(("x.find('(a*)*b') == ''",), x="a" * 10_000)
        self.assertFails(
            {"'a'.find(x)": "Illegal regex: error parsing regexp: invalid repeat count: `{100}`"},
            x="((a{100}){100}){100}",
        )
