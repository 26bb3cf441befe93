"""The checks of /healthz, /livez and /readyz that every server has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from twisted.internet.defer import Deferred, TimeoutError

from ..interfaces import IProbedStorage, ISharedStorage
from ..metrics.health import HealthMetrics
from ..resources.routing import RoutedApp
from ..storage.errors import KeyNotFound, StorageError
from ..storage.wrappers import find_shared_storage, unwrap_backend
from .config import ServerConfig
from .endpoints.health import LOG, PING, HealthCheck, HealthEndpoints, Unhealthy
from .generic import EVERYWHERE, HEALTHZ, LIVEZ, READYZ, GenericServer


class ServerChecks:
    """The checks of a server's storage, of its start and of its stop."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        started_at: float,
        prepared: Callable[[], bool],
        stopping: Callable[[], bool],
    ) -> None:
        """
        @param started_at: Time of the start, in the reactor's time.
        @param prepared: Returns whether the watch caches are filled.
        @param stopping: Returns whether the server is to stop.
        """
        self._config = config
        self._options = config.options
        self._started_at = started_at
        self._prepared = prepared
        self._stopping = stopping
        self._own_checks = self._make_own_checks()

    def register(self, server: GenericServer) -> None:
        """Register the health paths of a server, with the checks of its hooks and its delegates."""
        health = HealthMetrics(self._config.health_metrics)
        checks = {path: partial(self._checks_of, server, path) for path in EVERYWHERE}
        app = RoutedApp(HealthEndpoints(checks, health).make_app)
        for path in EVERYWHERE:
            server.mux.handle_prefix(f"/{path}", app, listed_subpaths=_names(checks[path]))

    async def liveness_problem(self, server: GenericServer) -> str | None:
        """Return the first problem for which /livez fails; L{None} without one."""
        for check in self._checks_of(server, LIVEZ):
            problem = await check.problem()
            if problem is not None:
                return f"{check.name}: {problem}"
        return None

    def _checks_of(self, server: GenericServer, path: str) -> list[HealthCheck]:
        """Return the checks of a health path, in the order of its lines."""
        before, after = self._own_checks[path]
        hooks = server.hook_checks()
        if path == LIVEZ:
            hooks = [HealthCheck(one.name, self._after_grace(one.check)) for one in hooks]
        return [*before, *server.health_checks(path), *hooks, *after]

    def _make_own_checks(self) -> dict[str, tuple[list[HealthCheck], list[HealthCheck]]]:
        """Return the checks of this class for each path: those before, and those after the hooks."""
        storage = HealthCheck("etcd", self._check_storage)
        loopback = []
        if self._config.features.since(1, 36):
            loopback.append(HealthCheck("loopback-serving-certificate", self._serving_certificate_check()))
        readiness = [
            PING,
            LOG,
            storage,
            HealthCheck("etcd-readiness", self._check_writing),
            HealthCheck("informer-sync", self._check_prepared),
        ]
        return {
            HEALTHZ: ([PING, LOG, *loopback, storage], []),
            LIVEZ: ([PING, LOG, *loopback, storage], []),
            READYZ: (readiness, [HealthCheck("shutdown", self._check_shutdown)]),
        }

    async def _check_storage(self, timeout_flag: str = "etcd-healthcheck-timeout") -> None:
        shared = find_shared_storage(self._config.backend)
        if shared is not None:
            await self._check_shared_storage(shared, self._options[timeout_flag])
            return
        try:
            await self._config.backend.read(f"{self._options['etcd-prefix']}/health")
        except KeyNotFound:
            pass
        except StorageError as error:
            raise Unhealthy(str(error)) from error

    async def _check_shared_storage(self, storage: ISharedStorage, seconds: float) -> None:
        """Check that the storage answers in time; concurrent checks share one request."""
        revision: Deferred[int] = Deferred.fromCoroutine(storage.current_revision())
        try:
            await revision.addTimeout(seconds, self._config.reactor)
        except TimeoutError:
            raise Unhealthy("error getting data from etcd: context deadline exceeded") from None
        except StorageError as error:
            raise Unhealthy(f"error getting data from etcd: {error}") from error

    async def _check_writing(self) -> None:
        """Check that the storage can be written: a server that can only read is alive, but not ready."""
        await self._check_storage("etcd-readycheck-timeout")
        backend = unwrap_backend(self._config.backend)
        if IProbedStorage.providedBy(backend):
            try:
                await backend.probe_writing()
            except StorageError as error:
                raise Unhealthy(str(error)) from error

    def _serving_certificate_check(self) -> Callable[[], object] | None:
        """Return the check that a certificate that the server issued to itself is valid."""
        if self._config.credentials.serving_files:
            return None

        def check() -> None:
            certificate, _ = self._config.credentials.serving.parsed()
            if datetime.now(UTC) > certificate.not_valid_after_utc:
                raise Unhealthy("the serving certificate has expired")

        return check

    def _after_grace(self, check: Callable[[], object] | None) -> Callable[[], object] | None:
        """Return a check that passes until --livez-grace-period is over, so that a slow start is not a failure."""
        if (
            check is not None
            and self._config.reactor.seconds() < self._started_at + self._options["livez-grace-period"]
        ):
            return lambda: None
        return check

    def _check_prepared(self) -> None:
        if not self._prepared():
            raise Unhealthy("the watch caches are not filled")

    def _check_shutdown(self) -> None:
        if self._stopping():
            raise Unhealthy("process is shutting down")


def _names(checks: Callable[[], list[HealthCheck]]) -> Callable[[], list[str]]:
    return lambda: [check.name for check in checks()]
