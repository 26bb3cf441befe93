"""Tests for L{kubetwist.controllers.aggregation.availability} with C{serviceendpoints} and C{apiservices}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response
from kubetwist.client.services import (
    Services,
)
from kubetwist.controllers.aggregation.apiservices import (
    AggregatedServer,
    Aggregation,
)
from kubetwist.controllers.aggregation.availability import (
    RESYNC,
    TIMEOUT,
    AvailableConditionController,
)
from kubetwist.controllers.aggregation.serviceendpoints import (
    ServiceEndpoints,
)
from tests.controllers.aggregation.services import FAR, NAME, SERVICES
from tests.resources.server import Server


class FakeClientFactory:
    """
    A factory of fake clients.

    @ivar response: The result of each request: a L{Response}, or a Deferred of one.
    @ivar requests: Number of requests.
    @ivar retired: Number of retired clients.
    """

    def __init__(self, find: Callable[[str, str], Any]) -> None:
        self.services = Services(find)
        self.response: Callable[[], Any] = lambda: Response(200, {}, b"{}")
        self.requests = 0
        self.retired = 0
        self.settings: list[Any] = []

    def client(self, settings: Any, *, limit: int) -> Any:
        """Return a fake client."""
        self.settings.append(settings)
        return self

    async def fetch(self, path: str, **more: Any) -> Any:
        """Return the configured result."""
        self.requests += 1
        result = self.response()
        return await result if isinstance(result, Deferred) else result

    def retire(self) -> None:
        """Count a retired client."""
        self.retired += 1


class AvailabilityTests(SynchronousTestCase):
    """An aggregated server behind a service."""

    def setUp(self) -> None:
        """Create the service, its endpoints and the controllers."""
        self.server = Server("apiservices", "services", "endpointslices")
        self.api = self.server.client()
        stores = self.server.stores
        self.outgoing = FakeClientFactory(lambda namespace, name: stores.get_copy("", "services", namespace, name))
        store = stores.get("apiregistration.k8s.io", "apiservices")
        self.store = store
        self.aggregation = Aggregation(store, self.outgoing, self.server.clock)  # type: ignore[arg-type]
        self.backends = ServiceEndpoints(stores, self.server.clock)
        self.backends.start()
        self.aggregation.start()
        self.availability = AvailableConditionController(self.aggregation, self.backends, self.server.clock)
        self.availability.start()
        self.addCleanup(self.end)
        self.make_service("ExternalName", externalName="far.example.org")

    def end(self) -> None:
        """Stop the controllers."""
        self.successResultOf(Deferred.fromCoroutine(self.availability.stop()))
        self.aggregation.stop()
        self.backends.stop()

    def make_service(self, kind: str, **spec: Any) -> None:
        """Create the service."""
        service = {"metadata": {"name": "far"}, "spec": {"type": kind, "ports": [{"port": 443}], **spec}}
        code, response = self.api.ask("POST", "/api/v1/namespaces/default/services", service)
        self.assertEqual(code, 201, response)

    def register(self, **spec: Any) -> None:
        """Create the APIService."""
        whole = {
            "group": FAR.group,
            "version": FAR.version,
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"namespace": "default", "name": "far"},
            **spec,
        }
        code, response = self.api.ask("POST", SERVICES, {"metadata": {"name": NAME}, "spec": whole})
        self.assertEqual(code, 201, response)

    def patch_api_service(self, patch: Any, part: str = "") -> None:
        """Change the APIService."""
        path = f"{SERVICES}/{NAME}{part}"
        code, response = self.api.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.assertEqual(code, 200, response)

    def advance(self, seconds: float = 0.0) -> None:
        """Advance the clock."""
        for _ in range(5):
            self.server.clock.advance(0)
        for _ in range(round(seconds * 20)):
            self.server.clock.advance(0.05)

    def condition(self) -> Any:
        """Return the condition Available, or C{{}}."""
        status = self.api.ask("GET", f"{SERVICES}/{NAME}")[1].get("status") or {}
        return next(iter(status.get("conditions") or ({},)))

    @property
    def remote(self) -> AggregatedServer:
        """Return the aggregated server."""
        return self.aggregation.aggregated_servers[FAR]

    def test_passed(self) -> None:
        """A server with a successful discovery is available, and is checked again after 30 seconds."""
        self.register()
        self.advance()
        self.assertEqual(self.condition()["reason"], "Passed")
        self.assertTrue(self.remote.available)
        self.assertEqual(self.outgoing.requests, 1)
        revision = self.store.cache.revision
        self.advance(RESYNC + 1)
        self.assertEqual(self.outgoing.requests, 2)
        self.assertEqual(self.store.cache.revision, revision)

    def test_hedged_requests(self) -> None:
        """If the first request takes more than a second, concurrent requests are sent. The first success decides."""
        waiting: list[Deferred[Response]] = []

        def later() -> Deferred[Response]:
            waiting.append(Deferred())
            return waiting[-1]

        self.outgoing.response = later
        self.register()
        self.advance(0.9)
        self.assertEqual(len(waiting), 1)
        self.advance(0.2)
        self.assertEqual(len(waiting), 5)
        waiting[3].callback(Response(200, {}, b""))
        self.advance()
        self.assertEqual(self.condition()["status"], "True")

    def test_failing(self) -> None:
        """A server is unavailable after five failed requests, and is retried with backoff."""

        def refused() -> Any:
            raise CallError("GET", "https://far", "refused")

        self.outgoing.response = refused
        self.register()
        self.advance()
        self.assertEqual(self.condition()["reason"], "FailedDiscoveryCheck")
        self.assertIn('far": refused', self.condition()["message"])
        self.assertEqual(self.outgoing.requests % 5, 0)
        self.advance(20)
        before = self.outgoing.requests
        self.assertLess(before, 100)
        self.outgoing.response = lambda: succeed(Response(200, {}, b""))
        self.advance(30)
        self.assertEqual(self.condition()["reason"], "Passed")

    def test_timeout(self) -> None:
        """A timeout is reported with the message of Go's client."""

        def late() -> Any:
            raise CallError("GET", "https://far", "context deadline exceeded", timed_out=True)

        self.outgoing.response = late
        self.register()
        self.advance()
        self.assertTrue(self.condition()["message"].endswith("(Client.Timeout exceeded while awaiting headers)"))
        self.assertEqual(TIMEOUT, 5.0)

    def test_changing_errors(self) -> None:
        """Changing errors do not cause more requests or updates."""
        count = 0

        def refused() -> Any:
            nonlocal count
            count += 1
            raise CallError("GET", "https://far", f"read tcp 10.0.0.1:{count}->10.0.0.2:443: connection reset by peer")

        self.outgoing.response = refused
        self.register()
        self.advance(20)
        self.assertLess(count, 100)

    def test_other_client(self) -> None:
        """A condition of another client is checked after a delay."""
        self.register()
        self.advance()
        wrong = {"type": "Available", "status": "False", "reason": "Theirs"}
        self.patch_api_service({"status": {"conditions": [wrong]}}, "/status")
        self.advance(0.5)
        self.assertEqual(self.condition()["reason"], "Theirs")
        self.assertFalse(self.remote.available)
        self.advance(1)
        self.assertEqual(self.condition()["reason"], "Passed")

    def test_other_conditions(self) -> None:
        """Conditions of other types are kept."""
        self.outgoing.response = lambda: Response(500, {}, b"")
        self.register()
        self.advance()
        other = {"type": "Mine", "status": "True"}
        self.patch_api_service({"status": {"conditions": [other, self.condition()]}}, "/status")
        self.outgoing.response = lambda: Response(200, {}, b"")
        self.advance(RESYNC + 1)
        found = self.api.ask("GET", f"{SERVICES}/{NAME}")[1]["status"]["conditions"]
        self.assertEqual([(one["type"], one["status"]) for one in found], [("Mine", "True"), ("Available", "True")])

    def test_redirect(self) -> None:
        """A redirect is a failure."""
        self.outgoing.response = lambda: Response(302, {"location": "https://far/elsewhere"}, b"")
        self.register()
        self.advance()
        self.assertTrue(self.condition()["message"].endswith("/apis/far.example.com/v1: 302"))

    def test_another_spec(self) -> None:
        """A changed certificate on either side triggers a check with a new client."""
        self.register()
        self.advance()
        self.patch_api_service({"spec": {"insecureSkipTLSVerify": True}})
        self.advance()
        self.assertEqual((self.outgoing.requests, self.outgoing.retired), (2, 1))
        self.assertTrue(self.outgoing.settings[-1].insecure)
        self.aggregation.use_identity(b"certificate", b"key")
        self.advance()
        self.assertEqual((self.outgoing.requests, self.outgoing.retired), (3, 2))
        self.assertEqual(self.outgoing.settings[-1].certificate, b"certificate")

    def test_deleted_api_service(self) -> None:
        """After the deletion of an APIService no state remains."""
        servers: list[Any] = []
        self.aggregation.subscribe(lambda group_version, remote: servers.append(remote))
        self.register()
        self.advance()
        self.api.ask("DELETE", f"{SERVICES}/{NAME}")
        self.advance(RESYNC + 1)
        self.assertIsNone(servers[-1])
        self.assertEqual((self.outgoing.requests, self.outgoing.retired), (1, 1))
        self.assertEqual(dict(self.aggregation.aggregated_servers), {})
        self.assertEqual(self.aggregation.api_services.group_versions(), [])
