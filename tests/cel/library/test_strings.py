"""Tests for what L{kubetwist.cel.library} has for texts: C{strings}, C{stringformat}, C{regex}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists, text

from kubetwist.cel.library.addresses import IP

from .support import ExpressionTestCase

_TEXT = text("abé😀 ,", max_size=12)


class StringTests(ExpressionTestCase):
    """Functions on texts."""

    def test_parts(self) -> None:
        """Texts are taken apart by code points."""
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
        """Letters of ASCII change their case; what is found is replaced; blanks of Unicode are trimmed."""
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
        """Indices outside of the text are errors."""
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
        """What came into cel-go later is not there."""
        self.assertRefused(
            {"'abc'.reverse()": "found no matching overload for 'reverse' applied to 'string.()'"},
        )

    @given(_TEXT, _TEXT)
    def test_algebra(self, one: str, other: str) -> None:
        """Splitting and joining undo each other; what is found is there."""
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
        """Whatever the indices, there is a part or an error."""
        for one in texts:
            good = 0 <= start <= end <= len(one)
            if good:
                self.assertEqual(self.evaluate("x.substring(i, j)", x=one, i=start, j=end), one[start:end])
            else:
                self.assertIs(self.evaluate("true || x.substring(i, j) == ''", x=one, i=start, j=end), True)

    def test_costs(self) -> None:
        """Reading a text costs a tenth of its length, and making one from it as much again."""
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
        """Texts that would fill the memory are not made."""
        exceeded = "operation cancelled: actual cost limit exceeded"
        self.assertFails(
            {"x.replace('', x)": exceeded, "x.replace('a', x)": exceeded, "y.join(x)": exceeded},
            x="a" * 1_000_000,
            y=["a"] * 1_000,
        )


class FormatTests(ExpressionTestCase):
    """C{format}, in the manner of C's printf."""

    def test_clauses(self) -> None:
        """Every clause shows its sort of values."""
        self.assertHolds(
            (
                "'no clause, 100%%'.format([]) == 'no clause, 100%'",
                "'%s and %s'.format(['a', 'b']) == 'a and b'",
                "'%d %d'.format([1, -2]) == '1 -2' && '%d'.format([3u]) == '3'",
                "'%.3f'.format([1.2345]) == '1.234' && '%f'.format([2.71828]) == '2.718280'",
                "'%.2f'.format([1234567.891]) == '1,234,567.89' && '%.0f'.format([-0.0]) == '0'",
                "'%e'.format([2.71828]) == '2.718280×10⁰⁰'",
                "'%.1e'.format([0.00012]) == '1.200000×10⁻⁰⁴'",
                "'%.15e'.format([0.00012]) == ' 1.200000×10⁻⁰⁴' && '%.3e'.format([1.0 / 0.0]) == '  ∞'",
                "'%.256f'.format([1.5]) == '1.5' && '%.258f'.format([2.0]) == '2.00'",
                "'%f %f %f'.format(['NaN', 'Infinity', '-Infinity']) == 'NaN ∞ -∞'",
                "'%b %b'.format([5, -5]) == '101 -101' && '%b'.format([true]) == '1'",
                "'%o'.format([11]) == '13' && '%x'.format([30]) == '1e' && '%X'.format([-30]) == '-1E'",
                "'%x'.format(['Hello']) == '48656c6c6f' && '%X'.format([b'\\x00\\xff']) == '00FF'",
            )
        )

    def test_values(self) -> None:
        """C{%s} shows everything that has a literal; within lists and maps as that literal."""
        self.assertHolds(
            (
                "'%s'.format([null]) == 'null' && '%s'.format([true]) == 'true' && '%s'.format([2.71]) == '2.71'",
                "'%s'.format([type('')]) == 'string' && '%s'.format([b'xyz']) == 'xyz'",
                "'%s'.format([duration('1h45m47s')]) == '6347s'",
                "'%s'.format([timestamp('2023-02-03T23:31:20+00:00')]) == '2023-02-03T23:31:20Z'",
                "'%s'.format([[2.71]]) == '[2.710000]'",
                "'%s'.format([x]) == "
                """'["a\\\\"b", 3.140000, null, [9], timestamp("1970-01-01T00:00:00Z"), b"c", int, "NaN"]'""",
                """'%s'.format([{'b': duration('2h'), 'a': duration('1s')}]) == """
                """'{"a":duration("1s"), "b":duration("7200s")}'""",
                """'%s'.format([{2: 'x', 1: 'y'}]) == '{1:"y", 2:"x"}'""",
            ),
            x=self.evaluate(
                "[dyn('a\"b'), dyn(3.14), dyn(null), dyn([9]), dyn(timestamp(0)), dyn(b'c'), dyn(int), "
                "dyn(double('NaN'))]"
            ),
        )

    def test_failures(self) -> None:
        """Formats that make no sense, and values that do not fit, are errors."""
        wrong = "error during formatting: "
        clause = "could not parse formatting clause: "
        self.assertFails(
            {
                "f.format([1, 2])": "index 2 out of range",
                "'%a'.format(x)": f'{clause}unrecognized formatting clause "a"',
                "'%'.format(x)": "unexpected end of string",
                "'%.34'.format(x)": f"{clause}error while parsing precision: could not find end of precision specifier",
                "'%d'.format([dyn('1')])": f"{wrong}decimal clause can only be used on integers, was given string",
                "'%f'.format([dyn('1')])": f"{wrong}fixed-point clause can only be used on doubles, was given string",
                "'%e'.format([dyn(1)])": f"{wrong}scientific clause can only be used on doubles, was given int",
                "'%b'.format(y)": f"{wrong}only integers and bools can be formatted as binary, was given string",
                "'%o'.format(y)": f"{wrong}octal clause can only be used on integers, was given string",
                "'%x'.format([dyn(0.5)])": f"{wrong}only integers, byte buffers, and strings can be formatted as hex, "
                "was given double",
                "'%s'.format([a])": f"{wrong}string clause can only be used on strings, bools, bytes, ints, doubles, "
                "maps, lists, types, durations, and timestamps, was given net.IP",
                "'%s'.format([b'\\xff'])": f'{wrong}could not convert argument "invalid UTF-8 in bytes, '
                'cannot convert to string" to string',
                "'%s'.format([[a]])": f"{wrong}no formatting function for net.IP",
            },
            f="%d %d %d",
            x=[1],
            y=["abc"],
            a=self.evaluate("ip('1.2.3.4')"),
        )
        self.assertEqual(IP.cel_type.name, "net.IP")

    def test_checked(self) -> None:
        """A format that is a literal is checked before it is used."""
        wrong = "error during formatting: "
        self.assertRefused(
            {
                "'%d'.format(['1'])": f"{wrong}decimal clause can only be used on integers, was given string",
                "'%s %s'.format(['a'])": "index 1 out of range",
                "'%'.format([])": "unexpected end of string",
                "'%s'.format(['a', 'b'])": "too many arguments supplied to string.format (expected 1, got 2)",
                "'%q'.format([1])": 'could not parse formatting clause: unrecognized formatting clause "q"',
                "'%s'.format([[ip('::1')]])": f"{wrong}string clause can only be used on strings, bools, bytes, ints, "
                "doubles, maps, lists, types, durations, and timestamps, was given net.IP",
            }
        )

    @given(text("%.9dsfexXob ", max_size=8), lists(integers(), max_size=3))
    def test_any_format(self, one: str, values: list[int]) -> None:
        """Whatever the format, there is a text or an error."""
        self.assertIs(self.evaluate("x.format(y) == '' || true", x=one, y=values), True)


class RegexTests(ExpressionTestCase):
    """Finding by regular expressions."""

    def test_find(self) -> None:
        """The first match, or all; empty matches count where no other ends."""
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
        """A search costs the length of the text, times that of the expression."""
        self.assertCosts({"x.find('abcdefgh')": 1 + 11 * 2, "x.findAll('a')": 1 + 11}, x="b" * 100)

    def test_hostile(self) -> None:
        """Expressions that blow up elsewhere take no longer than others, and huge ones are refused."""
        self.assertHolds(("x.find('(a*)*b') == ''",), x="a" * 10_000)
        self.assertFails(
            {"'a'.find(x)": "Illegal regex: error parsing regexp: invalid repeat count: `{100}`"},
            x="((a{100}){100}){100}",
        )
