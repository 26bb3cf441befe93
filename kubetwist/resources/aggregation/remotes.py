"""
Polls the aggregated servers for their discovery and OpenAPI documents.

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

        @raise CallError: The response is missing or incomplete.
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
        document: str,
        fetch: Callable[[Hashable], Awaitable[None]],
        on_change: Callable[[GroupVersion, IRemoteGroupVersion | None], None],
        *,
        delay: float = 0.0,
        retry_initial: float,
        retry_max: float,
    ) -> None:
        """
        @param document: The name of the fetched document in log lines.
        @param fetch: Fetches the document from a service; raises one of L{FAILURES} if that fails.
        @param on_change: Called at changes, before the requests to servers.
        @param delay: Seconds from a change until the request to a server.
        @param retry_initial: Seconds until the first retry of a server that failed.
        @param retry_max: Maximum of these seconds after repeated failures.
        """
        self._remotes = remotes
        self._document = document
        self._fetch = fetch
        self._on_change = on_change
        self._delay = delay
        self._services: dict[GroupVersion, Hashable] = {}
        self._queue: WorkQueue[Hashable] = WorkQueue(
            clock, self._work, workers=WORKERS, retry_initial=retry_initial, retry_max=retry_max
        )
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Start the requests, and watch for changes."""
        self._unsubscribe = self._remotes.subscribe(self._handle_change)
        for group_version, remote in list(self._remotes.aggregated_servers.items()):
            self._handle_change(group_version, remote)
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

    def group_versions_of(self, service: Hashable) -> list[IRemoteGroupVersion]:
        """Return the group-versions that a service serves now, in the order of the names of their APIServices."""
        found = [remote for remote in self._remotes.aggregated_servers.values() if remote.service == service]
        return sorted(found, key=lambda remote: str(remote.name))

    def _handle_change(self, group_version: GroupVersion, remote: IRemoteGroupVersion | None) -> None:
        previous = self._services.pop(group_version, None)
        services = {previous} - {None}
        if remote is not None:
            self._services[group_version] = remote.service
            services.add(remote.service)
        self._on_change(group_version, remote)
        for service in services:
            self._queue.forget(service)
            self._queue.add_after(service, self._delay)

    async def _work(self, service: Hashable) -> None:
        if not any(remote.available for remote in self.group_versions_of(service)):
            # The availability check reports the change.
            self._queue.forget(service)
            return
        try:
            await self._fetch(service)
        except FAILURES as error:
            if not self._queue.num_requeues(service):
                self._log.warn(
                    "fetching {document} of {service} failed: {error}",
                    document=self._document,
                    service=service,
                    error=error,
                )
            self._queue.add_rate_limited(service)
        except CancelledError:
            raise
        except Exception:
            self._log.failure("fetching {document} of {service} failed", document=self._document, service=service)
            self._queue.add_rate_limited(service)
        else:
            self._queue.forget(service)
            self._queue.add_after(service, REFRESH)


def first_available(group_versions: Iterable[IRemoteGroupVersion]) -> IRemoteGroupVersion | None:
    """Return the first available of a server's group-versions, or L{None}."""
    return next((remote for remote in group_versions if remote.available), None)


class AggregatedDocuments:
    """
    The documents of other servers. Without such servers, their clients are neither imported nor created.

    @ivar discovery: Their entries for aggregated discovery.
    @ivar openapi: Their OpenAPI documents.
    """

    def __init__(self, remotes: IRemotes, clock: IReactorTime, defer_to_thread: DeferToThread) -> None:
        """@param defer_to_thread: Runs a function in a thread."""
        self._arguments = remotes, clock, defer_to_thread
        self._unsubscribe: Callable[[], None] | None = None
        self.discovery: RemoteDiscovery | None = None
        self.openapi: RemoteOpenAPI | None = None

    def start(self) -> None:
        """Start the requests to the servers."""
        remotes = self._arguments[0]
        if remotes.aggregated_servers:
            self._start_clients()
        else:
            self._unsubscribe = remotes.subscribe(self._handle_change)

    def _handle_change(self, group_version: GroupVersion, remote: IRemoteGroupVersion | None) -> None:
        if remote is not None and self.discovery is None:
            self._start_clients()

    def _start_clients(self) -> None:
        from .discovery import RemoteDiscovery
        from .openapi import RemoteOpenAPI

        self.discovery = RemoteDiscovery(*self._arguments)
        self.openapi = RemoteOpenAPI(*self._arguments)
        self.discovery.start()
        self.openapi.start()

    async def stop(self) -> None:
        """Stop sending requests to servers."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        for client in (self.discovery, self.openapi):
            if client is not None:
                await client.stop()

    @property
    def idle(self) -> bool:
        """Return whether no request to a server is running."""
        return all(client is None or client.idle for client in (self.discovery, self.openapi))
