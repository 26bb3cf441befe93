"""Tests for L{kubetwist.api.configurations}."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.configurations import (
    BOOL,
    OPTIONAL_STRING,
    STRING,
    ConfigurationError,
    ListOf,
    Struct,
    decode_configuration,
)

INNER = Struct("Inner", {"name": STRING, "prefix": OPTIONAL_STRING, "tags": ListOf(STRING)})
THING = Struct(
    "Thing",
    {"enabled": BOOL, "inner": INNER, "more": ListOf(INNER), "other": Struct("Other", {"path": STRING}, optional=True)},
)


def decoded(text: str) -> Any:
    """Decode a configuration."""
    return decode_configuration(text.encode(), "Thing", {"g/v1": THING}, "a/scheme.go")


class DecodingTests(SynchronousTestCase):
    """Tests for L{decode_configuration}."""

    def decoding_error(self, text: str) -> str:
        """Return the error of a configuration; a kind is added if it has none."""
        if "kind" not in text:
            text = f"apiVersion: g/v1\nkind: Thing\n{text}"
        return str(self.assertRaises(ConfigurationError, decoded, text))

    def test_zero_values(self) -> None:
        """Absent and null fields have the zero value of their type."""
        inner = {"name": "", "prefix": None, "tags": []}
        for text in ("", "inner: null\nmore: null\nenabled: null\nother:"):
            result = decoded(f"apiVersion: g/v1\nkind: Thing\n{text}")
            self.assertEqual(result, {"enabled": False, "inner": inner, "more": [], "other": None})

    def test_values(self) -> None:
        """Values are decoded from JSON and from YAML."""
        result = decoded(
            '{"apiVersion":"g/v1","kind":"Thing","enabled":true,"more":[{"name":"a","prefix":""},null],"other":{}}'
        )
        self.assertEqual(result["enabled"], True)
        self.assertEqual([one["name"] for one in result["more"]], ["a", ""])
        self.assertEqual((result["more"][0]["prefix"], result["other"]), ("", {"path": ""}))

    def test_strict(self) -> None:
        """All unknown fields are rejected at once, and so are duplicate fields."""
        self.assertEqual(
            self.decoding_error("x: 1\nmore:\n- z: 2\n  name: a\n"),
            'strict decoding error: unknown field "x", unknown field "more[0].z"',
        )
        self.assertIn(
            "strict decoding error: yaml: unmarshal errors:", self.decoding_error("enabled: true\nenabled: false")
        )

    def test_types(self) -> None:
        """A value of a wrong type is rejected with Go's message."""
        for text, path in (
            ("enabled: x", "string into Go struct field Thing.enabled of type bool"),
            ("inner: 5", "number into Go struct field Thing.inner of type v1.Inner"),
            ("inner: {name: 5}", "number into Go struct field Inner.inner.name of type string"),
            ("more: {}", "object into Go struct field Thing.more of type []v1.Inner"),
            ("more: [{tags: [[]]}]", "array into Go struct field Inner.more.tags of type string"),
            ("more: [{tags: a}]", "string into Go struct field Inner.more.tags of type []string"),
            ("inner: {prefix: true}", "bool into Go struct field Inner.inner.prefix of type string"),
        ):
            self.assertEqual(self.decoding_error(text), f"json: cannot unmarshal {path}")

    def test_kind(self) -> None:
        """A file must have the expected kind in a known version."""
        text = 'no kind "Other" is registered for version "g/v1" in scheme "a/scheme.go"'
        self.assertEqual(self.decoding_error("kind: Other\napiVersion: g/v1"), text)
        self.assertIn(
            'no kind "Thing" is registered for version "g/v2"', self.decoding_error("kind: Thing\napiVersion: g/v2")
        )
        self.assertEqual(self.decoding_error("kind: Thing"), "Object 'apiVersion' is missing in 'kind: Thing'")
        self.assertEqual(str(self.assertRaises(ConfigurationError, decoded, "")), "empty config data")
        self.assertIn("cannot unmarshal array", str(self.assertRaises(ConfigurationError, decoded, "[]")))

    @given(st.binary(max_size=200))
    def test_garbage(self, content: bytes) -> None:
        """Any bytes are decoded or rejected."""
        with contextlib.suppress(ConfigurationError):
            decode_configuration(content, "Thing", {"g/v1": THING}, "a/scheme.go")
