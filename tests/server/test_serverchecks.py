"""Tests of L{kubetwist.server.serverchecks}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.site import traverse
from kubetwist.metrics.registry import Registry
from kubetwist.server.chain import NotFound
from kubetwist.server.generic import GenericServer
from kubetwist.server.serverchecks import ServerChecks
from kubetwist.storage.errors import StorageUnavailable
from kubetwist.storage.memory import MemoryStorage

from ..http.harness import Allow, Client, Everyone, make_site


class ServerChecksTests(SynchronousTestCase):
    """Health checks of a server with a store in memory."""

    def setUp(self) -> None:
        """Create the checks of a started server."""
        self.clock = Clock()
        self.storage = MemoryStorage(self.clock)
        self.successResultOf(self.storage.open())
        self.prepared = self.started = True
        self.stopping = False
        config: Any = SimpleNamespace(
            reactor=self.clock,
            backend=self.storage,
            health_metrics=Registry(),
            options={"etcd-prefix": "/registry", "livez-grace-period": 60.0},
        )
        self.server = GenericServer("server", NotFound())  # type: ignore[no-untyped-call]
        self.server.add_post_start_hook("mine", lambda: None)
        checks = ServerChecks(
            config,
            started_at=0.0,
            prepared=lambda: self.prepared,
            started=lambda: self.started,
            stopping=lambda: self.stopping,
        )
        checks.register(self.server)
        for hook in self.server.post_start_hooks():
            hook.problem = None
        handler = build_handler_chain(
            traverse(self.server.mux), reactor=self.clock, authenticator=Everyone(), authorizer=Allow()
        )
        self.site = make_site(handler, self.clock)

    def codes(self) -> list[int]:
        """Return the codes of /healthz, /livez and /readyz."""
        client = Client(self.site)
        return [client.request("GET", path).code for path in ("/healthz", "/livez", "/readyz")]

    def test_well(self) -> None:
        """A started server with a working store is healthy, alive and ready."""
        self.assertEqual(self.codes(), [200, 200, 200])

    def test_grace(self) -> None:
        """A hook that is not finished fails /livez only after --livez-grace-period; other paths fail at once."""
        (hook,) = [one for one in self.server.post_start_hooks() if one.name == "mine"]
        hook.problem = "not finished"
        self.clock.advance(59)
        self.assertEqual(self.codes(), [500, 200, 500])
        self.clock.advance(1)
        self.assertEqual(self.codes(), [500, 500, 500])

    def test_not_ready(self) -> None:
        """A server is alive, but not ready, while its caches are not filled and when it is to stop."""
        self.prepared = False
        self.assertEqual(self.codes(), [200, 200, 500])
        self.prepared, self.stopping = True, True
        self.assertEqual(self.codes(), [200, 200, 500])

    def test_lost_storage(self) -> None:
        """A server whose store cannot be read fails all three."""

        async def read(key: str) -> None:
            raise StorageUnavailable("lost")

        self.patch(self.storage, "read", read)
        self.assertEqual(self.codes(), [500, 500, 500])
        answer = Client(self.site).request("GET", "/livez/etcd")
        self.assertEqual(answer.body, b"internal server error: lost\n")
