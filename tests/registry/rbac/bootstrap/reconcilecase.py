"""Base class of tests of RBAC bootstrap objects."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.rbac.bootstrap.reconcile import (
    reconcile,
)
from tests.registry.rbac.rbacserver import RBACServer


class ReconcileTestCase(SynchronousTestCase):
    """Base class of tests with a server."""

    def setUp(self) -> None:
        """Create a server without roles."""
        self.server = RBACServer()

    def reconcile(self) -> int:
        """Reconcile; return the number of writes."""
        before = self.server.backend.revision
        self.server.run(reconcile(self.server.stores, FeatureGates()))
        return self.server.backend.revision - before

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Return the response to a request of the administrator, which succeeds."""
        code, answer = self.server.ask("admin", method, path, body)
        self.assertIn(code, (200, 201), answer)
        return answer
