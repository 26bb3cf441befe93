"""Tests for L{kubetwist.controllers.aggregation.apiservices}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.aggregation.apiservices import LOCAL
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.resources.customresources import CustomResources
from kubetwist.resources.handlers.watch import WatchFlusher
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.servedresources import MergedServedResources
from tests.controllers.aggregation.registrationcase import RegistrationTestCase
from tests.resources.customserver import DEFINITIONS, CustomServer, definition
from tests.resources.server import definitions


class APIServiceTests(RegistrationTestCase):
    """Tests for L{kubetwist.controllers.aggregation.apiservices}."""

    def test_local_is_available(self) -> None:
        """A local APIService is always available."""
        self.start_controller("apps/v1")
        name = self.make("mine.example.com", service={"namespace": "a", "name": "b"})
        condition = {"type": "Available", "status": "False", "reason": "Spoilt"}
        for one in (name, "v1.apps"):
            self.patch(one, {"status": {"conditions": [condition]}}, "/status")
        self.names(1)
        self.assertEqual(self.find("v1.apps")["status"]["conditions"][0]["reason"], "Local")
        self.assertEqual(self.find(name)["status"]["conditions"][0]["reason"], "Spoilt")
        self.patch(name, {"spec": {"service": None}})
        self.names(1)
        self.assertEqual(self.find(name)["status"]["conditions"][0]["message"], LOCAL.message)

    def test_stop(self) -> None:
        """After stop no APIService is registered."""
        self.successResultOf(self.start_controller().stop())
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), [])


class StartTests(SynchronousTestCase):
    """Definitions that exist at the start of a server."""

    def test_established_is_served(self) -> None:
        """Established definitions are served from the start, even if another definition is invalid."""
        server = CustomServer()
        client = server.client()
        server.define(client, definition())
        broken = server.define(client, definition(None, "boats", "Boat"))
        del broken["status"]["acceptedNames"]["listKind"]
        custom = CustomResources(
            DelegatingMux("again", NotFound()),
            server.installer.served_resources,
            MergedServedResources([]),
            ResourceRegistry(server.backend, server.clock),
            definitions(),
            server.clock,
            WatchFlusher(server.clock),
        )
        self.assertRaises(KeyError, custom.install, broken, terminating=False)
        good = client.ask("GET", f"{DEFINITIONS}/kites.example.com")[1]
        custom.install(good, terminating=False)
        self.assertEqual([str(one) for one in custom.group_versions()], ["example.com/v1"])
        self.assertIsNone(custom.served("boats.example.com"))
