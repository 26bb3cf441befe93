"""Test case for the registration of APIServices."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.controllers.aggregation.autoregister import AutoRegisterController
from kubetwist.controllers.machinery.informer import Informer, StoreSource
from kubetwist.registry.apiregistration.bootstrap import AUTOMANAGED
from tests.resources.customserver import CustomServer
from tests.resources.server import Server

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class RegistrationTestCase(SynchronousTestCase):
    """Test case with a server of custom resources and an autoregister controller."""

    def setUp(self) -> None:
        """Create a server of custom resources, and a store of APIServices."""
        self.server = CustomServer()
        self.client = self.server.client()
        apis = Server("apiservices")
        self.services = apis.stores.get("apiregistration.k8s.io", "apiservices")
        self.api = apis.client()

    def start_controller(self, *built_in: str) -> AutoRegisterController:
        """Start a controller for built-in and custom group-versions."""
        informer = Informer(StoreSource(self.services), self.server.clock)
        informer.start()
        registration = AutoRegisterController(
            self.services,
            informer,
            self.server.clock,
            built_in=[GroupVersion.parse(one) for one in built_in],
            custom=self.server.controller.group_versions,
            subscribe=self.server.controller.subscribe,
        )
        self.successResultOf(Deferred.fromCoroutine(registration.start()))
        self.addCleanup(informer.stop)
        return registration

    def names(self, seconds: float = 0) -> list[str]:
        """Return the names of the APIServices after some time."""
        self.server.settle()
        for _ in range(int(seconds * 10)):
            self.server.clock.advance(0.1)
        return [record.name for record in self.services.cache.list().records]

    def find(self, name: str) -> Any:
        """Return an APIService."""
        code, found = self.api.ask("GET", f"{SERVICES}/{name}")
        self.assertEqual(code, 200)
        return found

    def patch(self, name: str, patch: dict[str, Any], part: str = "") -> None:
        """Change an APIService as a user."""
        path = f"{SERVICES}/{name}{part}"
        code, response = self.api.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.assertEqual(code, 200, response)

    def make(self, group: str, managed: str = "", **spec: Any) -> str:
        """Create an APIService for a version of a group as a user."""
        labels = {AUTOMANAGED: managed} if managed else {}
        obj = {
            "metadata": {"name": f"v1.{group}", "labels": labels},
            "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 8, **spec},
        }
        code, response = self.api.ask("POST", SERVICES, obj)
        self.assertEqual(code, 201, response)
        return f"v1.{group}"
