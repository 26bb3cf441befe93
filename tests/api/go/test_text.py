"""Tests for L{kubetwist.api.go.text}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.text import (
    go_string,
    go_text,
    go_type,
)


class GoTextTests(SynchronousTestCase):
    """Tests for the formatting with Go's C{fmt}."""

    def test_values(self) -> None:
        """Maps are sorted by key, strings are not quoted."""
        value = {"b": [1, "x", None], "a": {"t": True}, "c": -0.5}
        self.assertEqual(go_text(value), "map[a:map[t:true] b:[1 x <nil>] c:-0.5]")

    def test_floats(self) -> None:
        """Large and small numbers have exponents of two digits or more."""
        for number, text in [
            (100000.0, "100000"),
            (123456.5, "123456.5"),
            (1e6, "1e+06"),
            (1234567.5, "1.2345675e+06"),
            (1e21, "1e+21"),
            (2.5e-7, "2.5e-07"),
            (0.0001, "0.0001"),
            (-1e300, "-1e+300"),
        ]:
            self.assertEqual(go_text(number), text)

    def test_types(self) -> None:
        """Untyped JSON values have these Go types."""
        values = [{}, [], "", True, 1, 1.5, None]
        types = ["map[string]interface {}", "[]interface {}", "string", "bool", "int64", "float64", "%!s(<nil>)"]
        self.assertEqual([go_type(value) for value in values], types)

    def test_strings(self) -> None:
        """C{%s} prints the type of values that are not strings."""
        values = ["x", 7, None, True, 1.5, [1, "a"], {"k": 1}]
        texts = ["x", "%!s(int64=7)", "%!s(<nil>)", "%!s(bool=true)", "%!s(float64=1.5)"]
        texts += ["[%!s(int64=1) a]", "map[k:%!s(int64=1)]"]
        self.assertEqual([go_string(value) for value in values], texts)
