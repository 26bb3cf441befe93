"""Tests for L{kubetwist.registry.resource.validation.capacity}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.quantity import Quantity
from kubetwist.registry.generic.validation.fields import ErrorList
from kubetwist.registry.resource.validation.capacity import validate_request_policy


class PolicyTests(SynchronousTestCase):
    """Tests for request policies of capacities."""

    def problems(self, **policy: Any) -> list[str]:
        """Return the errors of a policy for a device with 10Gi."""
        errors: ErrorList = []
        validate_request_policy(policy, Quantity.parse("10Gi"), "p", errors)
        return [str(cause) for cause in errors]

    def test_valid(self) -> None:
        """A policy has a list of values, a range, or neither."""
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.problems(default="1Gi", validValues=["1Gi", "2Gi"]), [])
        self.assertEqual(self.problems(default="3Gi", validRange={"min": "1Gi", "max": "9Gi", "step": "2Gi"}), [])

    def test_both(self) -> None:
        """A policy cannot have both."""
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        self.assertEqual(self.problems(validValues=["1Gi"], validRange={}), [f"p: Forbidden: {text}"])

    def test_default(self) -> None:
        """A policy has a default for claims without an amount."""
        for name, value in (("validValues", ["1Gi"]), ("validRange", {})):
            self.assertEqual(
                self.problems(**{name: value}), [f"p.default: Required value: required when {name} is defined"]
            )

    def test_values(self) -> None:
        """Values are sorted, do not exceed the capacity, and include the default."""
        self.assertEqual(
            self.problems(default="3Gi", validValues=["2Gi", "1Gi", "20Gi", "20Gi"]),
            [
                'p.validValues[1]: Invalid value: "1Gi": values must be sorted in ascending order',
                'p.validValues[2]: Invalid value: "20Gi": option is larger than capacity value: 10Gi',
                'p.validValues[3]: Invalid value: "20Gi": option is larger than capacity value: 10Gi',
                'p.validValues[3]: Duplicate value: "21474836480"',
                'p.validValues: Invalid value: "3Gi": default value is not valid according to the requestPolicy',
            ],
        )
        self.assertEqual(
            self.problems(default="1", validValues=["1"] * 11),
            [
                "p.validValues: Too many: 11: must have at most 10 items",
                'p.validValues: Invalid value: "1": default value is not valid according to the requestPolicy',
            ],
        )

    def test_range(self) -> None:
        """A range has a minimum, is within the capacity, and includes the default at one of its steps."""
        self.assertEqual(
            self.problems(default="1", validRange={}),
            ["p.validRange.min: Required value: required when validRange is defined"],
        )
        self.assertEqual(
            self.problems(default="1Gi", validRange={"min": "12Gi", "max": "11Gi"}),
            [
                'p.validRange.min: Invalid value: "12Gi": min is larger than capacity value: 10Gi',
                'p.validRange.min: Invalid value: "1Gi": default is less than min: 12Gi',
                'p.validRange.max: Invalid value: "12Gi": min is larger than max: 11Gi',
                'p.validRange.max: Invalid value: "11Gi": max is larger than capacity value: 10Gi',
            ],
        )
        self.assertEqual(
            self.problems(default="5Gi", validRange={"min": "1Gi", "max": "4Gi", "step": "0"}),
            ['p.validRange.max: Invalid value: "5Gi": default is more than max: 4Gi'],
        )
        self.assertEqual(
            self.problems(default="2Gi", validRange={"min": "1Gi", "max": "4Gi", "step": "20Gi"}),
            [
                'p.validRange.step: Invalid value: "20Gi": one step 21Gi is larger than capacity value: 10Gi',
                'p.validRange.step: Invalid value: "2Gi": value is not a multiple of a given step (20Gi) from (1Gi)',
                'p.validRange.step: Invalid value: "4Gi": value is not a multiple of a given step (20Gi) from (1Gi)',
            ],
        )
