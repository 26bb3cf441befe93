"""Tests of L{kubetwist.registry.generic.validation.fields}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.validation.fields import (
    ErrorList,
    invalid_name,
    local_file_path,
    unsupported,
    unsupported_string,
)


class PathTests(SynchronousTestCase):
    """Tests of paths in volumes."""

    def test_below(self) -> None:
        """A path must be relative and without ..; a backslash is an ordinary character."""
        up, dots = "must not contain '..'", "must not start with '..'"
        for path, wanted in (
            ("a/b", []),
            ("a\\..\\b", []),
            ("..a", [dots]),
            ("..", [up, dots]),
            ("../a", [up]),
            ("a/../b", [up]),
            ("/a", ["must be a relative path"]),
        ):
            causes: ErrorList = []
            local_file_path(path, "x", causes)
            self.assertEqual([cause.message.rpartition(": ")[2] for cause in causes], wanted, path)


class ShownTests(SynchronousTestCase):
    """Tests of values in messages."""

    def test_strings(self) -> None:
        """A value of a named string type is formatted as JSON with HTML escapes, a plain string as Go quotes it."""
        choice = ("<a>", "b")
        supported = 'supported values: "<a>", "b"'
        self.assertEqual(
            unsupported("x", "<&>", choice).message, f'Unsupported value: "\\u003c\\u0026\\u003e": {supported}'
        )
        self.assertEqual(unsupported_string("x", "<&>", choice).message, f'Unsupported value: "<&>": {supported}')
        self.assertEqual(invalid_name("x", "<", "no").message, 'Invalid value: "\\u003c": no')
