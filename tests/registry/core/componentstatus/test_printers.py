"""Tests of L{kubetwist.registry.core.componentstatus.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests of rows of ComponentStatuses."""

    def test_healthy(self) -> None:
        """A row contains the health of the component, its message and error."""
        for status, shown in (("True", "Healthy"), ("False", "Unhealthy")):
            obj = made({"conditions": [{"type": "Healthy", "status": status, "message": "m", "error": "e"}]})
            self.assertEqual(cells("", "ComponentStatus", obj, NOW), ["x", shown, "m", "e"])

    def test_unknown(self) -> None:
        """A component without a condition has the status Unknown."""
        self.assertEqual(cells("", "ComponentStatus", made(), NOW), ["x", "Unknown", "", ""])
