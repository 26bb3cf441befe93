"""Tests for L{kubetwist.cel.standard.operators}."""

from __future__ import annotations

import math

from kubetwist.cel.values import UInt
from tests.cel.support import CelTestCase


class OperatorTests(CelTestCase):
    """Tests for operators on operands with static and with dynamic types."""

    def test_integers(self) -> None:
        """Integer division rounds toward zero, and results have the type of the operands."""
        self.assertValues(
            {
                "i / 2": 3,
                "-7 / 2": -3,
                "-7 % 3": -1,
                "7 % -3": 1,
                "7u / 2u": UInt(3),
                "7u - 2u": UInt(5),
                "dyn(7) * dyn(2)": 14,
                "-i": -7,
            }
        )

    def test_integers_overflow(self) -> None:
        """A result beyond 64 bits is an error."""
        self.assertFails(
            {
                "9223372036854775807 + i": "integer overflow",
                "-9223372036854775808 - i": "integer overflow",
                "9223372036854775807 * i": "integer overflow",
                "-(-9223372036854775808 + i - 7)": "integer overflow",
                "(i - 7 - 9223372036854775807 - 1) / -1": "integer overflow",
                "(i - 7 - 9223372036854775807 - 1) % -1": "integer overflow",
                "1u - 2u": "unsigned integer overflow",
                "i / 0": "division by zero",
                "i % 0": "modulus by zero",
                "1u / 0u": "division by zero",
                "dyn(9223372036854775807) + 1": "integer overflow",
            }
        )

    def test_doubles(self) -> None:
        """Doubles follow IEEE 754, and NaN equals nothing."""
        self.assertValues(
            {
                "d * 2.0": 5.0,
                "1.0 / 0.0": math.inf,
                "-1.0 / 0.0": -math.inf,
                "(0.0 / 0.0) == (0.0 / 0.0)": False,
                "(0.0 / 0.0) != 1.0": True,
                "-d": -2.5,
            }
        )
        self.assertFails({"0.0 / 0.0 < 1.0": "NaN values cannot be ordered"})

    def test_joining(self) -> None:
        """C{+} concatenates strings, bytes and lists."""
        self.assertValues(
            {
                "s + 'é'": "texté",
                "b'a' + b'b'": b"ab",
                "ints + [4]": [1, 2, 3, 4],
                "ints + []": [1, 2, 3],
                "dyn('a') + 'b'": "ab",
                "dyn([1]) + [2]": [1, 2],
            }
        )

    def test_equality(self) -> None:
        """Numbers are equal across types, containers by their elements; booleans are not numbers."""
        self.assertValues(
            {
                "dyn(1) == 1.0": True,
                "dyn(1u) == 1": True,
                "dyn(true) == 1": False,
                "dyn([1, 2]) == [1.0, 2.0]": True,
                "dyn({'a': 1}) == {'a': 1u}": True,
                "dyn({'a': 1}) == {'b': 1}": False,
                "dyn([true]) == [1]": False,
                "any.a.n == null": True,
                "any == null": False,
                "dyn('1') == 1": False,
                "s != 'text'": False,
                "ints == [1, 2, 3]": True,
                "ints != [1, 2]": True,
                "type(1.0) == double && type(1) != uint": True,
                "dyn(9007199254740993) == 9007199254740992.0": True,
            }
        )

    def test_order(self) -> None:
        """Values of all comparable types are ordered, numbers across types."""
        self.assertValues(
            {
                "i > 6.5": True,
                "i <= 7u": True,
                "1u < 2.0": True,
                "'a' < 'b'": True,
                "b'a' >= b'b'": False,
                "false < true": True,
                "duration('1s') < duration('1m')": True,
                "timestamp('2020-01-01T00:00:00Z') > timestamp('2019-01-01T00:00:00Z')": True,
                "dyn(1) < dyn(1.5)": True,
            }
        )
        self.assertFails({"dyn(1) < dyn('a')": "no such overload", "dyn([1]) < dyn([2])": "no such overload"})

    def test_logic(self) -> None:
        """Logical operators return a decided result in spite of an error of the other operand."""
        self.assertValues(
            {
                "1 / 0 > 0 || true": True,
                "true || 1 / 0 > 0": True,
                "1 / 0 > 0 && false": False,
                "flag && any.nosuch == 1 && !flag": False,
                "dyn(1) || true": True,
                "flag ? 1 : 1 / 0": 1,
            }
        )
        self.assertFails(
            {
                "1 / 0 > 0 || false": "division by zero",
                "true && 1 % 0 > 0": "modulus by zero",
                "1 / 0 > 0 && 1 % 0 > 0": "division by zero",
                "dyn(1) && true": "no such overload",
                "dyn(1) ? 1 : 2": "no such overload",
            }
        )

    def test_wrong_types(self) -> None:
        """Dynamic operands of the wrong type are an error, with the name of the operator in the cases of cel-go."""
        self.assertFails(
            {
                "dyn(1) + dyn('a')": "no such overload",
                "dyn(true) + dyn(1)": "no such overload: _+_",
                "dyn([1]) - dyn(1)": "no such overload: _-_",
                "-dyn('a')": "no such overload: -_",
                "!dyn(1)": "no such overload",
                "size(dyn(1))": "no such overload: size",
                "dyn(1).startsWith('a')": "no such overload",
                "int(dyn(ints))": "no such overload: int(list)",
                "dyn('a').getHours()": "no such overload: getHours(string)",
            }
        )
