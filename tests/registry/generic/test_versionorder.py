"""Tests of L{kubetwist.registry.generic.versionorder}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.versionorder import version_preference
from kubetwist.registry.kinds import version_priority
from kubetwist.registry.kindtable import KINDS


class VersionTests(SynchronousTestCase):
    """Tests of the order of versions."""

    def test_preference(self) -> None:
        """Stable versions precede beta and alpha versions, larger numbers smaller ones; other names are last."""
        versions = ["foo10", "v1alpha1", "v1", "v10", "v2beta1", "v2", "v1beta2", "foo1"]
        self.assertEqual(
            sorted(versions, key=version_preference),
            ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo1", "foo10"],
        )

    def test_priorities(self) -> None:
        """The preferred version of a group has the highest priority."""
        self.assertEqual(version_priority("autoscaling", "v2"), 30)
        self.assertEqual(version_priority("apps", "v1"), 15)
        self.assertEqual(version_priority("certificates.k8s.io", "v1beta1"), 9)
        for kind in KINDS:
            priorities = [version_priority(kind.group, version) for version, _ in kind.versions]
            self.assertEqual(priorities, sorted(priorities, reverse=True), kind.resource)
