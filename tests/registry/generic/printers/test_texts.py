"""Tests of L{kubetwist.registry.generic.printers.texts}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.printers.texts import first_few, selector_cell


class TextTests(SynchronousTestCase):
    """Tests of texts of cells."""

    def test_selector(self) -> None:
        """Requirements of a selector are sorted by key, and their values are sorted."""
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
        """A list is empty, complete, or truncated with the number of the remaining items."""
        self.assertEqual(first_few([], 2), "<unset>")
        self.assertEqual(first_few(["a", "b"], 2), "a,b")
        self.assertEqual(first_few(["a", "b", "c"], 2), "a,b + 1 more...")
