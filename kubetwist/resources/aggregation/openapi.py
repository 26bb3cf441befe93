"""
The OpenAPI documents of aggregated servers, in v2 and v3.

Each server is polled once a minute for changes. The parts of its v2 document that belong to its group-versions are
merged into our document. Its v3 documents are fetched on demand and cached compressed. For a server without v3, they
are converted from v2. The last documents of a server stay until it serves different ones or is removed.

@see: kubernetes/kube-aggregator, C{pkg/controllers/openapi}, C{pkg/controllers/openapiv3}
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from ...api.jsonpieces import check_object, decoded
from ...api.resource import GroupVersion
from ..openapi.compressed import CompressedDocument
from ..openapi.specmerge import MAX_SIZE, RemoteSpec, read_v2
from ..openapi.v2tov3 import v3_of_v2
from ..remotedocuments import BadDocument, UnexpectedResponse
from .discoverydocuments import MAX_SIZE as MAX_INDEX_SIZE
from .remotes import IRemotes, RemotePoller, first_available

if TYPE_CHECKING:
    from ...http.collaborators import DeferToThread
    from .remotes import IRemoteGroupVersion

#: User name of the requests.
USER: Final = "system:aggregator"
#: Timeout of a request in seconds; servers need time to build documents.
TIMEOUT: Final = 30.0
#: Seconds until the first request to a new server, as it may still be starting.
DELAY: Final = 1.0
#: Seconds until the first retry after a failure, and their maximum.
RETRY: Final = 5.0, 600.0
#: Matches the hash in the URL of a v3 document.
_HASH: Final = re.compile(r"[?&]hash=([0-9A-Za-z_-]{1,256})(?:&|$)")


@frozen
class _FetchedSpec:
    """A converted v2 document: its ETag, its digest, and the group-versions that it was read for."""

    etag: str
    digest: bytes
    group_versions: frozenset[GroupVersion]


@frozen(eq=False)
class _CachedDocument:
    """A cached v3 document: its listed hash when it was fetched, its ETag, and the document."""

    listed: str
    etag: str
    document: CompressedDocument


class RemoteOpenAPI:
    """
    The documents of other servers.

    @ivar generation: A number that changes with every update of their v2 documents.
    """

    def __init__(self, remotes: IRemotes, clock: IReactorTime, defer_to_thread: DeferToThread) -> None:
        self.generation = 0
        self._remotes = remotes
        self._defer_to_thread = defer_to_thread
        self._specs: dict[GroupVersion, RemoteSpec] = {}
        self._fetched_specs: dict[Hashable, _FetchedSpec] = {}
        #: Of v3: the hash of each document, as its server lists it; empty if the server lists none.
        self._listed: dict[GroupVersion, str] = {}
        self._cached: dict[GroupVersion, _CachedDocument] = {}
        #: The spec from which a v3 document was converted, for a server without v3.
        self._converted: dict[GroupVersion, RemoteSpec] = {}
        self._waiters: dict[GroupVersion, list[Deferred[CompressedDocument]]] = {}
        self._pollers = [
            RemotePoller(
                remotes, clock, name, fetch, on_change, delay=DELAY, retry_initial=RETRY[0], retry_max=RETRY[1]
            )
            for name, fetch, on_change in (
                ("OpenAPI v2", self._fetch_v2, self._on_change_v2),
                ("OpenAPI v3", self._fetch_v3_index, self._on_change_v3),
            )
        ]

    def start(self) -> None:
        """Start the requests to the servers."""
        for poller in self._pollers:
            poller.start()

    async def stop(self) -> None:
        """Stop polling the servers."""
        for poller in self._pollers:
            await poller.stop()

    @property
    def idle(self) -> bool:
        """Return whether no request to a server is running."""
        return all(poller.idle for poller in self._pollers)

    # --- v2

    def specs(self) -> list[tuple[GroupVersion, RemoteSpec]]:
        """Return the specs for our v2 document, ordered by the priority of groups, then by the names of APIServices."""
        remotes = self._remotes.aggregated_servers
        groups: dict[str, int] = {}
        for group_version in self._specs:
            if group_version in remotes:
                priority = remotes[group_version].priority.group
                groups[group_version.group] = max(groups.get(group_version.group, 0), priority)
        found = [one for one in self._specs.items() if one[0] in remotes]
        return sorted(found, key=lambda one: (-groups[one[0].group], str(remotes[one[0]].name)))

    def _on_change_v2(self, group_version: GroupVersion, remote: IRemoteGroupVersion | None) -> None:
        if remote is None and self._specs.pop(group_version, None) is not None:
            self.generation += 1
        used = {one.service for one in self._remotes.aggregated_servers.values()}
        self._fetched_specs = {service: read for service, read in self._fetched_specs.items() if service in used}

    async def _fetch_v2(self, service: Hashable) -> None:
        remotes = self._pollers[0].group_versions_of(service)
        requested = frozenset(remote.group_version for remote in remotes)
        previous = self._fetched_specs.get(service)
        is_complete = previous is not None and requested <= previous.group_versions
        remote = first_available(remotes)
        assert remote is not None, "only services with an available group-version are polled"
        response = await remote.fetch(
            "/openapi/v2",
            accept="application/json",
            etag=previous.etag if previous is not None and is_complete else "",
            timeout=TIMEOUT,
            user=USER,
        )
        if response.code == 304 and is_complete:
            return
        if response.code != 200:
            raise UnexpectedResponse(f"the server responded with status {response.code}")
        digest = sha256(response.body).digest()
        if previous is None or not is_complete or digest != previous.digest:
            found: Mapping[GroupVersion, RemoteSpec] = await self._defer_to_thread(read_v2, response.body, requested)
            for group_version, spec in found.items():
                now = self._remotes.aggregated_servers.get(group_version)
                if now is not None and now.service == service and self._specs.get(group_version) != spec:
                    self._specs[group_version] = spec
                    self.generation += 1
        self._fetched_specs[service] = _FetchedSpec(response.headers.get("etag", ""), digest, requested)

    # --- v3

    def listed(self) -> dict[str, str]:
        """Return the hashes of the documents by name, C{"apis/<group>/<version>"}; empty for a document without one."""
        return {_name(group_version): found for group_version, found in self._listed.items()}

    def document(self, name: str) -> CompressedDocument | Deferred[CompressedDocument]:
        """Return the document with one of the L{listed} names; fails if a request to its server is needed and fails."""
        _, group, version = name.split("/")
        group_version = GroupVersion(group, version)
        cached = self._cached.get(group_version)
        if cached is not None and cached.listed == self._listed.get(group_version):
            return cached.document
        waiter: Deferred[CompressedDocument] = Deferred()
        waiters = self._waiters.get(group_version)
        if waiters is not None:
            waiters.append(waiter)
            return waiter
        self._waiters[group_version] = [waiter]
        Deferred.fromCoroutine(self._fetch(group_version)).addBoth(self._fire_waiters, group_version)
        return waiter

    def _fire_waiters(self, result: CompressedDocument | Failure, group_version: GroupVersion) -> None:
        for waiter in self._waiters.pop(group_version):
            waiter.callback(result)

    async def _fetch(self, group_version: GroupVersion) -> CompressedDocument:
        cached = self._cached.get(group_version)
        listed = self._listed.get(group_version, "")
        remote = self._remotes.aggregated_servers.get(group_version)
        try:
            if remote is None or not remote.available:
                raise UnexpectedResponse("service unavailable")
            found = await self._fetch_from(remote, cached, listed)
        except Exception:
            if cached is None:
                raise
            return cached.document
        if self._remotes.aggregated_servers.get(group_version) is not None:
            self._cached[group_version] = found
        return found.document

    async def _fetch_from(
        self, remote: IRemoteGroupVersion, cached: _CachedDocument | None, listed: str
    ) -> _CachedDocument:
        response = await remote.fetch(
            f"{_V3}/{_name(remote.group_version)}",
            accept="application/json",
            etag="" if cached is None else cached.etag,
            timeout=TIMEOUT,
            user=USER,
        )
        if response.code == 304 and cached is not None:
            document = cached.document
        elif response.code == 200:
            document = await self._defer_to_thread(_compress, response.body)
        else:
            raise UnexpectedResponse(f"the server responded with status {response.code}")
        # Clients identify a document by its listed hash.
        return _CachedDocument(
            listed, response.headers.get("etag", ""), evolve(document, hash=listed) if listed else document
        )

    def _on_change_v3(self, group_version: GroupVersion, remote: IRemoteGroupVersion | None) -> None:
        if remote is None:
            for table in (self._listed, self._cached, self._converted):
                table.pop(group_version, None)

    async def _fetch_v3_index(self, service: Hashable) -> None:
        remote = first_available(self._pollers[1].group_versions_of(service))
        assert remote is not None, "only services with an available group-version are polled"
        response = await remote.fetch(_V3, accept="application/json", timeout=TIMEOUT, user=USER)
        if response.code == 404:
            await self._convert(service)
            return
        if response.code != 200:
            raise UnexpectedResponse(f"the server responded with status {response.code}")
        found: Mapping[str, str] = await self._defer_to_thread(_hashes, response.body)
        for one in self._pollers[1].group_versions_of(service):
            self._converted.pop(one.group_version, None)
            listed = found.get(_name(one.group_version))
            if listed is None:
                self._on_change_v3(one.group_version, None)
                continue
            self._listed[one.group_version] = listed
            cached = self._cached.get(one.group_version)
            if not listed and cached is not None:
                # Without a hash, changes are not detectable: the document is fetched on demand.
                self._cached[one.group_version] = _CachedDocument("?", cached.etag, cached.document)

    async def _convert(self, service: Hashable) -> None:
        """Convert the v2 document of a server; it may not have been fetched yet."""
        missing = False
        for one in self._pollers[1].group_versions_of(service):
            spec = self._specs.get(one.group_version)
            if spec is None:
                missing = True
            elif self._converted.get(one.group_version) is not spec:
                document = await self._defer_to_thread(v3_of_v2, spec)
                if self._specs.get(one.group_version) is spec:
                    self._converted[one.group_version] = spec
                    self._listed[one.group_version] = document.hash
                    self._cached[one.group_version] = _CachedDocument(document.hash, "", document)
        if missing:
            raise UnexpectedResponse("the server has no OpenAPI v3, and its v2 document lacks the group-version")


_V3: Final = "/openapi/v3"


def _name(group_version: GroupVersion) -> str:
    return f"apis/{group_version.group}/{group_version.version}"


def _compress(body: bytes) -> CompressedDocument:
    if len(body) > MAX_SIZE:
        raise BadDocument(f"longer than {MAX_SIZE} bytes")
    check_object(body)
    return CompressedDocument.pieces([body], b"application/json")


def _hashes(body: bytes) -> dict[str, str]:
    """Return the hash of each document that a server lists, by name."""
    if len(body) > MAX_INDEX_SIZE:
        raise BadDocument(f"longer than {MAX_INDEX_SIZE} bytes")
    document = decoded(body)
    paths = document.get("paths") if isinstance(document, dict) else None
    if not isinstance(paths, dict):
        raise BadDocument("the index has no paths")
    found: dict[str, str] = {}
    for name, line in paths.items():
        url = line.get("serverRelativeURL") if isinstance(line, dict) else None
        if not isinstance(url, str):
            raise BadDocument("a document is listed without serverRelativeURL")
        match = _HASH.search(url)
        found[name] = match[1] if match else ""
    return found
