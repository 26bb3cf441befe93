"""Tests of L{kubetwist.registry.generic.deprecations}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.deprecations import deprecation_warning


class DeprecationTests(SynchronousTestCase):
    """Tests of L{deprecation_warning}."""

    def test_deprecated_kinds(self) -> None:
        """Kinds are deprecated from a minor version on."""
        endpoints = GroupVersionKind("", "v1", "Endpoints")
        self.assertEqual(
            deprecation_warning(endpoints, 36),
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        )
        self.assertEqual(deprecation_warning(endpoints, 32), "")
        self.assertEqual(deprecation_warning(GroupVersionKind("", "v1", "Pod"), 36), "")
