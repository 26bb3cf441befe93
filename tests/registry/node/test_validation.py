"""Tests for L{kubetwist.registry.node.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class RuntimeClassTests(SynchronousTestCase):
    """Tests for the validation of RuntimeClasses."""

    def test_runtime_class(self) -> None:
        """The tolerations of a RuntimeClass differ in more than their time."""
        twice = [
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": time} for time in (1, 2)
        ]
        self.assertEqual(
            problems("node.k8s.io", "RuntimeClass", handler="h", scheduling={"tolerations": twice}),
            [
                'scheduling.tolerations[1]: Duplicate value: {"Key":"k","Operator":"Exists","Value":"",'
                '"Effect":"NoExecute","TolerationSeconds":2}'
            ],
        )


class RuntimeUpdateTests(SynchronousTestCase):
    """Tests for updates of RuntimeClasses."""

    def test_update(self) -> None:
        """An update is validated as a whole; tolerations are unique except for their time."""
        tolerations = [
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": n} for n in (1, 2)
        ]
        self.assertEqual(
            change_problems(
                "node.k8s.io", "RuntimeClass", {"handler": "h"}, {"scheduling": {"tolerations": tolerations}}
            ),
            [
                "handler: Required value",
                'scheduling.tolerations[1]: Duplicate value: {"Key":"k","Operator":"Exists","Value":"","Effect":'
                '"NoExecute","TolerationSeconds":2}',
                'handler: Invalid value: "": field is immutable',
            ],
        )
