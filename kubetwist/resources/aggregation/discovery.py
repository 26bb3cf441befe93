"""
The resources of other servers, for aggregated discovery.

The aggregated document of each server is fetched; if it has none, the document of each group-version is. The
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

_Found = Mapping[GroupVersion, Sequence[JSONObject]]


class RemoteDiscovery:
    """
    The entries of other servers in the aggregated documents.

    @ivar generation: A number that changes with every update.
    @ivar entries: The entry of each group-version.
    @ivar priorities: The priority of each group-version.
    """

    def __init__(self, remotes: IRemotes, clock: IReactorTime, run: DeferToThread) -> None:
        self.generation = 0
        self.entries: dict[GroupVersion, JSONObject] = {}
        self.priorities: dict[GroupVersion, Priority] = {}
        self._remotes = remotes
        self._run = run
        #: By service: the ETag of its last document, and the content.
        self._known: dict[Hashable, tuple[str, _Found]] = {}
        self._servers = RemotePoller(
            remotes,
            clock,
            "discovery",
            self._ask,
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
            self._known = {service: known for service, known in self._known.items() if service in used}
            return
        if self.priorities.get(group_version) != remote.priority:
            self.priorities[group_version] = remote.priority
            self.generation += 1
        if not remote.available:
            self._set(group_version, (), current=False)

    def _set(self, group_version: GroupVersion, resources: Sequence[JSONObject], current: bool) -> None:
        told = entry(group_version.version, resources, current)
        if self.entries.get(group_version) != told:
            self.entries[group_version] = told
            self.generation += 1

    async def _ask(self, service: Hashable) -> None:
        remotes = self._servers.of(service)
        asked = first_available(remotes)
        assert asked is not None, "nobody else is asked"
        try:
            found = await self._aggregated(service, asked)
        except FAILURES:
            self._all_stale(service)
            raise
        if found is not None:
            for remote in self._still(service):
                self._set(remote.group_version, found.get(remote.group_version, ()), current=True)
            return
        failure: Exception | None = None
        for remote in remotes:
            if not remote.available:
                continue
            try:
                resources = await self._plain(remote)
            except FAILURES as error:
                failure = error
                if self._is_there(remote):
                    self._set(remote.group_version, (), current=False)
            else:
                if self._is_there(remote):
                    self._set(remote.group_version, resources, current=True)
        if failure is not None:
            raise failure

    async def _aggregated(self, service: Hashable, remote: IRemoteGroupVersion) -> _Found | None:
        """Return the entries of the aggregated document, or L{None} if the server does not serve one."""
        etag, known = self._known.get(service, ("", {}))
        answer = await remote.fetch("/apis", accept=AGGREGATED, etag=etag, timeout=TIMEOUT, user=USER)
        if answer.code == 304 and etag:
            return known
        if answer.code == 503:
            raise UnexpectedResponse("it answers 503")
        if answer.code != 200 or not is_aggregated(answer.headers.get("content-type", "")):
            self._known.pop(service, None)
            return None
        found: _Found = await self._run(read_aggregated, answer.body)
        self._known[service] = answer.headers.get("etag", ""), found
        return found

    async def _plain(self, remote: IRemoteGroupVersion) -> Sequence[JSONObject]:
        """Return the resources in the discovery document of one group-version."""
        group, version = remote.group_version
        path = f"/apis/{group}/{version}"
        answer = await remote.fetch(path, accept="application/json", timeout=TIMEOUT, user=USER)
        if answer.code != 200:
            raise UnexpectedResponse(f"it answers {answer.code} for {path}")
        resources: Sequence[JSONObject] = await self._run(read_resource_list, answer.body)
        return resources

    def _still(self, service: Hashable) -> list[IRemoteGroupVersion]:
        """Return the group-versions of the service that are available now."""
        return [remote for remote in self._servers.of(service) if remote.available]

    def _is_there(self, remote: IRemoteGroupVersion) -> bool:
        now = self._remotes.aggregated_servers.get(remote.group_version)
        return now is not None and now.service == remote.service and now.available

    def _all_stale(self, service: Hashable) -> None:
        for remote in self._still(service):
            self._set(remote.group_version, (), current=False)
