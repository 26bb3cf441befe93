"""Tests of L{kubetwist.server.serverchecks}."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.site import traverse
from kubetwist.metrics.registry import Registry
from kubetwist.resources.mux import NotFound
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.generic import GenericServer
from kubetwist.server.hooknames import ORDER, check_name
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
        self.prepared = True
        self.stopping = False
        config: Any = SimpleNamespace(
            reactor=self.clock,
            backend=self.storage,
            credentials=SimpleNamespace(
                serving=CertificateAuthority.make("ca").issue(CertConfig("a", server=True)), serving_files=()
            ),
            features=FeatureGates(),
            options={"etcd-prefix": "/registry", "livez-grace-period": 60.0},
        )
        self.config = config
        self.server = GenericServer("server", NotFound())  # type: ignore[no-untyped-call]
        self.waits: Deferred[None] = Deferred()
        self.server.add_post_start_hook("mine", lambda: self.waits)
        self.server.add_pre_listen_hook(ORDER[1], lambda: None, covers=(ORDER[3],))
        self.successResultOf(Deferred.fromCoroutine(self.server.run_pre_listen_hooks()))
        self.started = Deferred.fromCoroutine(self.server.run_post_start_hooks())
        self.register()

    def register(self) -> None:
        """Register the health paths."""
        self.config.health_metrics = Registry()
        self.checks = ServerChecks(
            self.config,
            started_at=0.0,
            prepared=lambda: self.prepared,
            stopping=lambda: self.stopping,
        )
        self.checks.register(self.server)
        handler = build_handler_chain(
            traverse(self.server.mux), reactor=self.clock, authenticator=Everyone(), authorizer=Allow()
        )
        self.site = make_site(handler, self.clock)

    def codes(self) -> list[int]:
        """Return the codes of /healthz, /livez and /readyz."""
        client = Client(self.site)
        return [client.request("GET", path).code for path in ("/healthz", "/livez", "/readyz")]

    def lines(self, path: str) -> list[str]:
        """Return the lines of a health path."""
        return Client(self.site).request("GET", path).body.decode().splitlines()

    def liveness_problem(self) -> str | None:
        """Return the first problem for which /livez fails."""
        return self.successResultOf(Deferred.fromCoroutine(self.checks.liveness_problem(self.server)))

    def finish(self) -> None:
        """Let the hook finish."""
        self.waits.callback(None)
        self.successResultOf(self.started)

    def test_well(self) -> None:
        """A started server with a working store is healthy, alive and ready."""
        self.finish()
        self.assertEqual(self.codes(), [200, 200, 200])

    def test_lines(self) -> None:
        """The lines are in the reference's order; a name without a hook is not applicable instead of ok."""
        self.finish()
        lines = self.lines("/readyz?verbose")
        self.assertEqual(
            lines[:5], [f"[+]{name} ok" for name in ("ping", "log", "etcd", "etcd-readiness", "informer-sync")]
        )
        self.assertEqual(lines[-3:], ["[+]poststarthook/mine ok", "[+]shutdown ok", "readyz check passed"])
        hooks = dict(line.removeprefix("[+]").split(" ", 1) for line in lines[5:-3])
        self.assertEqual(list(hooks), [check_name(name) for name in ORDER])
        real = {check_name(ORDER[1]), check_name(ORDER[3])}
        self.assertEqual({name for name, text in hooks.items() if text == "ok"}, real)
        self.assertEqual({text for name, text in hooks.items() if name not in real}, {"not applicable"})

    def test_failing_hook(self) -> None:
        """A hook that fails shows as failed, without the reason; its path has the reason."""
        self.waits.errback(RuntimeError("no luck"))
        self.failureResultOf(self.started, RuntimeError)
        lines = self.lines("/readyz")
        self.assertIn("[-]poststarthook/mine failed: reason withheld", lines)
        self.assertEqual(len([line for line in lines if line.startswith("[-]")]), 1)
        answer = Client(self.site).request("GET", "/readyz/poststarthook/mine")
        self.assertEqual((answer.code, answer.body), (500, b"internal server error: RuntimeError: no luck\n"))
        self.assertEqual(self.lines("/readyz?exclude=poststarthook/mine"), ["ok"])

    def test_certificate(self) -> None:
        """The check of the serving certificate fails when it has expired; it is for a self-issued certificate only."""
        self.finish()
        line = "[+]loopback-serving-certificate "
        self.assertIn(f"{line}ok", self.lines("/livez?verbose"))
        certificate = SimpleNamespace(not_valid_after_utc=datetime.now(UTC) - timedelta(seconds=1))
        self.config.credentials.serving = SimpleNamespace(parsed=lambda: (certificate, None))
        self.register()
        self.assertEqual(self.codes(), [500, 500, 200])
        self.config.credentials.serving_files = ("a.crt", "a.key")
        self.register()
        self.assertIn(f"{line}not applicable", self.lines("/livez?verbose"))

    def test_release(self) -> None:
        """Servers before 1.36 do not check the serving certificate."""
        self.finish()
        self.config.features = FeatureGates((1, 35))
        self.register()
        self.assertEqual(self.lines("/livez?verbose")[:3], ["[+]ping ok", "[+]log ok", "[+]etcd ok"])

    def test_grace(self) -> None:
        """A hook that hangs fails /livez only after --livez-grace-period; other paths fail at once."""
        self.clock.advance(59)
        self.assertEqual(self.codes(), [500, 200, 500])
        self.clock.advance(1)
        self.assertEqual(self.codes(), [500, 500, 500])

    def test_not_ready(self) -> None:
        """A server is alive, but not ready, while its caches are not filled and when it is to stop."""
        self.finish()
        self.prepared = False
        self.assertEqual(self.codes(), [200, 200, 500])
        self.prepared, self.stopping = True, True
        self.assertEqual(self.codes(), [200, 200, 500])

    def test_lost_storage(self) -> None:
        """A server whose store cannot be read fails all three."""
        self.finish()

        async def read(key: str) -> None:
            raise StorageUnavailable("lost")

        self.patch(self.storage, "read", read)
        self.assertEqual(self.codes(), [500, 500, 500])
        answer = Client(self.site).request("GET", "/livez/etcd")
        self.assertEqual(answer.body, b"internal server error: lost\n")
        self.assertEqual("etcd: lost", self.liveness_problem())

    def test_liveness(self) -> None:
        """The watchdog uses the checks of /livez: hooks that are not done are problems after the grace period."""
        self.assertIsNone(self.liveness_problem())
        self.clock.advance(60)
        self.assertEqual("poststarthook/mine: not finished", self.liveness_problem())
        self.finish()
        self.assertIsNone(self.liveness_problem())
