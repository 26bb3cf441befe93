"""Tests for L{kubetwist.cel.validators}."""

from __future__ import annotations

from kubetwist.cel.errors import ProgramError
from tests.cel.checkingcase import CheckingTestCase


class ValidatorTests(CheckingTestCase):
    """Tests for validators of well-typed expressions."""

    def test_literals(self) -> None:
        """Literal durations, timestamps and regular expressions must be valid."""
        self.assertRefused(
            {
                "duration('1x') == duration('1s')": "1:10: invalid duration argument",
                "timestamp('yesterday') == null": "1:11: invalid timestamp argument",
                "timestamp(-62135596801) == null": "1:11: invalid timestamp argument",
                "'a'.matches('(')": "1:13: invalid matches argument",
            }
        )

    def test_mixed_literals(self) -> None:
        """The elements of list and map literals must have one type."""
        self.assertRefused(
            {
                "[1, 'a'] == []": "1:5: expected type 'int' but found 'string'",
                "[1, any] == []": "1:5: expected type 'int' but found 'dyn'",
                "{'a': 1, 'b': 2.0} == {}": "1:15: expected type 'int' but found 'double'",
                "{'a': 1, 2: 2} == {}": "1:10: expected type 'string' but found 'int'",
                "[null, point].size()": "1:8: expected type 'null' but found 'geo.Point'",
            }
        )

    def test_constants_without_value(self) -> None:
        """A constant subexpression whose evaluation fails is rejected at compile time, but not as a type error."""
        for text, message in {
            "int('a')": "type conversion error from 'string' to 'int'",
            "uint(-1)": "unsigned integer overflow",
            "matches('a', ')')": "error parsing regexp: unexpected ): `)`",
        }.items():
            error = self.assertRaises(ProgramError, self.compile, text)
            self.assertEqual(str(error), message)
