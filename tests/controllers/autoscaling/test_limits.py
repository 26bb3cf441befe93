"""Tests for L{kubetwist.controllers.autoscaling.limits}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.autoscaling.limits import ScalingHistory

BOUNDS = (1, 10)


def behavior(up: Any = None, down: Any = None) -> Any:
    """Return a behavior with the defaults of the API, and some fields replaced."""
    fast = [{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]
    return {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": fast, **(up or {})},
        "scaleDown": {"selectPolicy": "Max", "policies": fast[1:], **(down or {})},
    }


class PlainTests(SynchronousTestCase):
    """Limits without a behavior."""

    def limit(self, current: int, desired: int, bounds: tuple[int, int] = BOUNDS) -> tuple[int, str, bool]:
        """Return the replicas, the reason of the limit and whether it applies."""
        limited = ScalingHistory().limit(None, current, desired, bounds, 0.0)
        return limited.replicas, limited.limit[0], limited.limited

    def test_bounds(self) -> None:
        """The replicas are at least the minimum and at most the maximum."""
        self.assertEqual(self.limit(3, 5), (5, "DesiredWithinRange", False))
        self.assertEqual(self.limit(6, 12), (10, "TooManyReplicas", True))
        self.assertEqual(self.limit(3, 1, (2, 10)), (2, "TooFewReplicas", True))

    def test_step(self) -> None:
        """One step doubles the replicas, or reaches four."""
        self.assertEqual(self.limit(1, 10), (4, "ScaleUpLimit", True))
        self.assertEqual(self.limit(3, 9), (6, "ScaleUpLimit", True))

    def test_stabilization(self) -> None:
        """The highest recommendation of the last five minutes holds."""
        history = ScalingHistory()
        history.begin(5, 0.0)
        self.assertEqual(history.limit(None, 5, 2, BOUNDS, 15.0).replicas, 5)
        held = history.limit(None, 5, 3, BOUNDS, 300.0)
        self.assertEqual((held.replicas, held.able[0]), (5, "ScaleDownStabilized"))
        freed = history.limit(None, 5, 2, BOUNDS, 301.0)
        self.assertEqual((freed.replicas, freed.able[0]), (3, "ScaleDownStabilized"))
        last = history.limit(None, 3, 2, BOUNDS, 601.0)
        self.assertEqual((last.replicas, last.able[0]), (2, "ReadyForNewScale"))


class BehaviorTests(SynchronousTestCase):
    """Limits with a behavior."""

    def test_default(self) -> None:
        """By default replicas double or grow by four in 15 seconds, and shrink after five minutes."""
        history, rules = ScalingHistory(), behavior()
        history.begin(3, 0.0)
        limited = history.limit(rules, 3, 20, (1, 100), 1.0)
        self.assertEqual((limited.replicas, limited.limit[0]), (7, "ScaleUpLimit"))
        history.record_change(rules, 3, 7, 1.0)
        self.assertEqual(history.limit(rules, 7, 20, (1, 100), 10.0).replicas, 7)
        self.assertEqual(history.limit(rules, 7, 20, (1, 100), 17.0).replicas, 14)
        self.assertEqual(history.limit(rules, 14, 1, (1, 100), 310.0).replicas, 14)
        self.assertEqual(history.limit(rules, 14, 1, (1, 100), 318.0).replicas, 1)

    def test_scale_up_window(self) -> None:
        """With a window for growth, the lowest recent recommendation holds."""
        history, rules = ScalingHistory(), behavior({"stabilizationWindowSeconds": 60})
        history.begin(2, 0.0)
        held = history.limit(rules, 2, 5, BOUNDS, 30.0)
        self.assertEqual((held.replicas, held.able[0]), (2, "ScaleUpStabilized"))
        self.assertEqual(history.limit(rules, 2, 5, BOUNDS, 61.0).replicas, 5)

    def test_policies_down(self) -> None:
        """The policy that allows the largest change is chosen, or the smallest, or none."""
        policies = [
            {"type": "Pods", "value": 1, "periodSeconds": 60},
            {"type": "Percent", "value": 50, "periodSeconds": 60},
        ]
        for select, expected in (("Max", 5), ("Min", 9), ("Disabled", 10)):
            rules = behavior(
                down={"policies": policies, "selectPolicy": select, "stabilizationWindowSeconds": 0},
            )
            history = ScalingHistory()
            limited = history.limit(rules, 10, 2, BOUNDS, 0.0)
            self.assertEqual((limited.replicas, limited.limit[0]), (expected, "ScaleDownLimit"), select)
            history.record_change(rules, 10, expected, 0.0)
            self.assertEqual(history.limit(rules, expected, 2, BOUNDS, 59.0).replicas, expected, select)

    def test_policies_up(self) -> None:
        """The same holds for growth; a share is rounded up."""
        policies = [
            {"type": "Pods", "value": 3, "periodSeconds": 60},
            {"type": "Percent", "value": 10, "periodSeconds": 60},
        ]
        for select, expected in (("Max", 5), ("Min", 3), ("Disabled", 2)):
            rules = behavior({"policies": policies, "selectPolicy": select})
            self.assertEqual(ScalingHistory().limit(rules, 2, 9, BOUNDS, 0.0).replicas, expected, select)

    def test_bounds(self) -> None:
        """Minimum and maximum hold, too."""
        many = ScalingHistory().limit(behavior(), 8, 12, BOUNDS, 0.0)
        self.assertEqual((many.replicas, many.limit[0]), (10, "TooManyReplicas"))
        few = ScalingHistory().limit(behavior(down={"stabilizationWindowSeconds": 0}), 8, 1, (2, 10), 0.0)
        self.assertEqual((few.replicas, few.limit[0]), (2, "TooFewReplicas"))

    @given(
        sampled_from([None, behavior(), behavior({"selectPolicy": "Min"}, {"stabilizationWindowSeconds": 30})]),
        lists(tuples(integers(0, 200), integers(0, 50)), max_size=30),
    )
    def test_within_bounds(self, rules: Any, steps: list[tuple[int, int]]) -> None:
        """Replicas stay within the bounds, and the history has no outdated entries."""
        history, current, now = ScalingHistory(), 5, 0.0
        history.begin(current, now)
        for seconds, desired in steps:
            now += seconds
            limited = history.limit(rules, current, desired, BOUNDS, now)
            self.assertTrue(BOUNDS[0] <= limited.replicas <= BOUNDS[1])
            if limited.replicas != current:
                history.record_change(rules, current, limited.replicas, now)
            current = limited.replicas
        old = [one for one in history._recommendations if one.at < now - 300]
        self.assertEqual(old, [])
