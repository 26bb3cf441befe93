"""Tests for L{kubetwist.controllers.registration} and for what is served after a start."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.registration import Registration
from kubetwist.resources.customresources import CustomResources
from kubetwist.resources.installed import MergedGroups
from kubetwist.resources.layer import Layer
from kubetwist.resources.watching import Flusher
from kubetwist.server.chain import NotFound
from tests.resources.customserver import DEFINITIONS, CustomServer, definition
from tests.resources.server import Server, definitions


class RegistrationTests(SynchronousTestCase):
    """APIServices of custom resources."""

    def setUp(self) -> None:
        """Make a server of custom resources, and a store of APIServices."""
        self.server = CustomServer()
        self.client = self.server.client()
        self.services = Server("apiservices").stores.get("apiregistration.k8s.io", "apiservices")
        custom, installed = self.server.custom, self.server.installer.installed
        self.registration = Registration(self.services, custom.group_versions, installed.subscribe, self.server.clock)

    def names(self) -> list[str]:
        """What is registered."""
        self.server.settle()
        return [record.name for record in self.services.cache.list().records]

    def test_comes_and_goes(self) -> None:
        """A group-version is registered while something of it is served."""
        self.registration.start()
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), ["v1.example.com"])
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(self.names(), [])

    def test_start(self) -> None:
        """What was defined before the start is registered at the start."""
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), [])
        self.registration.start()
        self.assertEqual(self.names(), ["v1.example.com"])

    def test_stop(self) -> None:
        """After the end nothing is registered any more."""
        self.registration.start()
        self.registration.stop()
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), [])


class StartTests(SynchronousTestCase):
    """A server that finds definitions when it starts."""

    def test_established_is_served(self) -> None:
        """What is established is served from the start, and one definition that is broken is not in the others' way."""
        server = CustomServer()
        client = server.client()
        server.define(client, definition())
        broken = server.define(client, definition(None, "boats", "Boat"))
        del broken["status"]["acceptedNames"]["listKind"]
        custom = CustomResources(
            Layer("again", NotFound()),
            server.installer.installed,
            MergedGroups([]),
            server.stores,
            definitions(),
            server.clock,
            Flusher(server.clock),
        )
        self.assertRaises(KeyError, custom.install, broken, terminating=False)
        good = client.ask("GET", f"{DEFINITIONS}/kites.example.com")[1]
        custom.install(good, terminating=False)
        self.assertEqual([str(one) for one in custom.group_versions()], ["example.com/v1"])
        self.assertIsNone(custom.served("boats.example.com"))
