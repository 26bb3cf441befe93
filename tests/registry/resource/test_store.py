"""Tests for L{kubetwist.registry.resource.store}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, UpdateOptions
from kubetwist.registry.generic.updates import UpdateRules

from ..sharedstores import SharedStoresTestCase

DENIED = (
    "Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the "
    "containing namespace"
)
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}]}}


class AdminAccessTests(SharedStoresTestCase):
    """Tests for admin access to devices."""

    resources = ("namespaces", "resourceclaims", "resourceclaimtemplates")

    def namespace(self, **labels: str) -> None:
        """Create the namespace of the test."""
        namespaces = self.one.get("", "namespaces")
        obj = {"metadata": {"name": "default", "labels": labels}, "spec": {}}
        self.done(namespaces.create(self.scope, obj, CreateOptions()))

    def make(self, resource: str, spec: Any) -> Any:
        """Create a claim or a template."""
        store = self.one.get("resource.k8s.io", resource)
        obj = {"metadata": {"name": "a", "namespace": "default"}, "spec": spec}
        store.strategy.default(obj)
        return self.done(store.create(self.scope, obj, CreateOptions()))

    def write_errors(self, write: Any) -> list[tuple[str, str]]:
        """Return the errors of a write that is rejected."""
        error: APIStatusError = self.failureResultOf(write, APIStatusError).value
        return [(one["field"], one["message"]) for one in (error.details or {})["causes"]]

    def test_unlabelled(self) -> None:
        """Admin access is rejected in namespaces without the label; templates report the path of claims."""
        self.namespace()
        for resource, spec in (("resourceclaims", SPEC), ("resourceclaimtemplates", {"spec": SPEC})):
            store = self.one.get("resource.k8s.io", resource)
            obj: dict[str, Any] = {"metadata": {"name": "a", "namespace": "default"}, "spec": spec}
            store.strategy.default(obj)
            errors = self.write_errors(store.create(self.scope, obj, CreateOptions()))
            self.assertEqual(errors, [("spec.devices.requests[0].adminAccess", DENIED)])

    def test_labelled(self) -> None:
        """Admin access is allowed in labelled namespaces."""
        self.namespace(**{"resource.kubernetes.io/admin-access": "true"})
        self.make("resourceclaims", SPEC)
        self.make("resourceclaimtemplates", {"spec": SPEC})

    def test_status(self) -> None:
        """Devices with admin access cannot be allocated in namespaces without the label."""
        self.namespace()
        self.make("resourceclaims", {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}})
        store = self.one.get("resource.k8s.io", "resourceclaims")
        result = {"request": "r", "driver": "d.x", "pool": "p", "device": "d", "adminAccess": True}

        def allocated(obj: Any) -> Any:
            return {**obj, "status": {"allocation": {"devices": {"results": [result]}}}}

        strategy = store.strategy
        rules = UpdateRules("status", strategy.prepare_for_status_update, strategy.validate_status_update)
        errors = self.write_errors(store.update(self.scope, "a", allocated, UpdateOptions(), rules, patching=True))
        self.assertEqual(errors, [("status.allocation.devices.results[0].adminAccess", DENIED)])
