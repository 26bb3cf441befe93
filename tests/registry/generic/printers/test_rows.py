"""Tests for L{kubetwist.registry.generic.printers.rows}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.printers.rows import name_and_age, status
from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Rows that several kinds share."""

    def test_status(self) -> None:
        """A Status shows what went wrong, and has no name."""
        obj = {"status": "Failure", "reason": "NotFound", "message": "m", "code": 404}
        self.assertEqual(list(status(obj)), ["Failure", "NotFound", "m"])
        self.assertEqual(list(status({})), ["", "", ""])

    def test_name_and_age(self) -> None:
        """A row of nothing but name and age."""
        self.assertEqual(next(iter(name_and_age(made()))), "x")
        self.assertEqual(cells("", "ServiceAccount", made(), NOW), ["x", "3m"])
