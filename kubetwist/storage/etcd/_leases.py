"""Leases: the expiry of keys in etcd."""

from __future__ import annotations

from math import ceil
from typing import Final

from txaioetcd import Lease

from twisted.internet.interfaces import IReactorTime

from ..errors import StorageUnavailable
from ..locks import FlatLock
from ._errors import RPCError
from .client import EtcdClient

#: The fraction of a time to live that a key may live longer, so that keys can share a lease.
REUSE_FRACTION: Final = 0.05
#: Maximum number of keys of one lease: they are deleted in one transaction.
MAX_LEASE_KEYS: Final = 1000


class Leases:
    """
    Makes leases, and uses each for several keys.

    Only one lease is kept: all keys with a time to live here, events, have the same one.
    """

    def __init__(self, client: EtcdClient, reactor: IReactorTime, reuse: float) -> None:
        """
        @param reuse: Maximum number of seconds for which a lease is used for new keys.
        """
        self._client = client
        self._reactor = reactor
        self._reuse = reuse
        self._lock = FlatLock()
        self._lease: Lease | None = None
        self._expires = 0.0
        self._keys = 0

    async def lease(self, ttl: float) -> Lease:
        """
        Return a lease that lasts for at least C{ttl} seconds, and not much longer.

        @raise StorageUnavailable: etcd does not make one.
        """
        await self._lock.acquire()
        try:
            ttl = max(ceil(ttl), 1)
            reuse = min(int(REUSE_FRACTION * ttl), int(self._reuse))
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
        """Drop a lease that etcd does not know any more."""
        if lease is self._lease:
            self._lease = None
