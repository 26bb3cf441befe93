"""Tests for L{kubetwist.registry.customresources.printers}."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpath import MAX_VISITED
from kubetwist.registry.customresources.printers import Printer
from kubetwist.resources import tables
from tests.resources.customserver import KITES, CustomServer, definition, kite
from tests.resources.slicesvalues import TABLE


class BudgetTests(SynchronousTestCase):
    """Tests for the budgets of printer columns."""

    def setUp(self) -> None:
        """Create columns with recursive descent, after a column without a value."""
        descents = [{"name": str(number), "type": "string", "jsonPath": "..missing"} for number in range(4)]
        result = {"name": "found", "type": "string", "jsonPath": ".spec.found"}
        self.printer = Printer([result, *descents, result])

    def _object(self, size: int) -> Any:
        return {"metadata": {"name": "a"}, "spec": {"found": "here", "many": list(range(size))}}

    def test_row(self) -> None:
        """All columns of a row share one budget: later values are missing after it is exhausted."""
        small, large = (self.printer.row(self._object(size)) for size in (100, MAX_VISITED // 3))
        self.assertEqual(small, ("a", "here", None, None, None, None, "here"))
        self.assertEqual(large, ("a", "here", None, None, None, None, None))

    def test_request(self) -> None:
        """All rows of a response share one budget, and truncated rows are not cached."""
        server = CustomServer()
        client = server.client()
        columns = [{"name": "F", "type": "string", "jsonPath": "..colour"}]
        server.define(client, definition(additionalPrinterColumns=columns))
        for number in range(4):
            client.ask("POST", KITES, kite(f"k{number}", spec={"colour": "blue"}))

        def cells() -> list[Any]:
            return [row["cells"][1] for row in client.ask("GET", KITES, Accept=TABLE)[1]["rows"]]

        with patch.object(tables, "MAX_VALUES_PER_REQUEST", 30):
            cut = cells()
        self.assertEqual((cut[0], cut[-1]), ("blue", None))
        self.assertEqual(cells(), ["blue"] * 4)
