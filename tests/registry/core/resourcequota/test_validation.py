"""Tests for L{kubetwist.registry.core.resourcequota.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class QuotaTests(SynchronousTestCase):
    """ResourceQuotas."""

    def test_quota(self) -> None:
        """A quota counts whole pods."""
        self.assertEqual(
            problems("", "ResourceQuota", spec={"hard": {"pods": "1500m"}}),
            ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
        )


class ScopeTests(SynchronousTestCase):
    """Scopes of ResourceQuotas."""

    def test_scopes_of_quotas(self) -> None:
        """What is wrong with a scope is told in its place, in the list and in the selector."""
        spec = {"hard": {"services": "1"}, "scopes": ["Terminating", "Odd", "Terminating", "NotTerminating"]}
        shown = '["Terminating","Odd","Terminating","NotTerminating"]'
        self.assertEqual(
            problems("", "ResourceQuota", spec=spec),
            [
                f"spec.scopes: Invalid value: {shown}: {text}"
                for text in (
                    "unsupported scope applied to resource",
                    "unsupported scope",
                    "unsupported scope applied to resource",
                    "unsupported scope applied to resource",
                    "conflicting scopes",
                )
            ],
        )
        once = {"spec": {"scopes": ["Terminating"]}}
        twice = {"spec": {"scopes": ["Terminating", "Terminating"]}}
        self.assertEqual(change_problems("", "ResourceQuota", twice, once), [])
        expressions = [
            {"scopeName": "Terminating", "operator": "In"},
            {"scopeName": "NotTerminating", "operator": "Exists"},
        ]
        found = problems("", "ResourceQuota", spec={"scopeSelector": {"matchExpressions": expressions}})
        path = "spec.scopeSelector.matchExpressions"
        self.assertEqual(
            [(one.partition(":")[0], one.rpartition(": ")[2][:25]) for one in found],
            [
                (f"{path}.operator", "must be 'Exists' when sco"),
                (f"{path}.values", "must be at least one valu"),
                (path, "conflicting scopes"),
            ],
        )
