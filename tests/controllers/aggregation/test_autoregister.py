"""Tests for L{kubetwist.controllers.aggregation.autoregister} and for what is served after a start."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.controllers.aggregation.apiservices import LOCAL
from kubetwist.controllers.aggregation.autoregister import Registration
from kubetwist.controllers.machinery.informer import Informer, StoreSource
from kubetwist.registry.apiregistration.bootstrap import AUTOMANAGED
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.resources.customresources import CustomResources
from kubetwist.resources.handlers.watch import Flusher
from kubetwist.resources.mux import Layer
from kubetwist.resources.servedresources import MergedGroups
from kubetwist.server.chain import NotFound
from tests.resources.customserver import DEFINITIONS, CustomServer, definition
from tests.resources.server import Server, definitions

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class RegistrationTests(SynchronousTestCase):
    """APIServices of what is served here."""

    def setUp(self) -> None:
        """Make a server of custom resources, and a store of APIServices."""
        self.server = CustomServer()
        self.client = self.server.client()
        apis = Server("apiservices")
        self.services = apis.stores.get("apiregistration.k8s.io", "apiservices")
        self.api = apis.client()

    def begin(self, *built_in: str) -> Registration:
        """Have an APIService for C{built_in} and all that is defined."""
        informer = Informer(StoreSource(self.services), self.server.clock)
        informer.start()
        registration = Registration(
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
        """What is registered, some time later."""
        self.server.settle()
        for _ in range(int(seconds * 10)):
            self.server.clock.advance(0.1)
        return [record.name for record in self.services.cache.list().records]

    def find(self, name: str) -> Any:
        """An APIService as clients see it."""
        code, found = self.api.ask("GET", f"{SERVICES}/{name}")
        self.assertEqual(code, 200)
        return found

    def patch(self, name: str, patch: dict[str, Any], part: str = "") -> None:
        """Change one, as a user."""
        path = f"{SERVICES}/{name}{part}"
        code, answer = self.api.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.assertEqual(code, 200, answer)

    def make(self, group: str, managed: str = "", **spec: Any) -> str:
        """Make one for a version of a group, as a user."""
        labels = {AUTOMANAGED: managed} if managed else {}
        obj = {
            "metadata": {"name": f"v1.{group}", "labels": labels},
            "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 8, **spec},
        }
        code, answer = self.api.ask("POST", SERVICES, obj)
        self.assertEqual(code, 201, answer)
        return f"v1.{group}"

    def test_comes_and_goes(self) -> None:
        """A group-version is registered while something of it is defined."""
        self.begin()
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), ["v1.example.com"])
        found = self.find("v1.example.com")
        self.assertEqual(found["metadata"]["labels"], {AUTOMANAGED: "true"})
        self.assertEqual((found["spec"]["groupPriorityMinimum"], found["spec"]["versionPriority"]), (1000, 100))
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(self.names(), [])

    def test_defined_is_enough(self) -> None:
        """What is defined is registered even where its names are taken and nothing can be served."""
        self.begin()
        self.server.define(self.client, definition())
        second = definition(None, "boats", "Kite")
        second["spec"]["versions"][0]["name"] = "v7"
        self.server.define(self.client, second)
        self.assertEqual(self.names(), ["v1.example.com", "v7.example.com"])

    def test_start(self) -> None:
        """What was defined before the start is registered at the start, as is what is built in."""
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), [])
        self.begin("v1", "apps/v1", "apiregistration.k8s.io/v1")
        self.assertEqual(self.names(), ["v1.", "v1.apps", "v1.example.com"])
        found = self.find("v1.apps")
        self.assertEqual(found["metadata"]["labels"], {AUTOMANAGED: "onstart"})
        self.assertEqual(
            found["spec"], {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}
        )
        self.assertEqual(found["status"]["conditions"][0]["reason"], "Local")

    def test_second_start(self) -> None:
        """A second start writes nothing."""
        self.successResultOf(self.begin("v1", "apps/v1").stop())
        revision = self.services.cache.revision
        self.begin("v1", "apps/v1")
        self.names(1)
        self.assertEqual(self.services.cache.revision, revision)

    def test_custom_is_kept(self) -> None:
        """That of custom resources is made again when it is deleted, and corrected when it is changed."""
        self.begin()
        self.server.define(self.client, definition())
        self.names()
        self.api.ask("DELETE", f"{SERVICES}/v1.example.com")
        self.assertEqual(self.names(), ["v1.example.com"])
        self.patch("v1.example.com", {"spec": {"groupPriorityMinimum": 5}})
        self.names()
        self.assertEqual(self.find("v1.example.com")["spec"]["groupPriorityMinimum"], 1000)

    def test_taken_over(self) -> None:
        """An APIService without the label is its maker's: it stays as it is, also when the definition goes."""
        self.begin()
        self.make("example.com", service={"namespace": "a", "name": "b"})
        self.server.define(self.client, definition())
        self.names(1)
        self.assertEqual(self.find("v1.example.com")["spec"]["groupPriorityMinimum"], 7)
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(self.names(1), ["v1.example.com"])

    def test_built_in_once(self) -> None:
        """That of a built-in version is seen to at starts alone: deleted or changed, it stays so until the next."""
        first = self.begin("apps/v1", "batch/v1")
        self.api.ask("DELETE", f"{SERVICES}/v1.batch")
        self.patch("v1.apps", {"spec": {"groupPriorityMinimum": 5}})
        self.assertEqual(self.names(1), ["v1.apps"])
        self.assertEqual(self.find("v1.apps")["spec"]["groupPriorityMinimum"], 5)
        self.successResultOf(first.stop())
        self.begin("apps/v1", "batch/v1")
        self.assertEqual(self.names(), ["v1.apps", "v1.batch"])
        self.assertEqual(self.find("v1.apps")["spec"]["groupPriorityMinimum"], 17800)

    def test_not_served_any_more(self) -> None:
        """What was registered at an earlier start, and is served no more, is deleted at the start; nothing else is."""
        self.make("gone.example.com", "onstart")
        self.make("custom.example.com", "true")
        self.make("mine.example.com")
        self.begin("apps/v1")
        self.assertEqual(self.names(1), ["v1.apps", "v1.mine.example.com"])
        self.make("later.example.com", "onstart")
        self.make("managed.example.com", "true")
        self.assertEqual(self.names(1), ["v1.apps", "v1.later.example.com", "v1.mine.example.com"])

    def test_local_is_available(self) -> None:
        """Whoever says otherwise: what the server itself answers for is available."""
        self.begin("apps/v1")
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
        """After the end nothing is registered any more."""
        self.successResultOf(self.begin().stop())
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
            ResourceRegistry(server.backend, server.clock),
            definitions(),
            server.clock,
            Flusher(server.clock),
        )
        self.assertRaises(KeyError, custom.install, broken, terminating=False)
        good = client.ask("GET", f"{DEFINITIONS}/kites.example.com")[1]
        custom.install(good, terminating=False)
        self.assertEqual([str(one) for one in custom.group_versions()], ["example.com/v1"])
        self.assertIsNone(custom.served("boats.example.com"))
