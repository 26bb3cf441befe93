"""The checks of /healthz, /livez and /readyz that every server has."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred, TimeoutError

from ..interfaces import IProbedStorage, ISharedStorage
from ..metrics.health import HealthMetrics
from ..storage.errors import KeyNotFound, StorageError
from ..storage.wrappers import find_shared_storage, unwrap_backend
from .config import ServerConfig
from .endpoints.health import LOG, PING, HealthCheck, HealthResource, Unhealthy
from .generic import EVERYWHERE, HEALTHZ, LIVEZ, READYZ, GenericServer
from .hooknames import AUTOREGISTRATION


class ServerChecks:
    """The checks of a server's storage, of its start and of its stop."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        started_at: float,
        prepared: Callable[[], bool],
        started: Callable[[], bool],
        stopping: Callable[[], bool],
    ) -> None:
        """
        @param started_at: Time of the start, in the reactor's time.
        @param prepared: Returns whether the watch caches are filled.
        @param started: Returns whether the start is complete.
        @param stopping: Returns whether the server is to stop.
        """
        self._config = config
        self._options = config.options
        self._started_at = started_at
        self._prepared = prepared
        self._started = started
        self._stopping = stopping

    def register(self, server: GenericServer) -> None:
        """Register the health paths of a server, with the checks of its hooks and its delegates."""
        health = HealthMetrics(self._config.health_metrics)
        storage = HealthCheck("etcd", self._check_storage)
        loopback = HealthCheck("loopback-serving-certificate", lambda: None)
        before = {
            HEALTHZ: [PING, LOG, loopback, storage],
            LIVEZ: [PING, LOG, loopback, storage],
            READYZ: [
                PING,
                LOG,
                storage,
                HealthCheck("etcd-readiness", self._check_writing),
                HealthCheck("informer-sync", self._check_prepared),
            ],
        }
        after = {HEALTHZ: [], LIVEZ: [], READYZ: [HealthCheck("shutdown", self._check_shutdown)]}

        def checks_of(path: str) -> Callable[[], list[HealthCheck]]:
            def checks() -> list[HealthCheck]:
                hooks = []
                for hook in server.post_start_hooks():
                    check = self._after_grace(hook.check) if path == LIVEZ else hook.check
                    hooks.append(HealthCheck(f"poststarthook/{hook.name}", check))
                    if hook.name == AUTOREGISTRATION[1]:
                        hooks.append(HealthCheck(AUTOREGISTRATION[0], self._check_started))
                return [*before[path], *server.health_checks(path), *hooks, *after[path]]

            return checks

        for path in EVERYWHERE:
            checks = checks_of(path)
            server.mux.handle_prefix(f"/{path}", HealthResource(path, checks, health), listed_subpaths=_names(checks))

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

    def _after_grace(self, check: Callable[[], object]) -> Callable[[], object]:
        """Return a check that passes until --livez-grace-period is over, so that a slow start is not a failure."""
        if self._config.reactor.seconds() < self._started_at + self._options["livez-grace-period"]:
            return lambda: None
        return check

    def _check_prepared(self) -> None:
        if not self._prepared():
            raise Unhealthy("the watch caches are not filled")

    def _check_started(self) -> None:
        if not self._started():
            raise Unhealthy("the start is not through")

    def _check_shutdown(self) -> None:
        if self._stopping():
            raise Unhealthy("process is shutting down")


def _names(checks: Callable[[], list[HealthCheck]]) -> Callable[[], list[str]]:
    return lambda: [check.name for check in checks()]
