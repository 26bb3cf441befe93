"""Tests for functions on strings of L{kubetwist.cel.library}: C{strings}, C{stringformat}, C{regex}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists, text

from tests.cel.library.support import ExpressionTestCase

_TEXT = text("abé😀 ,", max_size=12)


class StringTests(ExpressionTestCase):
    """Tests for functions on strings."""

    def test_parts(self) -> None:
        """Indices of substrings count code points."""
        self.assertHolds(
            (
                "'été'.charAt(0) == 'é' && 'été'.charAt(3) == ''",
                "'été'.indexOf('é') == 0 && 'été'.indexOf('é', 1) == 2 && 'x'.indexOf('y') == -1",
                "'abc'.indexOf('', 7) == 7 && 'abc'.indexOf('a', 3) == -1",
                "'été'.lastIndexOf('é') == 2 && 'été'.lastIndexOf('é', 1) == 0 && 'abc'.lastIndexOf('') == 3",
                "'ab'.lastIndexOf('abc') == -1 && 'abc'.lastIndexOf('c', 7) == -1",
                "'été'.substring(1) == 'té' && 'été'.substring(1, 2) == 't' && 'a'.substring(1) == ''",
                "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'été'.split('') == ['é', 't', 'é']",
                "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a,b'.split(',', 1) == ['a,b'] && 'a,b'.split(',', 0) == []",
                "'a,b'.split(',', -1) == ['a', 'b'] && ''.split(',') == [''] && ''.split('') == []",
                "'abc'.split('', 2) == ['a', 'bc'] && 'ab'.split('', 9) == ['a', 'b']",
                "['a', 'b'].join() == 'ab' && ['a', 'b'].join(', ') == 'a, b' && [].join(',') == ''",
            )
        )

    def test_changes(self) -> None:
        """Case conversion affects ASCII letters only, and C{trim} removes Unicode white space."""
        self.assertHolds(
            (
                "'TÉst'.lowerAscii() == 'tÉst' && 'téSt'.upperAscii() == 'TéST'",
                "'banana'.replace('a', 'o') == 'bonono' && 'banana'.replace('a', 'o', 2) == 'bonona'",
                "'aa'.replace('a', 'b', 0) == 'aa' && 'aa'.replace('a', 'b', -1) == 'bb'",
                "'ab'.replace('', '-') == '-a-b-'",
                "' \\t\\u00a0\\u2009x\\u3000\\n'.trim() == 'x' && '\\u001fx'.trim() == '\\u001fx'",
                r"""strings.quote('a"b\\c\n\t\a') == '"a\\"b\\\\c\\n\\t\\a"'""",
            )
        )

    def test_failures(self) -> None:
        """Indices out of range are errors."""
        self.assertFails(
            {
                "'abc'.charAt(4)": "index out of range: 4",
                "'abc'.charAt(-1)": "index out of range: -1",
                "'abc'.indexOf('a', -1)": "index out of range: -1",
                "'abc'.lastIndexOf('a', -1)": "index out of range: -1",
                "'abc'.substring(4)": "index out of range: 4",
                "'abc'.substring(-1)": "index out of range: -1",
                "'abc'.substring(2, 1)": "invalid substring range. start: 2, end: 1",
                "'abc'.substring(1, 4)": "index out of range: 4",
            }
        )

    def test_absent(self) -> None:
        """Functions of later versions of cel-go's extension are not declared."""
        self.assertRefused(
            {"'abc'.reverse()": "found no matching overload for 'reverse' applied to 'string.()'"},
        )

    @given(_TEXT, _TEXT)
    def test_algebra(self, one: str, other: str) -> None:
        """C{split} and C{join} are inverse, and C{indexOf} returns the position of a substring."""
        self.assertHolds(
            (
                "x.split(y).join(y) == x",
                "x.replace(y, y) == x",
                "x.indexOf(y) == -1 ? !x.contains(y) : x.substring(x.indexOf(y)).startsWith(y)",
                "x.lastIndexOf(y) >= x.indexOf(y)",
                "x.trim().trim() == x.trim()",
                "x.upperAscii().lowerAscii() == x.lowerAscii()",
            ),
            x=one,
            y=other,
        )

    @given(lists(_TEXT), integers(-3, 15), integers(-3, 15))
    def test_any_index(self, texts: list[str], start: int, end: int) -> None:
        """With arbitrary indices there is a result or an error."""
        for one in texts:
            good = 0 <= start <= end <= len(one)
            if good:
                self.assertEqual(self.evaluate("x.substring(i, j)", x=one, i=start, j=end), one[start:end])
            else:
                self.assertIs(self.evaluate("true || x.substring(i, j) == ''", x=one, i=start, j=end), True)

    def test_costs(self) -> None:
        """Reading a string costs a tenth of its length, and creating a result as much again."""
        self.assertCosts(
            {
                "x.lowerAscii()": 1 + 10,
                "x.trim()": 1 + 10,
                "x.substring(1)": 1 + 10,
                "x.replace('a', 'b')": 1 + 20,
                "x.split('b')": 1 + 20,
                "x.indexOf('b')": 1 + 10,
                "[x].join()": 10 + 1 + 20,
            },
            x="a" * 100,
        )

    def test_hostile(self) -> None:
        """Results that would exhaust the memory are not created."""
        exceeded = "operation cancelled: actual cost limit exceeded"
        self.assertFails(
            {"x.replace('', x)": exceeded, "x.replace('a', x)": exceeded, "y.join(x)": exceeded},
            x="a" * 1_000_000,
            y=["a"] * 1_000,
        )
