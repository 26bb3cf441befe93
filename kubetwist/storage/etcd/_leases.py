"""Leases: how keys in etcd delete themselves."""

from __future__ import annotations

from math import ceil
from typing import Final

from txaioetcd import Lease

from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime

from ..errors import StorageUnavailable
from ._errors import RPCError
from .client import EtcdClient

#: The fraction of a time to live that a key may live longer, so that keys can share a lease.
REUSE_PART: Final = 0.05
#: The most keys of one lease: they are deleted in one go.
MAX_LEASE_KEYS: Final = 1000


class Leases:
    """
    Makes leases, and uses each for a while.

    Only one is kept: all that have a time to live here, events, have the same.
    """

    def __init__(self, client: EtcdClient, reactor: IReactorTime, reuse: float) -> None:
        """
        @param reuse: The most seconds that one lease is used for new keys.
        """
        self._client = client
        self._reactor = reactor
        self._reuse = reuse
        self._lock = DeferredLock()
        self._lease: Lease | None = None
        self._expires = 0.0
        self._keys = 0

    async def lease(self, ttl: float) -> Lease:
        """
        A lease that lasts for C{ttl} seconds at least, and not much longer.

        @raise StorageUnavailable: etcd makes none.
        """
        await self._lock.acquire()
        try:
            ttl = max(ceil(ttl), 1)
            reuse = min(int(REUSE_PART * ttl), int(self._reuse))
            now = self._reactor.seconds()
            if self._lease is None or not now + ttl < self._expires < now + ttl + reuse or self._keys >= MAX_LEASE_KEYS:
                try:
                    self._lease = await self._client.lease(ttl + reuse)
                except RPCError as error:
                    raise StorageUnavailable(str(error)) from None
                self._expires = now + ttl + reuse
                self._keys = 0
            self._keys += 1
            self._client.metrics.lease_keys.observe(self._keys)
            return self._lease
        finally:
            self._lock.release()

    def forget(self, lease: Lease | None) -> None:
        """A lease is gone before its time."""
        if lease is self._lease:
            self._lease = None
