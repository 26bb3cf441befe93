"""Tests of L{kubetwist.registry.generic.printers.columns}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.printers.columns import AGE, NAME, Column, boolean, core_field, integer, wide


class ColumnTests(SynchronousTestCase):
    """Tests of L{Column}."""

    def test_definition(self) -> None:
        """The description of a column is a text, or that of a field in the served release."""
        described = integer("Desired", core_field("X", "replicas")).definition(lambda kind, field: f"{kind}/{field}")
        self.assertEqual(
            described,
            {
                "name": "Desired",
                "type": "integer",
                "format": "",
                "description": "api.core.v1.X/replicas",
                "priority": 0,
            },
        )
        self.assertEqual(Column("A", "said").definition(lambda kind, field: "no")["description"], "said")

    def test_sorts(self) -> None:
        """The default type of columns is string; columns of wide output have a priority."""
        self.assertEqual((wide("A", "").priority, wide("A", "").type), (1, "string"))
        self.assertEqual((boolean("A", "").type, NAME.format, AGE.type), ("boolean", "name", "string"))
