"""Tests for L{kubetwist.api.go.syntax}."""

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.syntax import (
    GoMap,
    float_text,
    yaml_syntax,
)


class GoSyntaxTests(SynchronousTestCase):
    """Tests for the formatting with C{%#v}."""

    def test_scalars(self) -> None:
        """Strings are quoted, and integers that only fit unsigned are hexadecimal."""
        for value, text in (
            (None, "interface {}(nil)"),
            ('a"b\n', '"a\\"b\\n"'),
            (True, "true"),
            (5, "5"),
            (-5, "-5"),
            (1 << 63, "0x8000000000000000"),
            (1.5, "1.5"),
        ):
            self.assertEqual(yaml_syntax(value), text)

    def test_collections(self) -> None:
        """Keys of maps keep their types and are sorted; the last of equal keys counts."""
        shown = GoMap((("b", 1), ("b", None), (2, "x"), (None, [GoMap(())]), (True, {"a": 1})))
        self.assertEqual(
            yaml_syntax([shown]),
            "[]interface {}{map[interface {}]interface {}{"
            "interface {}(nil):[]interface {}{map[interface {}]interface {}{}}, "
            '"b":interface {}(nil), 2:"x", true:map[interface {}]interface {}{"a":1}}}',
        )

    def test_floats(self) -> None:
        """Floats have an exponent from 10^6, and below 10^-4."""
        for number, text in (
            (123456.0, "123456"),
            (1e6, "1e+06"),
            (0.0001, "0.0001"),
            (-0.00001, "-1e-05"),
            (0.0, "0"),
            (float("inf"), "+Inf"),
            (float("-inf"), "-Inf"),
            (float("nan"), "NaN"),
        ):
            self.assertEqual(float_text(number), text)
