"""Tests for L{kubetwist.registry.apiregistration.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted, made

G = "apiregistration.k8s.io"


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of APIServices."""

    def test_defaults(self) -> None:
        """Priorities are always encoded, and the default port is 443."""
        spec = defaulted(G, "APIService", spec={"service": {"name": "s", "namespace": "n"}})["spec"]
        self.assertEqual((spec["service"]["port"], spec["groupPriorityMinimum"], spec["versionPriority"]), (443, 0, 0))
        self.assertNotIn("service", defaulted(G, "APIService")["spec"])

    def test_local(self) -> None:
        """Local APIServices are available at creation; APIServices of other servers are not."""
        [condition] = made(G, "APIService", spec={})["status"]["conditions"]
        self.assertEqual((condition["type"], condition["status"], condition["reason"]), ("Available", "True", "Local"))
        self.assertEqual(made(G, "APIService", spec={"service": {"name": "s"}})["status"], {})

    def test_name(self) -> None:
        """The name is version and group."""
        names = strategy_for(G, "APIService").name_validator({"spec": {"group": "g.io", "version": "v1"}})
        self.assertEqual(list(names("v1.g.io", False)), [])
        self.assertEqual(list(names("v2.g.io", False)), ['must be `spec.version+"."+spec.group`: "v1.g.io"'])
