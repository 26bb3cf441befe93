"""Tests of L{kubetwist.registry.rbac.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests of the defaults of bindings."""

    def test_binding_groups(self) -> None:
        """The default group of users and groups is that of roles, that of service accounts the core group."""
        subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]
        binding = defaulted("rbac.authorization.k8s.io", "RoleBinding", roleRef={"name": "r"}, subjects=subjects)
        self.assertEqual(binding["roleRef"]["apiGroup"], "rbac.authorization.k8s.io")
        self.assertEqual(
            [subject.get("apiGroup") for subject in binding["subjects"]], ["rbac.authorization.k8s.io", None]
        )
