"""
Maintains the endpoints of the service C{kubernetes} when several servers share a storage.

Each server has a key with its address and a TTL. All servers write the endpoints for the existing keys. Keys and times
are kube-apiserver's, so its servers can share the storage.

@see: kubernetes, C{pkg/controlplane/reconcilers}.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.options import DeleteOptions, UpdateOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...api.storage import StorageEvent, Write
from ...interfaces import IStorageBackend, IStorageObserver, IStorageWatch
from ...registry.core.service.bootstrap import is_about_loopback, kubernetes_endpoints, kubernetes_slice
from ...registry.generic.bootstrap import SERVER, ensure
from ...storage.errors import KeyNotFound, StorageError

if TYPE_CHECKING:
    from ...registry.generic.store import Store
    from ...registry.stores import Stores

#: Path of the keys below the storage's prefix.
DIRECTORY: Final = "masterleases/"
#: TTL of a key, and time between renewals, in seconds.
LEASE_TTL: Final = 15.0
INTERVAL: Final = 10.0
NAMESPACE: Final = "default"
NAME: Final = "kubernetes"


def lease_value(address: str, generation: int) -> bytes:
    """Return the value of a server's key."""
    obj = {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {"generation": generation},
        "subsets": [{"addresses": [{"ip": address}]}],
    }
    return orjson.dumps(obj) + b"\n"


def endpoint_addresses(names: Sequence[str]) -> list[str]:
    """
    Return the addresses of the running servers, of one family, in the order of objects.

    @param names: The last path segments of the keys.
    """
    families: dict[int, list[str]] = {4: [], 6: []}
    for name in names:
        try:
            families[ipaddress.ip_address(name).version].append(name)
        except ValueError:
            continue
    return sorted(families[4] or families[6])


@implementer(IStorageObserver)
class LeaseEndpointReconciler:
    """Renews this server's key, and updates the endpoints of all servers."""

    _log = Logger()

    def __init__(
        self,
        stores: Stores,
        backend: IStorageBackend,
        prefix: str,
        reactor: IReactorTime,
        endpoint: Callable[[], tuple[str, int]],
    ) -> None:
        """
        @param backend: The storage of the servers.
        @param prefix: The prefix of all keys in the storage.
        @param endpoint: Returns the address and port of this server. The address is C{""} before it listens.
        """
        self._stores = stores
        self._backend = backend
        self._prefix = f"{prefix}{DIRECTORY}"
        self._reactor = reactor
        self._endpoint = endpoint
        self._generation = 0
        self._watch: IStorageWatch | None = None
        self._call: IDelayedCall | None = None
        self._scheduled: IDelayedCall | None = None
        self._working: Deferred[None] | None = None
        #: Whether anything has changed since the current sync began.
        self._rerun = False
        self._stopped = False

    # --- lifecycle

    async def prepare(self) -> None:
        """Remove the endpoint of an earlier run, so that clients do not connect before this server is ready."""
        if self._endpoint()[0]:
            await self._log_errors(self._remove_self())

    def start(self) -> None:
        """Add this server to the endpoints, and renew its key from now on."""
        if self._endpoint()[0]:
            self._renew()

    async def stop(self) -> None:
        """Remove this server from the endpoints."""
        was_stopped, self._stopped = self._stopped, True
        self.end()
        if was_stopped or not self._endpoint()[0]:
            return
        if self._working is not None:
            await self._working
        await self._log_errors(self._remove_self())

    def end(self) -> None:
        """Stop reconciling. The endpoints are not changed."""
        self._stopped = True
        for call in (self._call, self._scheduled):
            if call is not None and call.active():
                call.cancel()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    async def _remove_self(self) -> None:
        address, _ = self._endpoint()
        try:
            await self._backend.commit([Write(f"{self._prefix}{address}", None, None)])
        except KeyNotFound:
            return
        await self._reconcile()

    # --- sync

    def _renew(self) -> None:
        """Renew the key of this server, and sync the endpoints."""
        self._call = self._reactor.callLater(INTERVAL, self._renew)
        self._work(renew=True)

    def _work(self, *, renew: bool = False) -> None:
        if self._working is not None:
            self._rerun = True
        else:
            self._working = Deferred.fromCoroutine(self._log_errors(self._sync_once(renew)))
            self._working.addErrback(
                lambda failure: self._log.failure("cannot reconcile endpoints of service default/kubernetes", failure)
            )
            self._working.addCallback(self._work_done)

    def _work_done(self, _: object) -> None:
        self._working = None
        if self._rerun:
            self._rerun = False
            self._schedule()

    async def _log_errors(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (StorageError, APIStatusError) as error:
            self._log.warn("cannot reconcile endpoints of service default/kubernetes: {error}", error=error)

    async def _sync_once(self, renew: bool) -> None:
        if renew:
            address, _ = self._endpoint()
            # The generation changes the value, so that watches of the keys get an event, as in kube-apiserver.
            self._generation += 1
            value = lease_value(address, self._generation)
            endpoints = self._stores.get("", "endpoints")
            if endpoints.stored_as is not None:
                value = endpoints.stored_as.encode(endpoints.gvk, value)
            await self._backend.commit([Write(f"{self._prefix}{address}", value, None, ttl=LEASE_TTL)])
        await self._reconcile()

    async def _addresses(self) -> list[str]:
        """Return the addresses of the servers with a key."""
        if self._watch is None and not self._stopped:
            self._watch = await self._backend.watch(self._prefix, self._backend.revision, self)
        page = await self._backend.read_page(self._prefix)
        return endpoint_addresses([item.key[len(self._prefix) :] for item in page.items])

    async def _reconcile(self) -> None:
        addresses = await self._addresses()
        if not addresses:
            self._log.info("no API server lease found, keeping endpoints unchanged: service=default/kubernetes")
            return
        address, port = self._endpoint()
        # The other servers must have the same port. If there are none, the port of this server is used.
        alone = addresses == [address]
        endpoints = kubernetes_endpoints(addresses, port)
        await self._ensure(
            self._stores.get("", "endpoints"), endpoints, lambda obj: _with_subset(obj, endpoints, alone)
        )
        slices = self._stores.find("discovery.k8s.io", "endpointslices")
        if slices is not None:
            desired = kubernetes_slice(addresses, port)
            existing = slices.get_copy(NAMESPACE, NAME)
            if existing is not None and existing.get("addressType") != desired["addressType"]:
                await slices.delete(RequestScope(NAMESPACE), NAME, DeleteOptions())
            await self._ensure(slices, desired, lambda obj: _with_endpoints(obj, desired, alone))

    async def _ensure(self, store: Store, desired: JSONObject, change: Callable[[JSONObject], JSONObject]) -> None:
        """Create an object, or update it with C{change}."""
        existing = store.get_copy(NAMESPACE, NAME)
        if existing is None:
            await ensure(store, desired, ignores_error=is_about_loopback)
            return
        if change(existing) == existing:
            return

        def changed(obj: JSONObject | None) -> JSONObject:
            assert obj is not None, "an update creates no objects"
            new = change(obj)
            if new != obj:
                store.update_managed_fields(obj, new, "", SERVER)
            return new

        scope = RequestScope(NAMESPACE, ignores_error=is_about_loopback)
        await store.update(scope, NAME, changed, UpdateOptions(), patching=True)

    # --- IStorageObserver

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """Handle an added or deleted key; see L{IStorageObserver.committed}. Renewals change nothing."""
        own_key = f"{self._prefix}{self._endpoint()[0]}"
        if any(event.key != own_key and (event.value is None or not event.previous) for event in events):
            self._schedule()

    def _schedule(self) -> None:
        if not self._stopped and (self._scheduled is None or not self._scheduled.active()):
            self._scheduled = self._reactor.callLater(0, self._work)

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}. The next sync watches again."""
        self._watch = None


def _with_subset(obj: JSONObject, desired: JSONObject, ports: bool) -> JSONObject:
    """Return Endpoints with the desired addresses, and with the existing ports unless C{ports}."""
    (subset,) = desired["subsets"]
    subsets: Sequence[JSONObject] = obj.get("subsets") or ()
    ports_before = subsets[0].get("ports") if len(subsets) == 1 else None
    subset = {**subset, "ports": subset["ports"] if ports or not ports_before else ports_before}
    return {**obj, "metadata": {**obj["metadata"], "labels": desired["metadata"]["labels"]}, "subsets": [subset]}


def _with_endpoints(obj: JSONObject, desired: JSONObject, ports: bool) -> JSONObject:
    """Return an EndpointSlice with the desired addresses, and with the existing ports unless C{ports}."""
    ports_before = obj.get("ports")
    return {
        **obj,
        "metadata": {**obj["metadata"], "labels": desired["metadata"]["labels"]},
        "endpoints": desired["endpoints"],
        "ports": desired["ports"] if ports or not ports_before else ports_before,
    }
