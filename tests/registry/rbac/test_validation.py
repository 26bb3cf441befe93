"""Tests of L{kubetwist.registry.rbac.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class RoleTests(SynchronousTestCase):
    """Tests of roles and bindings."""

    def test_role(self) -> None:
        """A rule needs verbs and resources; rules of a Role cannot have URLs."""
        group = "rbac.authorization.k8s.io"
        self.assertEqual(
            problems(group, "Role", rules=[{"apiGroups": ["apps"], "resources": ["deployments"]}]),
            ["rules[0].verbs: Required value: verbs must contain at least one value"],
        )
        rule = {"verbs": ["get"], "nonResourceURLs": ["/x"]}
        self.assertEqual(problems(group, "ClusterRole", rules=[rule]), [])
        self.assertIn("namespaced rules cannot apply", problems(group, "Role", rules=[rule])[0])

    def test_role_of_binding_stays(self) -> None:
        """The role of a binding is immutable."""
        group = "rbac.authorization.k8s.io"
        old = {"roleRef": {"kind": "Role", "name": "a"}}
        found = change_problems(group, "RoleBinding", old, {"roleRef": {"kind": "ClusterRole", "name": "view"}})
        self.assertEqual(
            found,
            [
                'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"view"}: '
                "cannot change roleRef"
            ],
        )
