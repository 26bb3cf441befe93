"""
The servers behind APIServices, as the fetchers of their documents see them.

Each document is fetched once per server, for all of its group-versions. A server that does not answer delays only the
requests for its own documents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ...controllers.machinery.queue import WorkQueue
from ..remotedocuments import FAILURES

if TYPE_CHECKING:
    from ...api.resource import GroupVersion
    from ...client.httpclient import Response
    from ...http.collaborators import DeferToThread
    from ...registry.kinds import Priority
    from .discovery import RemoteDiscovery
    from .openapi import RemoteOpenAPI

#: Maximum number of servers with concurrent requests.
WORKERS: Final = 8
#: Seconds until the next request after a successful one.
REFRESH: Final = 60.0


class IRemoteGroupVersion(Protocol):
    """A group-version that another server serves: L{kubetwist.resources.aggregation.routes.AggregatedServer}."""

    @property
    def name(self) -> str:
        """Return the name of its APIService."""

    @property
    def group_version(self) -> GroupVersion:
        """Return the group-version."""

    @property
    def priority(self) -> Priority:
        """Return its priority among all group-versions."""

    @property
    def service(self) -> Hashable:
        """Return the key of the service that serves it."""

    @property
    def available(self) -> bool:
        """Return whether the server is available, according to the last check."""

    async def fetch(
        self, path: str, *, accept: str = ..., etag: str = ..., timeout: float = ..., user: str = ...
    ) -> Response:
        """
        Fetch a document from the server.

        @raise CallError: The answer is missing or incomplete.
        @raise Unreachable: The service has no endpoint.
        """


class IRemotes(Protocol):
    """All remote group-versions: L{kubetwist.resources.aggregation.routes.Aggregation}."""

    @property
    def aggregated_servers(self) -> Mapping[GroupVersion, IRemoteGroupVersion]:
        """Return an L{IRemoteGroupVersion} for each group-version that other servers serve now."""

    def subscribe(self, listener: Callable[[GroupVersion, IRemoteGroupVersion | None], None]) -> Callable[[], None]:
        """
        Call C{listener} at every change, with L{None} for a removed group-version; return a function that unsubscribes
        it.
        """


class RemotePoller:
    """Runs a job per server: after a change, once a minute, and with backoff after failures."""

    _log = Logger()

    def __init__(
        self,
        remotes: IRemotes,
        clock: IReactorTime,
        what: str,
        ask: Callable[[Hashable], Awaitable[None]],
        changed: Callable[[GroupVersion, IRemoteGroupVersion | None], None],
        *,
        delay: float = 0.0,
        retry_initial: float,
        retry_max: float,
    ) -> None:
        """
        @param what: Names the fetched document in log lines.
        @param ask: Fetches the document from a service; raises one of L{FAILURES} if that fails.
        @param changed: Called at changes, before the requests to servers.
        @param delay: Seconds from a change until the request to a server.
        @param retry_initial: Seconds until the first retry of a server that failed.
        @param retry_max: Maximum of these seconds after repeated failures.
        """
        self._remotes = remotes
        self._what = what
        self._ask = ask
        self._changed = changed
        self._delay = delay
        self._services: dict[GroupVersion, Hashable] = {}
        self._queue: WorkQueue[Hashable] = WorkQueue(
            clock, self._work, workers=WORKERS, retry_initial=retry_initial, retry_max=retry_max
        )
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the requests, and watch for changes."""
        self._unsubscribe = self._remotes.subscribe(self._noticed)
        for group_version, remote in list(self._remotes.aggregated_servers.items()):
            self._noticed(group_version, remote)
        self._queue.start()

    async def stop(self) -> None:
        """Stop sending requests to servers."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        await self._queue.stop(timeout=0.0)

    @property
    def idle(self) -> bool:
        """Return whether no request to a server is running."""
        return self._queue.idle

    def of(self, service: Hashable) -> list[IRemoteGroupVersion]:
        """Return the group-versions that a service serves now, in the order of the names of their APIServices."""
        found = [remote for remote in self._remotes.aggregated_servers.values() if remote.service == service]
        return sorted(found, key=lambda remote: str(remote.name))

    def _noticed(self, group_version: GroupVersion, remote: IRemoteGroupVersion | None) -> None:
        before = self._services.pop(group_version, None)
        services = {before} - {None}
        if remote is not None:
            self._services[group_version] = remote.service
            services.add(remote.service)
        self._changed(group_version, remote)
        for service in services:
            self._queue.forget(service)
            self._queue.add_after(service, self._delay)

    async def _work(self, service: Hashable) -> None:
        if not any(remote.available for remote in self.of(service)):
            # The availability check reports the change.
            self._queue.forget(service)
            return
        try:
            await self._ask(service)
        except FAILURES as error:
            if not self._queue.num_requeues(service):
                self._log.warn("{what} of {service}: {error}", what=self._what, service=service, error=error)
            self._queue.add_rate_limited(service)
        except CancelledError:
            raise
        except Exception:
            self._log.failure("{what} of {service}", what=self._what, service=service)
            self._queue.add_rate_limited(service)
        else:
            self._queue.forget(service)
            self._queue.add_after(service, REFRESH)


def first_available(remotes: Iterable[IRemoteGroupVersion]) -> IRemoteGroupVersion | None:
    """Return the first available of a server's group-versions, or L{None}."""
    return next((remote for remote in remotes if remote.available), None)


class AggregatedDocuments:
    """
    The documents of other servers. Without such servers, their clients are neither imported nor created.

    @ivar discovery: Their entries for aggregated discovery.
    @ivar openapi: Their OpenAPI documents.
    """

    def __init__(self, remotes: IRemotes, clock: IReactorTime, run: DeferToThread) -> None:
        """@param run: Runs a function in a thread."""
        self._made = remotes, clock, run
        self._unsubscribe: Callable[[], None] | None = None
        self.discovery: RemoteDiscovery | None = None
        self.openapi: RemoteOpenAPI | None = None

    def start(self) -> None:
        """Start the requests to the servers."""
        remotes = self._made[0]
        if remotes.aggregated_servers:
            self._begin()
        else:
            self._unsubscribe = remotes.subscribe(self._noticed)

    def _noticed(self, group_version: GroupVersion, remote: IRemoteGroupVersion | None) -> None:
        if remote is not None and self.discovery is None:
            self._begin()

    def _begin(self) -> None:
        from .discovery import RemoteDiscovery
        from .openapi import RemoteOpenAPI

        self.discovery = RemoteDiscovery(*self._made)
        self.openapi = RemoteOpenAPI(*self._made)
        self.discovery.start()
        self.openapi.start()

    async def stop(self) -> None:
        """Stop sending requests to servers."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        for part in (self.discovery, self.openapi):
            if part is not None:
                await part.stop()

    @property
    def idle(self) -> bool:
        """Return whether no request to a server is running."""
        return all(part is None or part.idle for part in (self.discovery, self.openapi))
