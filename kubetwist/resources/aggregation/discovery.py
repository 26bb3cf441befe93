"""
Fetches the resources of aggregated servers, for aggregated discovery.

The aggregated document of each server is fetched; if it has none, the document of each group-version is fetched. The
group-versions of an unavailable server are listed as stale, without resources.

@see: kubernetes/kube-aggregator, C{pkg/apiserver/handler_discovery.go}
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.interfaces import IReactorTime

from ...api.resource import GroupVersion, JSONObject
from ..remotedocuments import FAILURES, UnexpectedResponse
from .discoverydocuments import AGGREGATED, entry, is_aggregated, read_aggregated, read_resource_list
from .remotes import IRemotes, RemotePoller, first_available

if TYPE_CHECKING:
    from ...http.collaborators import DeferToThread
    from ...registry.kinds import Priority
    from .remotes import IRemoteGroupVersion

#: User name of the requests.
USER: Final = "system:kube-aggregator"
#: Timeout of a request in seconds.
TIMEOUT: Final = 5.0
#: Seconds until the first retry after a failure, and their maximum.
RETRY: Final = 0.5, 60.0

_Entries = Mapping[GroupVersion, Sequence[JSONObject]]


class RemoteDiscovery:
    """
    The entries of other servers in the aggregated documents.

    @ivar generation: A number that changes with every update.
    @ivar entries: The entry of each group-version.
    @ivar priorities: The priority of each group-version.
    """

    def __init__(self, remotes: IRemotes, clock: IReactorTime, defer_to_thread: DeferToThread) -> None:
        self.generation = 0
        self.entries: dict[GroupVersion, JSONObject] = {}
        self.priorities: dict[GroupVersion, Priority] = {}
        self._remotes = remotes
        self._defer_to_thread = defer_to_thread
        #: By service: the ETag of its last document, and the content.
        self._cached: dict[Hashable, tuple[str, _Entries]] = {}
        self._servers = RemotePoller(
            remotes,
            clock,
            "discovery",
            self._fetch,
            self._changed,
            retry_initial=RETRY[0],
            retry_max=RETRY[1],
        )
        self.start = self._servers.start
        self.stop = self._servers.stop

    @property
    def idle(self) -> bool:
        """Return whether no request to a server is running."""
        return self._servers.idle

    def _changed(self, group_version: GroupVersion, remote: IRemoteGroupVersion | None) -> None:
        if remote is None:
            self.priorities.pop(group_version, None)
            if self.entries.pop(group_version, None) is not None:
                self.generation += 1
            used = {one.service for one in self._remotes.aggregated_servers.values()}
            self._cached = {service: cached for service, cached in self._cached.items() if service in used}
            return
        if self.priorities.get(group_version) != remote.priority:
            self.priorities[group_version] = remote.priority
            self.generation += 1
        if not remote.available:
            self._set(group_version, (), current=False)

    def _set(self, group_version: GroupVersion, resources: Sequence[JSONObject], current: bool) -> None:
        new_entry = entry(group_version.version, resources, current)
        if self.entries.get(group_version) != new_entry:
            self.entries[group_version] = new_entry
            self.generation += 1

    async def _fetch(self, service: Hashable) -> None:
        remotes = self._servers.group_versions_of(service)
        remote = first_available(remotes)
        assert remote is not None, "only services with an available group-version are polled"
        try:
            entries = await self._fetch_aggregated(service, remote)
        except FAILURES:
            self._all_stale(service)
            raise
        if entries is not None:
            for remote in self._available_group_versions(service):
                self._set(remote.group_version, entries.get(remote.group_version, ()), current=True)
            return
        failure: Exception | None = None
        for remote in remotes:
            if not remote.available:
                continue
            try:
                resources = await self._fetch_resource_list(remote)
            except FAILURES as error:
                failure = error
                if self._is_current(remote):
                    self._set(remote.group_version, (), current=False)
            else:
                if self._is_current(remote):
                    self._set(remote.group_version, resources, current=True)
        if failure is not None:
            raise failure

    async def _fetch_aggregated(self, service: Hashable, remote: IRemoteGroupVersion) -> _Entries | None:
        """Return the entries of the aggregated document, or L{None} if the server does not serve one."""
        etag, cached = self._cached.get(service, ("", {}))
        response = await remote.fetch("/apis", accept=AGGREGATED, etag=etag, timeout=TIMEOUT, user=USER)
        if response.code == 304 and etag:
            return cached
        if response.code == 503:
            raise UnexpectedResponse("the server responded with status 503")
        if response.code != 200 or not is_aggregated(response.headers.get("content-type", "")):
            self._cached.pop(service, None)
            return None
        entries: _Entries = await self._defer_to_thread(read_aggregated, response.body)
        self._cached[service] = response.headers.get("etag", ""), entries
        return entries

    async def _fetch_resource_list(self, remote: IRemoteGroupVersion) -> Sequence[JSONObject]:
        """Return the resources in the discovery document of one group-version."""
        group, version = remote.group_version
        path = f"/apis/{group}/{version}"
        response = await remote.fetch(path, accept="application/json", timeout=TIMEOUT, user=USER)
        if response.code != 200:
            raise UnexpectedResponse(f"the server responded with status {response.code} for {path}")
        resources: Sequence[JSONObject] = await self._defer_to_thread(read_resource_list, response.body)
        return resources

    def _available_group_versions(self, service: Hashable) -> list[IRemoteGroupVersion]:
        """Return the group-versions of the service that are available now."""
        return [remote for remote in self._servers.group_versions_of(service) if remote.available]

    def _is_current(self, remote: IRemoteGroupVersion) -> bool:
        now = self._remotes.aggregated_servers.get(remote.group_version)
        return now is not None and now.service == remote.service and now.available

    def _all_stale(self, service: Hashable) -> None:
        for remote in self._available_group_versions(service):
            self._set(remote.group_version, (), current=False)
