"""Tests for L{kubetwist.registry.apiregistration.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import problems


class APIServiceTests(SynchronousTestCase):
    """Tests for the validation of APIServices."""

    def test_api_service(self) -> None:
        """The name of an APIService is its group version; its priorities have limits."""
        group = "apiregistration.k8s.io"
        spec = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 0, "versionPriority": 1001}
        self.assertEqual(
            problems(group, "APIService", spec=spec),
            [
                "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            ],
        )
        names = strategy_for(group, "APIService").name_validator({"spec": spec})
        self.assertEqual(names("v1.example.com", False), [])
        self.assertEqual(names("x", False), ['must be `spec.version+"."+spec.group`: "v1.example.com"'])
        self.assertEqual(names("a/b", False), ["may not contain '/'"])
