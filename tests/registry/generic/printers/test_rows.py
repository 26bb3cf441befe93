"""Tests of L{kubetwist.registry.generic.printers.rows}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.printers.rows import name_and_age, status
from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests of rows for kinds of several groups."""

    def test_status(self) -> None:
        """A Status has its reason and message in the row, and no name."""
        obj = {"status": "Failure", "reason": "NotFound", "message": "m", "code": 404}
        self.assertEqual(list(status(obj)), ["Failure", "NotFound", "m"])
        self.assertEqual(list(status({})), ["", "", ""])

    def test_name_and_age(self) -> None:
        """The row of name and age has only these cells."""
        self.assertEqual(next(iter(name_and_age(made()))), "x")
        self.assertEqual(cells("", "ServiceAccount", made(), NOW), ["x", "3m"])
