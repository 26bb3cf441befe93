"""Tests of L{kubetwist.registry.rbac.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class BindingTests(SynchronousTestCase):
    """Tests of rows of bindings."""

    def test_role_binding(self) -> None:
        """Subjects are grouped into users, groups and service accounts."""
        subjects = [
            {"kind": "User", "name": "ann"},
            {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"},
            {"kind": "User", "name": "bob"},
            {"kind": "ServiceAccount", "name": "lost"},
        ]
        obj = made({"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects})
        self.assertEqual(
            cells("rbac.authorization.k8s.io", "RoleBinding", obj, NOW),
            ["x", "Role/r", "3m", "ann, bob", "", "ns/sa, /lost"],
        )
