"""Tests of the feature gate of strict addresses, for the kinds that have them."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.strategy import Strategy
from tests.registry.gatetools import create_errors, created, gated, updated

GATE = "StrictIPCIDRValidation"
WIPING = "ServiceCIDRStatusFieldWiping"
#: An address and a block that libraries parse differently.
ADDRESS = "10.000.0.4"
BLOCK = "10.000.0.0/24"
CONTAINER = {"name": "c", "image": "i"}
#: Group, kind, and the parts of an object with one of them.
OBJECTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("", "Service", {"spec": {"ports": [{"port": 80}], "clusterIP": ADDRESS}}),
    ("", "Service", {"spec": {"ports": [{"port": 80}], "externalIPs": [ADDRESS]}}),
    ("", "Service", {"spec": {"ports": [{"port": 80}], "type": "LoadBalancer", "loadBalancerSourceRanges": [BLOCK]}}),
    ("", "Endpoints", {"subsets": [{"addresses": [{"ip": ADDRESS}]}]}),
    ("", "Node", {"spec": {"podCIDR": BLOCK}}),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        {"spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": BLOCK}}]}]}},
    ),
    ("", "Pod", {"spec": {"containers": [CONTAINER], "hostAliases": [{"ip": ADDRESS, "hostnames": ["a"]}]}}),
    ("", "Pod", {"spec": {"containers": [CONTAINER], "dnsPolicy": "None", "dnsConfig": {"nameservers": [ADDRESS]}}}),
    ("discovery.k8s.io", "EndpointSlice", {"addressType": "IPv4", "endpoints": [{"addresses": [ADDRESS]}]}),
)


def both(group: str, kind: str) -> tuple[Strategy, Strategy]:
    """Return the strategies with the gate enabled and disabled."""
    on, off = (gated(group, kind, **{GATE: value}) for value in (True, False))
    return on, off


class StrictTests(SynchronousTestCase):
    """Validation and warnings in both positions of the gate."""

    def test_objects(self) -> None:
        """Ambiguous notations are errors if the gate is enabled."""
        for group, kind, parts in OBJECTS:
            on, off = both(group, kind)
            found = create_errors(on, **parts)
            self.assertEqual(len(found), 1, (kind, found))
            self.assertIn("must not have leading 0s", found[0])
            self.assertEqual(create_errors(off, **parts), [], kind)

    def test_status(self) -> None:
        """The same for addresses in the status of load balancers."""
        status = {"loadBalancer": {"ingress": [{"ip": ADDRESS, "ipMode": "VIP"}]}}
        for group, kind, spec in (
            ("", "Service", {"type": "LoadBalancer", "ports": [{"port": 80}]}),
            ("networking.k8s.io", "Ingress", {}),
        ):
            for strategy, count in zip(both(group, kind), (1, 0), strict=True):
                old = created(strategy, spec=spec)
                self.assertEqual(len(strategy.validate_status_update({**old, "status": status}, old)), count, kind)

    def test_pod_status(self) -> None:
        """The same for the addresses of a pod."""
        for strategy, count in zip(both("", "Pod"), (1, 0), strict=True):
            old = created(strategy, spec={"containers": [CONTAINER]})
            new = {**old, "status": {**old["status"], "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}}
            self.assertEqual(len(strategy.validate_status_update(new, old)), count)

    def test_warnings(self) -> None:
        """The text of warnings follows the gate."""
        for group, kind, parts in OBJECTS:
            if kind in ("Endpoints", "Node"):
                continue
            for strategy, text in zip(
                both(group, kind),
                ("is invalid: use", "will be considered invalid in a future Kubernetes release: use"),
                strict=True,
            ):
                found = strategy.warnings(created(strategy, **parts), None)
                self.assertTrue(any(text in one for one in found), (kind, found))

    def test_releases(self) -> None:
        """The gate is enabled from 1.36 on."""
        parts = OBJECTS[0][2]
        for minor, count in ((33, 0), (35, 0), (36, 1), (37, 1)):
            self.assertEqual(len(create_errors(gated("", "Service", (1, minor)), **parts)), count)


class RangeTests(SynchronousTestCase):
    """The status of ServiceCIDRs."""

    def test_status(self) -> None:
        """Clients may set the status with the main resource if the gate is disabled, as before 1.36."""
        status = {"conditions": [{"type": "Ready"}]}
        spec = {"cidrs": ["10.1.0.0/24"]}
        for release, gates, kept in (((1, 33), {}, True), ((1, 36), {}, False), ((1, 36), {WIPING: False}, True)):
            strategy = gated("networking.k8s.io", "ServiceCIDR", release, **gates)
            obj = created(strategy, spec=spec, status=status)
            self.assertEqual(obj["status"], status if kept else {})
            self.assertEqual(updated(strategy, obj, spec=spec, status={})["status"], {})
            after = updated(strategy, obj, spec=spec, status=status)
            self.assertEqual(after["status"], status if kept else {})
