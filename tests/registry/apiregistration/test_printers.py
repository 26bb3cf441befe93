"""Tests for L{kubetwist.registry.apiregistration.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class APIServiceTests(SynchronousTestCase):
    """Tests for rows of APIServices."""

    def test_api_service(self) -> None:
        """An unavailable APIService shows the reason."""
        spec = {"service": {"namespace": "ns", "name": "s"}}
        conditions = [{"type": "Available", "status": "False", "reason": "NoEndpoints"}]
        for obj, shown in (
            (made({"spec": {}}), ["Local", "Unknown"]),
            (
                made({"status": {"conditions": [{"type": "Available", "status": "True", "reason": "x"}]}}),
                ["Local", "True"],
            ),
            (made({"spec": spec, "status": {"conditions": conditions}}), ["ns/s", "False (NoEndpoints)"]),
        ):
            self.assertEqual(cells("apiregistration.k8s.io", "APIService", obj, NOW)[1:3], shown)
