"""Tests of L{kubetwist.registry.core.resourcequota.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.resourcequota.validation import validate_resource_quota
from tests.registry.strategytools import change_problems, problems


class QuotaTests(SynchronousTestCase):
    """Tests of ResourceQuotas."""

    def test_quota(self) -> None:
        """The number of pods must be an integer."""
        self.assertEqual(
            problems("", "ResourceQuota", spec={"hard": {"pods": "1500m"}}),
            ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
        )


class ScopeTests(SynchronousTestCase):
    """Tests of scopes of ResourceQuotas."""

    def test_scopes_of_quotas(self) -> None:
        """Errors of scopes have the path of the list or the selector."""
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

    def test_many_scopes(self) -> None:
        """Thousands of invalid scopes are one error that quotes all, and the number of errors is limited."""
        hard = {f"count/a{number}": "1" for number in range(20)} | {"secrets": "1", "services": "1"}
        unknown = [f"x{number}" for number in range(5)]
        obj = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"}}
        causes = validate_resource_quota({**obj, "spec": {"hard": hard, "scopes": [*unknown, "Terminating"]}})
        texts = {cause.message for cause in causes}
        self.assertEqual((len(causes), len(texts), len({id(cause) for cause in causes})), (7, 2, 2))
        expressions = [{"scopeName": "Terminating", "operator": "Exists"}] * 3
        spec = {"hard": hard, "scopeSelector": {"matchExpressions": expressions}}
        causes = validate_resource_quota({**obj, "spec": spec})
        self.assertEqual((len(causes), len({id(cause) for cause in causes})), (6, 1))
        hard = {f"hugepages-{number}": "1" for number in range(3000)}
        causes = validate_resource_quota({**obj, "spec": {"hard": hard, "scopes": ["BestEffort"] * 5000}})
        self.assertTrue(5000 <= len(causes) < 7000, len(causes))
