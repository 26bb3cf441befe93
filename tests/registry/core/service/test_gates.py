"""Tests of feature gates of services."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import create_errors, created, gated, updated

PORTS = {"ports": [{"port": 80}]}


class GateTests(SynchronousTestCase):
    """Gates in both positions."""

    def test_distribution(self) -> None:
        """The traffic distribution is kept if its gate is enabled or it is in use, and dropped otherwise."""
        spec = {**PORTS, "trafficDistribution": "PreferClose"}
        on, off = (gated("", "Service", (1, 31), ServiceTrafficDistribution=value) for value in (True, False))
        used, unused = created(on, spec=spec), created(off, spec=spec)
        self.assertEqual(used["spec"]["trafficDistribution"], "PreferClose")
        self.assertNotIn("trafficDistribution", unused["spec"])
        self.assertIn("trafficDistribution", updated(off, used, spec=spec)["spec"])
        self.assertNotIn("trafficDistribution", updated(off, unused, spec=spec)["spec"])

    def test_same_zone(self) -> None:
        """PreferSameZone and PreferSameNode are supported, and PreferClose is deprecated, if the gate is enabled."""
        text = 'spec.trafficDistribution: Unsupported value: "PreferSameZone": supported values: "PreferClose"'
        spec = {**PORTS, "trafficDistribution": "PreferSameZone"}
        for value, errors in ((True, []), (False, [text])):
            strategy = gated("", "Service", (1, 34), PreferSameTrafficDistribution=value)
            self.assertEqual(create_errors(strategy, spec=spec), errors)
            close: dict[str, Any] = created(strategy, spec={**PORTS, "trafficDistribution": "PreferClose"})
            self.assertEqual(len(strategy.warnings(close, None)), int(value))

    def test_status(self) -> None:
        """Services of all types may have the status of a load balancer if the gate is enabled."""
        status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}}
        for value, count in ((True, 0), (False, 1)):
            strategy = gated("", "Service", (1, 31), AllowServiceLBStatusOnNonLB=value)
            old = created(strategy, spec=PORTS)
            new = {**old, "status": status}
            self.assertEqual(len(strategy.validate_status_update(new, old)), count)
            after = updated(strategy, new, spec=PORTS)["status"]
            self.assertEqual(after, status if value else {"loadBalancer": {}})
