"""Tests of L{kubetwist.registry.core.limitrange.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class LimitRangeTests(SynchronousTestCase):
    """Tests of LimitRanges."""

    def test_limit_ranges(self) -> None:
        """Limits must be consistent; defaults are forbidden for pods, and not validated then."""
        item = {
            "type": "Pod",
            "max": {"cpu": "2", "services": "-1"},
            "min": {"cpu": "1"},
            "default": {"cpu": "5", "Bad!": "1"},
            "maxLimitRequestRatio": {"cpu": "3"},
        }
        self.assertEqual(
            problems("", "LimitRange", spec={"limits": [item]}),
            [
                'spec.limits[0].max[services]: Invalid value: "services": must be a standard resource for containers',
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": '
                "ratio 3 is greater than max/min = 2.000000",
            ],
        )
        item = {"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "3"}, "defaultRequest": {"cpu": "1"}}
        self.assertEqual(
            problems("", "LimitRange", spec={"limits": [item]}),
            ['spec.limits[0].default[cpu]: Invalid value: "2": default value 3 is greater than max value 2'],
        )
        item = {"type": "PersistentVolumeClaim", "maxLimitRequestRatio": {"stor": "2"}}
        self.assertEqual(
            [one.partition(":")[0] for one in problems("", "LimitRange", spec={"limits": [item]})],
            ["spec.limits[0].limits", "spec.limits[0].maxLimitRequestRatio[stor]"],
        )

    def test_ratios_of_great_amounts(self) -> None:
        """Ratios are computed from thousandths unless they overflow; there is no ratio to zero."""
        for least, most, ratio, found in (
            ("100m", "250m", "2500m", ""),
            ("100m", "250m", "2501m", "2.500000"),
            ("1", "9223372036854775807", "2", ""),
            ("9223372036854775806", "9223372036854775807", "1500m", "1.000000"),
            ("0", "1", "9", ""),
        ):
            item = {"type": "Container", "min": {"cpu": least}, "max": {"cpu": most}}
            item["maxLimitRequestRatio"] = {"cpu": ratio}
            text = f"ratio {ratio} is greater than max/min = {found}"
            expected = f'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "{ratio}": {text}'
            self.assertEqual(problems("", "LimitRange", spec={"limits": [item]}), [expected] if found else [])
