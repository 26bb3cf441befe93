"""Tests for L{kubetwist.controllers.autoscaling.replicas}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis.strategies import dictionaries, integers, sampled_from

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.autoscaling.replicas import Proposal, Target
from kubetwist.controllers.autoscaling.samples import MetricsError, Sample, Tolerances
from tests.controllers.autoscaling.fakemetrics import NOW, pod


def target(replicas: int, pods: list[Any] | None = None) -> Target:
    """Return a target with pods C{p0}, C{p1}, ..."""
    return Target(replicas, [pod(f"p{one}") for one in range(replicas)] if pods is None else pods, Tolerances(), NOW)


def samples(*values: int) -> dict[str, Sample]:
    """Return samples of the pods C{p0}, C{p1}, ..."""
    return {f"p{index}": Sample(value, NOW, 15.0) for index, value in enumerate(values)}


class UtilizationTests(SynchronousTestCase):
    """Tests for L{Target.utilization_replicas}: the requests of each pod are 1000 thousandths."""

    def replicas(self, one: Target, used: dict[str, Sample], goal: int = 50) -> int:
        """Return the replicas for a target in per cent."""
        return one.utilization_replicas(used, goal, "cpu").replicas

    def test_plain(self) -> None:
        """The replicas are multiplied by the ratio of utilization and target, and rounded up."""
        proposal = target(3).utilization_replicas(samples(700, 800, 900), 50, "cpu")
        self.assertEqual(proposal, Proposal(5, 800, 80))
        self.assertEqual(self.replicas(target(3), samples(100, 200, 300)), 2)

    def test_tolerance(self) -> None:
        """Nothing changes within the tolerance."""
        self.assertEqual(self.replicas(target(3), samples(550, 550, 550)), 3)
        self.assertEqual(self.replicas(target(3), samples(560, 560, 560)), 4)

    def test_missing_low(self) -> None:
        """Pods without samples are assumed to use their requests while the usage is low."""
        self.assertEqual(self.replicas(target(3), samples(100, 100)), 3)
        self.assertEqual(self.replicas(target(4), samples(100, 100, 100), 90), 2)

    def test_missing_low_with_high_target(self) -> None:
        """With a target above 100 %, they are assumed to use as much as the target."""
        pods = [pod(f"p{one}") for one in range(4)]
        self.assertEqual(self.replicas(target(4, pods), samples(300, 300, 300), 200), 2)

    def test_missing_high(self) -> None:
        """Pods without samples are assumed to be idle while the usage is high."""
        self.assertEqual(self.replicas(target(3), samples(900, 900)), 4)
        self.assertEqual(self.replicas(target(3), samples(560, 560)), 3)

    def test_unready(self) -> None:
        """Pods that are not ready are assumed to be idle while the usage is high, and do not count otherwise."""
        pods = [pod("p0"), pod("p1"), pod("p2", ready=False, started=-60, changed=-60)]
        self.assertEqual(self.replicas(target(3, pods), samples(900, 900, 900)), 4)
        self.assertEqual(self.replicas(target(3, pods), samples(100, 100, 100)), 1)

    def test_errors(self) -> None:
        """Pods, samples and requests are required."""
        cases: list[tuple[Target, dict[str, Sample], str]] = [
            (target(0), samples(), "no pods returned by selector while calculating replica count"),
            (target(1), samples(), "did not receive metrics for targeted pods (pods might be unready)"),
            (target(1, [pod("p0", request="")]), samples(1), "missing request for cpu in container c of Pod p0"),
        ]
        for one, used, text in cases:
            with self.assertRaises(MetricsError) as caught:
                self.replicas(one, used)
            self.assertEqual(str(caught.exception), text)

    @given(
        integers(1, 8), dictionaries(sampled_from([f"p{one}" for one in range(8)]), integers(0, 3000)), integers(1, 150)
    )
    def test_direction(self, replicas: int, values: dict[str, int], goal: int) -> None:
        """The replicas never grow below the target nor shrink above it."""
        one = target(replicas)
        used = {name: Sample(value, NOW, 15.0) for name, value in values.items()}
        try:
            proposal = one.utilization_replicas(used, goal, "cpu")
        except MetricsError:
            return
        assert proposal.utilization is not None
        if proposal.utilization > goal:
            self.assertGreaterEqual(proposal.replicas, replicas)
        else:
            self.assertLessEqual(proposal.replicas, replicas)


class AverageTests(SynchronousTestCase):
    """Tests for L{Target.average_replicas}."""

    def test_plain(self) -> None:
        """The replicas are multiplied by the ratio of average and target."""
        self.assertEqual(target(3).average_replicas(samples(20000, 10000, 30000), 15000), Proposal(4, 20000))
        self.assertEqual(target(2).average_replicas(samples(15000, 15000), 15000), Proposal(2, 15000))

    def test_missing(self) -> None:
        """A missing pod is assumed to be at the target while the usage is low, idle otherwise."""
        self.assertEqual(target(4).average_replicas(samples(5000, 5000, 5000), 10000).replicas, 3)
        self.assertEqual(target(3).average_replicas(samples(30000, 30000), 10000).replicas, 6)
        self.assertEqual(target(3).average_replicas(samples(10000, 10000), 10000).replicas, 3)

    def test_other_metrics_of_starting_pods(self) -> None:
        """Samples of other metrics than CPU count from the start."""
        pods = [pod("p0", ready=False, started=-10, changed=-10)]
        self.assertEqual(target(1, pods).average_replicas(samples(20000), 10000).replicas, 2)
        with self.assertRaises(MetricsError):
            target(1, pods).average_replicas(samples(20000), 10000, "cpu")


class TotalTests(SynchronousTestCase):
    """Tests for targets of totals."""

    def test_value(self) -> None:
        """The number of ready pods is multiplied by the ratio."""
        pods = [pod("p0"), pod("p1"), pod("p2", ready=False)]
        self.assertEqual(target(3, pods).value_replicas(20000, 10000), Proposal(4, 20000))
        self.assertEqual(target(3, pods).value_replicas(10500, 10000), Proposal(3, 10500))
        with self.assertRaisesRegex(MetricsError, "unable to calculate ready pods: no pods returned"):
            target(3, []).value_replicas(20000, 10000)

    def test_value_from_zero(self) -> None:
        """Without replicas the ratio itself is the number."""
        self.assertEqual(target(0).value_replicas(25000, 10000).replicas, 3)
        self.assertEqual(target(0).value_replicas(0, 10000).replicas, 0)

    def test_share(self) -> None:
        """The total is divided by the target of a pod."""
        self.assertEqual(target(3).share_replicas(40000, 10000, 3), Proposal(4, 13334))
        self.assertEqual(target(3).share_replicas(31000, 10000, 3), Proposal(3, 10334))
        self.assertEqual(target(0).share_replicas(31000, 10000, 0), Proposal(4, 31000))

    def test_huge(self) -> None:
        """The number fits into 32 bits."""
        self.assertEqual(target(1).share_replicas(10**30, 1, 1).replicas, 2**31 - 1)
