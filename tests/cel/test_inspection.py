"""Tests for L{kubetwist.cel.inspection}."""

from __future__ import annotations

from kubetwist.cel.inspection import selected_fields, selects

from .support import CelTestCase


class InspectionTests(CelTestCase):
    """Tests for L{selected_fields} and L{selects}."""

    def test_fields(self) -> None:
        """Plain, optional and tested selections are found, also within macros."""
        root = self.compile("any.a.b == 1 && has(any.c) && any.?d.hasValue() && ints.all(x, any.e == x)").checked.root
        self.assertEqual(selected_fields(root), {"a", "b", "c", "d", "e"})

    def test_variable(self) -> None:
        """A field counts only if it is selected from the variable itself."""
        root = self.compile("any.a.b == s || any.?c.hasValue()").checked.root
        self.assertTrue(selects(root, "any", "a"))
        self.assertTrue(selects(root, "any", "c"))
        self.assertFalse(selects(root, "any", "b"))
        self.assertFalse(selects(root, "s", "a"))
