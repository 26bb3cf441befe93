"""Tests for L{kubetwist.cel.validators}."""

from __future__ import annotations

from kubetwist.cel.errors import ProgramError
from tests.cel.checkingcase import CheckingTestCase


class ValidatorTests(CheckingTestCase):
    """What is refused although its types are right."""

    def test_literals(self) -> None:
        """Durations, timestamps and expressions of RE2 that are written out must be some."""
        self.assertRefused(
            {
                "duration('1x') == duration('1s')": "1:10: invalid duration argument",
                "timestamp('yesterday') == null": "1:11: invalid timestamp argument",
                "timestamp(-62135596801) == null": "1:11: invalid timestamp argument",
                "'a'.matches('(')": "1:13: invalid matches argument",
            }
        )

    def test_mixed_literals(self) -> None:
        """Lists and maps that are written out hold values of one type."""
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
        """What no evaluation could ever give is refused at once, though not as a wrong type."""
        for text, message in {
            "int('a')": "type conversion error from 'string' to 'int'",
            "uint(-1)": "unsigned integer overflow",
            "matches('a', ')')": "error parsing regexp: unexpected ): `)`",
        }.items():
            error = self.assertRaises(ProgramError, self.compile, text)
            self.assertEqual(str(error), message)
