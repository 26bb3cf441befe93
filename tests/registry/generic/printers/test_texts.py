"""Tests for L{kubetwist.registry.generic.printers.texts}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.printers.texts import first_few, selector_cell


class TextTests(SynchronousTestCase):
    """Shared pieces."""

    def test_selector(self) -> None:
        """Requirements are sorted by key, and values among themselves."""
        selector = {
            "matchLabels": {"z": "1", "a": "2"},
            "matchExpressions": [
                {"key": "m", "operator": "In", "values": ["y", "x"]},
                {"key": "n", "operator": "NotIn", "values": ["v"]},
                {"key": "b", "operator": "DoesNotExist"},
            ],
        }
        self.assertEqual(selector_cell(selector), "a=2,!b,m in (x,y),n notin (v),z=1")
        self.assertEqual(selector_cell(None), "<none>")
        self.assertEqual(selector_cell({"matchExpressions": [{"key": "a", "operator": "Like"}]}), "<error>")

    def test_first_few(self) -> None:
        """Nothing, some, and too many."""
        self.assertEqual(first_few([], 2), "<unset>")
        self.assertEqual(first_few(["a", "b"], 2), "a,b")
        self.assertEqual(first_few(["a", "b", "c"], 2), "a,b + 1 more...")
