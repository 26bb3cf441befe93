"""Tests for L{kubetwist.cel.library.jsonpatches}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.environment import Environment
from kubetwist.cel.library.jsonpatches import JSON_PATCHES
from kubetwist.cel.types import STRING

PROGRAM = Environment({"key": STRING}, (JSON_PATCHES,)).compile("jsonpatch.escapeKey(key)")


class EscapeTests(SynchronousTestCase):
    """Tests for C{jsonpatch.escapeKey}."""

    def test_examples(self) -> None:
        """Tildes and slashes are escaped, tildes first."""
        self.assertEqual(PROGRAM.evaluate({"key": "k8s.io/my~label"})[0], "k8s.io~1my~0label")
        self.assertEqual(PROGRAM.evaluate({"key": "~1"})[0], "~01")

    @given(st.text(max_size=20))
    def test_round_trip(self, key: str) -> None:
        """An escaped key is one segment of a JSON pointer, and is unescaped to the key."""
        escaped = PROGRAM.evaluate({"key": key})[0]
        self.assertNotIn("/", escaped)
        self.assertEqual(escaped.replace("~1", "/").replace("~0", "~"), key)
