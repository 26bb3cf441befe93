"""Tests of L{kubetwist.registry.core.limitrange.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests of the defaults of LimitRanges."""

    def test_limit_range(self) -> None:
        """Limits default to maxima, requests to limits or minima."""
        item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}
        found = defaulted("", "LimitRange", spec={"limits": [item]})["spec"]["limits"][0]
        self.assertEqual(found["default"], {"cpu": "2"})
        self.assertEqual(found["defaultRequest"], {"cpu": "2", "memory": "1Mi"})
