"""Base class of tests of bootstrap objects."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.core.namespace.bootstrap import system_namespaces
from kubetwist.registry.core.service.bootstrap import default_service_cidr, kubernetes_service
from kubetwist.registry.flowcontrol.bootstrap import ensure_flow_control
from kubetwist.registry.scheduling.bootstrap import ensure_priority_classes
from kubetwist.registry.stores import Stores
from tests.resources.server import Server, all_kinds
from tests.schema.release import definitions


class BootstrapTestCase(SynchronousTestCase):
    """Base class of tests of bootstrap objects."""

    def setUp(self) -> None:
        """Create a server with all resources."""
        self.server = Server(*(info.resource for info in all_kinds()), types=definitions())
        self.stores = self.server.stores

    async def everything(self, stores: Stores) -> None:
        """Create all bootstrap objects."""
        await system_namespaces(stores)
        await ensure_priority_classes(stores)
        await ensure_flow_control(stores, FeatureGates())
        await default_service_cidr(stores, ["10.0.0.0/24"])
        await kubernetes_service(stores, "10.0.0.1", "192.0.2.7", 6443)

    def found(self, group: str, resource: str, name: str, namespace: str = "") -> Any:
        """Return an existing object."""
        obj = self.stores.get_copy(group, resource, namespace, name)
        self.assertIsNotNone(obj, name)
        return obj
