"""Tests for L{kubetwist.registry.scheduling.store}."""

from __future__ import annotations

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, DeleteOptions

from ..sharedstores import SharedStoresTestCase


class PriorityClassTests(SharedStoresTestCase):
    """Tests for the deletion of priority classes."""

    resources = ("priorityclasses",)

    def test_delete(self) -> None:
        """System classes cannot be deleted."""
        store = self.one.get("scheduling.k8s.io", "priorityclasses")
        obj = {"metadata": {"name": "a"}, "value": 1}
        store.strategy.default(obj)
        self.done(store.create(self.scope, obj, CreateOptions()))
        self.done(store.delete(self.scope, "a", DeleteOptions()))
        refused = self.failureResultOf(store.delete(self.scope, "system-node-critical", DeleteOptions()))
        error = refused.trap(APIStatusError) and refused.value
        self.assertEqual((error.code, error.reason), (403, "Forbidden"))
        self.assertIn("this is a system priority class and cannot be deleted", error.message)
