"""Tests for L{kubetwist.cel.library.stringformat}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists, text

from kubetwist.cel.library.addresses import IP
from tests.cel.library.support import ExpressionTestCase


class FormatTests(ExpressionTestCase):
    """Tests for C{format}."""

    def test_clauses(self) -> None:
        """Every clause formats the values of its types."""
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
        """C{%s} formats all values with a literal form, and nested values as literals."""
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
        """Invalid formats, and arguments of the wrong type, are errors."""
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
        """A literal format is validated at compile time."""
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
        """An arbitrary format has a result or an error."""
        self.assertIs(self.evaluate("x.format(y) == '' || true", x=one, y=values), True)
