"""
Which servers pods find behind the service C{kubernetes}, where several share a storage: those that live.

Each keeps a key with its address there, which deletes itself when it is not renewed, and all of them write the
endpoints that follow from the keys. Keys and times are kube-apiserver's, so that its servers can take part.

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

#: Where the keys are, below the storage's prefix.
DIRECTORY: Final = "masterleases/"
#: Seconds that a key lives, and after which it is renewed.
LEASE_TTL: Final = 15.0
INTERVAL: Final = 10.0
NAMESPACE: Final = "default"
NAME: Final = "kubernetes"


def lease_value(address: str, generation: int) -> bytes:
    """Return what a server's key says."""
    obj = {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {"generation": generation},
        "subsets": [{"addresses": [{"ip": address}]}],
    }
    return orjson.dumps(obj) + b"\n"


def endpoint_addresses(names: Sequence[str]) -> list[str]:
    """
    Return the addresses of the servers that live, of one family, in the order in which objects have them.

    @param names: The last parts of their keys.
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
    """Keeps this server's key, and the endpoints of all servers."""

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
        @param endpoint: Returns the address of this server; none before it listens.
        """
        self._stores = stores
        self._backend = backend
        self._prefix = f"{prefix}{DIRECTORY}"
        self._reactor = reactor
        self._endpoint = endpoint
        self._generation = 0
        self._watch: IStorageWatch | None = None
        self._call: IDelayedCall | None = None
        self._planned: IDelayedCall | None = None
        self._working: Deferred[None] | None = None
        #: Whether something has changed since the work that is under way began.
        self._rerun = False
        self._stopped = False

    # --- life

    async def prepare(self) -> None:
        """Remove the endpoint of an earlier run, so that clients do not connect before this server is ready."""
        if self._endpoint()[0]:
            await self._tolerant(self._remove_self())

    def start(self) -> None:
        """The server is ready: come, and stay."""
        if self._endpoint()[0]:
            self._renew()

    async def stop(self) -> None:
        """Leave, while others still find this server."""
        was, self._stopped = self._stopped, True
        self.end()
        if was or not self._endpoint()[0]:
            return
        if self._working is not None:
            await self._working
        await self._tolerant(self._remove_self())

    def end(self) -> None:
        """Do nothing more."""
        self._stopped = True
        for call in (self._call, self._planned):
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

    # --- rounds

    def _renew(self) -> None:
        """Renew the key, and look at the others'."""
        self._call = self._reactor.callLater(INTERVAL, self._renew)
        self._work(renew=True)

    def _work(self, *, renew: bool = False) -> None:
        if self._working is not None:
            self._rerun = True
        else:
            self._working = Deferred.fromCoroutine(self._tolerant(self._sync_once(renew)))
            self._working.addErrback(lambda failure: self._log.failure("the endpoints could not be kept", failure))
            self._working.addCallback(self._worked)

    def _worked(self, _: object) -> None:
        self._working = None
        if self._rerun:
            self._rerun = False
            self._schedule()

    async def _tolerant(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (StorageError, APIStatusError) as error:
            self._log.warn("cannot reconcile endpoints of service default/kubernetes: {error}", error=error)

    async def _sync_once(self, renew: bool) -> None:
        if renew:
            address, _ = self._endpoint()
            # The generation changes the value, so that watches of the keys get an event, as in the reference.
            self._generation += 1
            value = lease_value(address, self._generation)
            endpoints = self._stores.get("", "endpoints")
            if endpoints.stored_as is not None:
                value = endpoints.stored_as.encode(endpoints.gvk, value)
            await self._backend.commit([Write(f"{self._prefix}{address}", value, None, ttl=LEASE_TTL)])
        await self._reconcile()

    async def _addresses(self) -> list[str]:
        """Return those of the servers that are there."""
        if self._watch is None and not self._stopped:
            self._watch = await self._backend.watch(self._prefix, self._backend.revision, self)
        page = await self._backend.read_page(self._prefix)
        return endpoint_addresses([item.key[len(self._prefix) :] for item in page.items])

    async def _reconcile(self) -> None:
        addresses = await self._addresses()
        if not addresses:
            self._log.info("no API server lease found, keeping endpoints unchanged: service=default/kubernetes")
            return
        own, port = self._endpoint()
        # The others are to have the same port; where there are none, it is ours for sure.
        alone = addresses == [own]
        endpoints = kubernetes_endpoints(addresses, port)
        await self._ensure(
            self._stores.get("", "endpoints"), endpoints, lambda obj: _with_subset(obj, endpoints, alone)
        )
        slices = self._stores.find("discovery.k8s.io", "endpointslices")
        if slices is not None:
            wanted = kubernetes_slice(addresses, port)
            known = slices.get_copy(NAMESPACE, NAME)
            if known is not None and known.get("addressType") != wanted["addressType"]:
                await slices.delete(RequestScope(NAMESPACE), NAME, DeleteOptions())
            await self._ensure(slices, wanted, lambda obj: _with_endpoints(obj, wanted, alone))

    async def _ensure(self, store: Store, wanted: JSONObject, change: Callable[[JSONObject], JSONObject]) -> None:
        """Have an object there, and have it as C{change} makes it."""
        known = store.get_copy(NAMESPACE, NAME)
        if known is None:
            await ensure(store, wanted, forgives=is_about_loopback)
            return
        if change(known) == known:
            return

        def changed(obj: JSONObject | None) -> JSONObject:
            assert obj is not None, "a patch makes nothing"
            new = change(obj)
            if new != obj:
                store.update_managed_fields(obj, new, "", SERVER)
            return new

        scope = RequestScope(NAMESPACE, forgives=is_about_loopback)
        await store.update(scope, NAME, changed, UpdateOptions(), patching=True)

    # --- IStorageObserver

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}: a server has come, or has gone; that others stay changes nothing."""
        own = f"{self._prefix}{self._endpoint()[0]}"
        if any(event.key != own and (event.value is None or not event.previous) for event in events):
            self._schedule()

    def _schedule(self) -> None:
        if not self._stopped and (self._planned is None or not self._planned.active()):
            self._planned = self._reactor.callLater(0, self._work)

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}: watched again in the next round."""
        self._watch = None


def _with_subset(obj: JSONObject, wanted: JSONObject, ports: bool) -> JSONObject:
    """Endpoints that have the addresses that they should, and the ports that they have unless C{ports}."""
    (subset,) = wanted["subsets"]
    there: Sequence[JSONObject] = obj.get("subsets") or ()
    known = there[0].get("ports") if len(there) == 1 else None
    subset = {**subset, "ports": subset["ports"] if ports or not known else known}
    return {**obj, "metadata": {**obj["metadata"], "labels": wanted["metadata"]["labels"]}, "subsets": [subset]}


def _with_endpoints(obj: JSONObject, wanted: JSONObject, ports: bool) -> JSONObject:
    """Return the same of a slice."""
    known = obj.get("ports")
    return {
        **obj,
        "metadata": {**obj["metadata"], "labels": wanted["metadata"]["labels"]},
        "endpoints": wanted["endpoints"],
        "ports": wanted["ports"] if ports or not known else known,
    }
