"""
Maintains a Lease for each API server, and deletes expired ones (Go: apiserverleasegc).

@see: kubernetes, C{pkg/controlplane/apiserver/server.go} and C{controller/apiserverleasegc}.
"""

from __future__ import annotations

from base64 import b32encode
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ..api import times
from ..api.errors import APIStatusError
from ..api.options import DeleteOptions, UpdateOptions
from ..api.requestscope import RequestScope
from ..api.resource import JSONObject
from ..registry.generic.bootstrap import SERVER, ensure
from ..storage.errors import StorageError

if TYPE_CHECKING:
    from ..registry.generic.store import Store

NAMESPACE: Final = "kube-system"
IDENTITY: Final = "apiserver.kubernetes.io/identity"
HOSTNAME: Final = "kubernetes.io/hostname"
COMPONENT: Final = "kube-apiserver"
#: Duration of a Lease, time between renewals, and time between scans for expired Leases, in seconds.
DURATION: Final = 3600
INTERVAL: Final = 10.0
GC_INTERVAL: Final = 3600.0


def server_name(hostname: str) -> str:
    """Return the name of the Lease of the server on a host."""
    digest = sha256()
    for part in (hostname.encode(), COMPONENT.encode()):
        digest.update(len(part).to_bytes(2, "big") + part)
    return f"apiserver-{b32encode(digest.digest()[:16]).decode().rstrip('=').lower()}"


def is_expired(lease: JSONObject) -> bool:
    """Return whether a Lease has expired. One without a time or duration counts as expired."""
    spec = lease.get("spec") or {}
    renewed, duration = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    if not renewed or duration is None:
        return True
    expired: bool = times.seconds_since_epoch(renewed) + duration < times.posix_now()
    return expired


class PeriodicTask:
    """A task that runs at the start and then periodically."""

    _log = Logger()
    interval: float

    def __init__(self, store: Store, reactor: IReactorTime) -> None:
        """
        @param store: The store of Leases.
        """
        self._store = store
        self._reactor = reactor
        self._call: IDelayedCall | None = None
        self._stopped = False

    async def round(self) -> None:
        """Run the task once."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the task. Do not wait for the first run."""
        self._call = None
        Deferred.fromCoroutine(self._run_once()).addErrback(
            lambda failure: self._log.failure("cannot sync Leases of API servers", failure)
        ).addCallback(self._schedule)

    async def _run_once(self) -> None:
        try:
            await self.round()
        except (APIStatusError, StorageError) as error:
            self._log.warn("cannot sync Leases of API servers: {error}", error=error)

    def _schedule(self, _: object) -> None:
        if not self._stopped:
            self._call = self._reactor.callLater(self.interval, self.start)

    def stop(self) -> None:
        """Stop the task."""
        self._stopped = True
        if self._call is not None:
            self._call.cancel()
            self._call = None


class IdentityLeaseController(PeriodicTask):
    """Renews this server's Lease. The Lease remains after a stop, until it expires."""

    interval = INTERVAL

    def __init__(self, store: Store, reactor: IReactorTime, hostname: str, process: str) -> None:
        """
        @param store: The store of Leases.
        @param reactor: The clock.
        @param hostname: The host name of this server.
        @param process: The unique identity of this process.
        """
        super().__init__(store, reactor)
        self._hostname = hostname
        self.name = server_name(hostname)
        self._holder = f"{self.name}_{process}"

    async def round(self) -> None:
        """Create or renew the Lease."""
        lease: JSONObject = {"metadata": {"name": self.name, "namespace": NAMESPACE}}
        if self._store.get_copy(NAMESPACE, self.name) is None:
            await ensure(self._store, self._renewed(lease))
            return

        def changed(obj: JSONObject | None) -> JSONObject:
            assert obj is not None, "an update creates no objects"
            new = self._renewed(obj)
            self._store.update_managed_fields(obj, new, "", SERVER)
            return new

        await self._store.update(RequestScope(NAMESPACE), self.name, changed, UpdateOptions(), patching=True)

    def _renewed(self, lease: JSONObject) -> JSONObject:
        meta = lease["metadata"]
        labels = {**(meta.get("labels") or {}), IDENTITY: COMPONENT, HOSTNAME: self._hostname}
        spec = {
            **(lease.get("spec") or {}),
            "holderIdentity": self._holder,
            "leaseDurationSeconds": DURATION,
            "renewTime": times.now_micro(),
        }
        return {**lease, "metadata": {**meta, "labels": labels}, "spec": spec}


class IdentityLeaseGC(PeriodicTask):
    """Deletes expired Leases of API servers."""

    interval = GC_INTERVAL

    async def round(self) -> None:
        """Check all Leases once."""
        for record in self._store.cache.list(f"{NAMESPACE}/").records:
            if record.labels.get(IDENTITY) != COMPONENT or not is_expired(self._store.decode_record(record)):
                continue
            options = DeleteOptions(precondition_resource_version=str(record.revision))
            try:
                await self._store.delete(RequestScope(NAMESPACE), record.name, options)
            except APIStatusError as error:
                # Another server deleted it, or its server renewed it.
                if error.code not in (404, 409):
                    raise
