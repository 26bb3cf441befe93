"""Roles that a server creates at its start."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.rbac.bootstrap.reconcile import (
    reconcile,
)
from tests.registry.rbac.rbacserver import RBACServer


class ReconcileTestCase(SynchronousTestCase):
    """A test on a server."""

    def setUp(self) -> None:
        """Without any role."""
        self.server = RBACServer()

    def reconcile(self) -> int:
        """Start; the number of writes."""
        before = self.server.backend.revision
        self.server.run(reconcile(self.server.stores))
        return self.server.backend.revision - before

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """What the server answers to the administrator, who succeeds."""
        code, answer = self.server.ask("admin", method, path, body)
        self.assertIn(code, (200, 201), answer)
        return answer
