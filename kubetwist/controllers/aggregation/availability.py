"""
Checks the availability of aggregated API servers and writes it to the APIServices.

@see: kubernetes/kube-aggregator, C{pkg/controllers/status}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.resource import GroupVersion
from ...client.errors import (
    CallError,
    Unreachable,
)
from ...storage.errors import StorageError
from ..machinery.queue import WorkQueue
from .apiservices import (
    AggregatedServer,
    Aggregation,
    Condition,
    ServiceReference,
    api_service_name,
)
from .availablecondition import set_available
from .serviceendpoints import (
    ServiceEndpoints,
    has_ready_endpoint,
)

#: Seconds between two checks of an available server.
RESYNC: Final = 30.0
#: Timeout of a discovery request, in seconds.
TIMEOUT: Final = 5.0
#: Maximum number of requests per check, and seconds after the first one until the further ones are sent.
ATTEMPTS: Final = 5
HEDGE_DELAY: Final = 1.0
#: First and maximum delay, in seconds, between failed checks.
_RETRY_INITIAL: Final = 0.005
_RETRY_MAX: Final = 30.0
#: Seconds until a condition that another client wrote is checked.
_FOREIGN_WRITE_DELAY: Final = 1.0
_WORKERS: Final = 5


class AvailableConditionController:
    """Maintains the condition C{Available} of APIServices with a service."""

    _log = Logger()

    def __init__(self, aggregation: Aggregation, backends: ServiceEndpoints, clock: IReactorTime) -> None:
        self._aggregation = aggregation
        self._backends = backends
        self._clock = clock
        self._queue: WorkQueue[str] = WorkQueue(
            clock, self._work, workers=_WORKERS, retry_initial=_RETRY_INITIAL, retry_max=_RETRY_MAX
        )
        #: Server and client certificate of the last check, and the last written condition, by name of the APIService.
        self._checked: dict[str, tuple[AggregatedServer, tuple[bytes, bytes]]] = {}
        self._written: dict[str, Condition] = {}
        self._resync: IDelayedCall | None = None
        self._stopped = False
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def idle(self) -> bool:
        """Whether no check is waiting or running."""
        return self._queue.idle

    def enqueue(self, name: str) -> None:
        """Check an APIService as soon as possible."""
        self._queue.add(name)

    def start(self) -> None:
        """Check all aggregated servers, and start checking changed ones."""
        self._unsubscribe = self._aggregation.subscribe(self._remote_changed)
        self._backends.on_change(self._service_changed)
        self._enqueue_all()
        self._backends.when_handlers_synced(self._start_queue)

    def _start_queue(self) -> None:
        if not self._stopped:
            self._queue.start()

    async def stop(self) -> None:
        """Stop checking."""
        self._stopped = True
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._resync is not None:
            self._resync.cancel()
        await self._queue.stop(timeout=0.0)

    def _enqueue_all(self) -> None:
        for remote in self._aggregation.aggregated_servers.values():
            self._queue.add(remote.name)
        # No event announces that a server became unreachable.
        self._resync = self._clock.callLater(RESYNC, self._enqueue_all)

    def _remote_changed(self, group_version: GroupVersion, remote: AggregatedServer | None) -> None:
        name = api_service_name(group_version)
        if remote is None:
            self._checked.pop(name, None)
            self._written.pop(name, None)
        elif self._checked.get(name) != (remote, self._aggregation.identity):
            self._checked[name] = remote, self._aggregation.identity
            self._queue.add(name)
        elif self._written.get(name) != remote.condition:
            # Another client wrote another condition, possibly another server's controller: delay the check.
            self._queue.add_after(name, _FOREIGN_WRITE_DELAY)

    def _service_changed(self, namespace: str, name: str) -> None:
        for remote in self._aggregation.aggregated_servers.values():
            service = remote.service
            if service.name == name and service.namespace == namespace:
                self._queue.add(remote.name)

    # --- sync

    async def _work(self, name: str) -> None:
        try:
            failed = await self._check(name)
        except CancelledError:
            raise
        except (APIStatusError, StorageError) as error:
            # Conflicts and deleted objects are expected.
            if not (isinstance(error, APIStatusError) and error.code in (404, 409)):
                self._log.warn("cannot update APIService condition: name={name} error={error}", name=name, error=error)
            failed = True
        except Exception:
            self._log.failure("cannot check availability of APIService: name={name}", name=name)
            failed = True
        if failed:
            self._queue.add_rate_limited(name)
        else:
            self._queue.forget(name)

    async def _check(self, name: str) -> bool:
        """Check an APIService, and return whether to retry soon."""
        remote = self._remote(name)
        if remote is None:
            return False
        condition = self._service_condition(remote.service)
        retry = False
        if condition is None:
            error = await self._check_discovery(remote)
            if self._remote(name) is not remote:
                # The APIService was changed, and will be checked again.
                return False
            if error:
                condition, retry = Condition("False", "FailedDiscoveryCheck", error), True
            else:
                condition = Condition("True", "Passed", "all checks passed")
        self._written[name] = condition
        await set_available(self._aggregation.store, name, condition, remote=True)
        return retry

    def _remote(self, name: str) -> AggregatedServer | None:
        spec = self._aggregation.api_services.get(name)
        return None if spec is None else self._aggregation.aggregated_servers.get(spec.group_version)

    def _service_condition(self, service: ServiceReference) -> Condition | None:
        """Return the condition if the service is invalid, or L{None} if it is valid. No request is sent."""
        description = f"service/{service.name} in {quoted(service.namespace)}"
        obj = self._backends.service(service.namespace, service.name)
        if obj is None:
            return Condition("False", "ServiceNotFound", f"{description} is not present")
        spec = obj.get("spec") or {}
        if (spec.get("type") or "ClusterIP") != "ClusterIP":
            return None
        port = next((one for one in spec.get("ports") or () if one.get("port") == service.port), None)
        if port is None:
            return Condition("False", "ServicePortError", f"{description} is not listening on port {service.port}")
        slices = self._backends.slices(service.namespace, service.name)
        if not slices:
            return Condition("False", "EndpointsNotFound", f"cannot find endpointslices for {description}")
        port_name = port.get("name") or ""
        if not has_ready_endpoint(slices, port_name):
            message = f"endpointslices for {description} have no addresses with port name {quoted(port_name)}"
            return Condition("False", "MissingEndpoints", message)
        return None

    async def _check_discovery(self, remote: AggregatedServer) -> str:
        """Request the resource list of a server, and return an error message; C{""} on success."""
        return await _first_success(self._clock, lambda: self._check_discovery_once(remote))

    async def _check_discovery_once(self, remote: AggregatedServer) -> str:
        try:
            url = f"{remote.origin}{remote.path}"
        except Unreachable as error:
            return str(error)
        try:
            response = await remote.fetch(remote.path, timeout=TIMEOUT)
        except CallError as error:
            reason = f"{error} (Client.Timeout exceeded while awaiting headers)" if error.timed_out else str(error)
            return f"failing or missing response from {url}: {reason}"
        except Unreachable as error:
            return f"failing or missing response from {url}: {error}"
        if not 200 <= response.code < 300:
            return f"failing or missing response from {url}: bad status from {url}: {response.code}"
        return ""


async def _first_success(clock: IReactorTime, check: Callable[[], Awaitable[str]]) -> str:
    """
    Call a function, and hedge with further concurrent calls if it fails or takes long. The first success wins.

    @param check: Returns an error message; C{""} on success.
    @return: C{""} as soon as a call succeeds, otherwise the error message of the last call.
    """
    done: Deferred[str] = Deferred()
    calls: list[Deferred[str]] = []
    remaining = ATTEMPTS
    hedge_call: IDelayedCall | None = None

    def start_call() -> None:
        call: Deferred[str] = Deferred.fromCoroutine(_as_coroutine(check))
        calls.append(call)
        call.addCallbacks(finished, failed)

    def start_hedged_calls() -> None:
        nonlocal hedge_call
        if hedge_call is not None:
            if hedge_call.active():
                hedge_call.cancel()
            hedge_call = None
            for _ in range(ATTEMPTS - 1):
                start_call()

    def finished(error: str) -> None:
        nonlocal remaining
        remaining -= 1
        if not done.called and (not error or not remaining):
            done.callback(error)
        if error and not done.called:
            start_hedged_calls()

    def failed(failure: Failure) -> None:
        if not done.called:
            done.errback(failure)

    hedge_call = clock.callLater(HEDGE_DELAY, start_hedged_calls)
    start_call()
    try:
        return await done
    finally:
        if hedge_call is not None and hedge_call.active():
            hedge_call.cancel()
        for call in calls:
            call.addErrback(lambda _: None)
            call.cancel()


async def _as_coroutine(check: Callable[[], Awaitable[str]]) -> str:
    return await check()
