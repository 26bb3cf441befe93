"""Tests for L{kubetwist.registry.apiregistration.bootstrap}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.registry.apiregistration.bootstrap import AUTOMANAGED, api_service
from kubetwist.registry.strategies import strategy_for


class ServiceTests(SynchronousTestCase):
    """Tests for L{api_service}."""

    def test_group(self) -> None:
        """The name of an APIService is its group version, and a label marks it as managed by the server."""
        result = api_service(GroupVersion("apps", "v1"), 100, 15, "onstart")
        self.assertEqual(result["metadata"], {"name": "v1.apps", "labels": {AUTOMANAGED: "onstart"}})
        self.assertEqual(
            result["spec"], {"version": "v1", "groupPriorityMinimum": 100, "versionPriority": 15, "group": "apps"}
        )

    def test_core(self) -> None:
        """The APIService of the core group has no group, and a name that ends with a dot."""
        result = api_service(GroupVersion("", "v1"), 18000, 1, "onstart")
        self.assertEqual(result["metadata"]["name"], "v1.")
        self.assertNotIn("group", result["spec"])

    def test_valid(self) -> None:
        """The APIServices of the server are valid."""
        strategy = strategy_for("apiregistration.k8s.io", "APIService")
        for group_version in (GroupVersion("", "v1"), GroupVersion("apps", "v1beta1")):
            result = api_service(group_version, 100, 15, "true")
            strategy.default(result)
            self.assertEqual(list(strategy.validate(result)), [])
            self.assertEqual(list(strategy.name_validator(result)(result["metadata"]["name"], False)), [])
