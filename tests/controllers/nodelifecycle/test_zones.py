"""Tests for L{kubetwist.controllers.nodelifecycle.zones}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, sampled_from, tuples

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.nodelifecycle.zones import EvictionLimiter, EvictionRates, ZoneState, zone_of

NOW = 1_800_000_000.0
RATES = EvictionRates()


class EvictionRatesTests(SynchronousTestCase):
    """L{EvictionRates}: the numbers of kube-controller-manager."""

    def test_state(self) -> None:
        """A zone without ready nodes is fully disrupted, with at least three and 55 % unready nodes partially."""
        for ready, unready, state in (
            (1, 0, ZoneState.NORMAL),
            (0, 1, ZoneState.FULL),
            (1, 2, ZoneState.NORMAL),
            (2, 3, ZoneState.PARTIAL),
            (9, 11, ZoneState.PARTIAL),
            (10, 12, ZoneState.NORMAL),
        ):
            self.assertEqual(RATES.state(ready, unready), state, (ready, unready))

    def test_rate(self) -> None:
        """A partially disrupted zone has the secondary rate if it is large, and otherwise no evictions."""
        for state, size, rate in (
            (ZoneState.NORMAL, 5, 0.1),
            (ZoneState.FULL, 5, 0.1),
            (ZoneState.PARTIAL, 50, 0.0),
            (ZoneState.PARTIAL, 51, 0.01),
        ):
            self.assertEqual(RATES.rate(state, size), rate)

    def test_flags(self) -> None:
        """Flags set the numbers, and missing ones have the defaults."""
        self.assertEqual(EvictionRates.of({}.get), RATES)
        rates = EvictionRates.of({"node-eviction-rate": 2.0, "large-cluster-size-threshold": 3, "fake-nodes": 1}.get)
        self.assertEqual((rates.node_eviction_rate, rates.large_cluster_size_threshold), (2.0, 3))
        self.assertEqual((rates.secondary_node_eviction_rate, rates.unhealthy_zone_threshold), (0.01, 0.55))


class ZoneOfTests(SynchronousTestCase):
    """L{zone_of}."""

    def test_labels(self) -> None:
        """A zone is a region and a zone, also by the old labels."""
        self.assertEqual(zone_of({"kubernetes.io/hostname": "a"}), "")
        zones = {
            zone_of({"topology.kubernetes.io/zone": "a"}),
            zone_of({"topology.kubernetes.io/region": "a"}),
            zone_of({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "a"}),
        }
        self.assertEqual(len(zones), 3)
        self.assertIn(zone_of({"failure-domain.beta.kubernetes.io/zone": "a"}), zones)


class EvictionLimiterTests(SynchronousTestCase):
    """L{EvictionLimiter}."""

    def limiter(self, **zones: tuple[int, int]) -> EvictionLimiter:
        """Return a limiter of zones with a number of ready and of unready nodes."""
        limiter = EvictionLimiter(RATES)
        for zone, (ready, unready) in zones.items():
            for number in range(ready + unready):
                limiter.set_node(f"{zone}{number:03}", zone, True, NOW)
        for zone, (ready, unready) in zones.items():
            for number in range(ready, ready + unready):
                limiter.set_unready(f"{zone}{number:03}", NOW)
        return limiter

    def test_rate(self) -> None:
        """One node is admitted at once, and a further one every ten seconds."""
        limiter = self.limiter(a=(5, 3))
        self.assertEqual([limiter.admit(f"a{number:03}", NOW) for number in (5, 5, 6)], [0.0, 0.0, 10.0])
        self.assertEqual(limiter.admit("a006", NOW + 10), 0.0)
        self.assertEqual(limiter.admit("a007", NOW + 12), 8.0)
        self.assertTrue(limiter.is_admitted("a006"))
        self.assertFalse(limiter.is_admitted("a007"))

    def test_zones(self) -> None:
        """Each zone has a separate rate and state."""
        limiter = self.limiter(a=(5, 2), b=(1, 3), c=(0, 2))
        states = [limiter.state(zone) for zone in "abc"]
        self.assertEqual(states, [ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL])
        self.assertEqual([limiter.admit(name, NOW) for name in ("a005", "b001", "c000")], [0.0, None, 0.0])
        self.assertEqual(limiter.admit("c001", NOW), 10.0)

    def test_large_zone(self) -> None:
        """A large zone that is partially disrupted has the secondary rate."""
        limiter = self.limiter(a=(20, 40))
        self.assertEqual(limiter.admit("a020", NOW), 0.0)
        self.assertEqual(limiter.admit("a021", NOW), 100.0)

    def test_recovery(self) -> None:
        """When a zone recovers, its unready nodes are checked again."""
        limiter = self.limiter(a=(2, 3))
        self.assertIsNone(limiter.admit("a002", NOW))
        self.assertEqual(list(limiter.set_node("a004", "a", True, NOW + 1)), ["a002", "a003"])
        self.assertEqual(limiter.admit("a002", NOW + 1), 0.0)
        self.assertEqual(list(limiter.set_node("a002", "a", True, NOW + 2)), [])
        self.assertFalse(limiter.is_admitted("a002"))

    def test_stopped(self) -> None:
        """If no node is ready, no pods are evicted, until one is."""
        limiter = self.limiter(a=(1, 1), b=(0, 2))
        self.assertEqual(limiter.admit("b000", NOW), 0.0)
        self.assertEqual(set(limiter.set_unready("a000", NOW)), {"a000", "a001", "b000", "b001"})
        self.assertTrue(limiter.stopped)
        self.assertFalse(limiter.is_admitted("b000"))
        self.assertIsNone(limiter.admit("b000", NOW + 100))
        self.assertEqual(set(limiter.set_node("b001", "b", True, NOW + 200)), {"a000", "a001", "b000"})
        self.assertEqual(limiter.admit("b000", NOW + 200), 0.0)
        self.assertEqual(limiter.admit("a001", NOW + 200), 0.0)

    def test_earlier_run(self) -> None:
        """A node that an earlier run has tainted remains so."""
        limiter = self.limiter(a=(3, 2))
        self.assertFalse(limiter.has_node("none"))
        limiter.mark_admitted("a003")
        self.assertEqual((limiter.admit("a003", NOW), limiter.admit("a004", NOW)), (0.0, 0.0))

    @given(lists(tuples(integers(0, 5), sampled_from("ab"), booleans(), integers(0, 60)), max_size=60))
    def test_never_more(self, changes: list[tuple[int, str, bool, int]]) -> None:
        """A zone has at most one eviction more than its rate permits, and none if evictions are stopped."""
        limiter = EvictionLimiter(RATES)
        now, admitted = NOW, {"a": 0, "b": 0}
        for number, zone, ready, seconds in changes:
            now += seconds
            limiter.set_node(f"{zone}{number}", zone, ready, now)
            before = limiter.is_admitted(f"{zone}{number}")
            wait = None if ready else limiter.admit(f"{zone}{number}", now)
            if wait == 0.0 and not before:
                self.assertFalse(limiter.stopped)
                admitted[zone] += 1
            self.assertLessEqual(admitted[zone], 1 + (now - NOW) * RATES.node_eviction_rate + 1e-6)
