"""The expiry times of keys in etcd, from their leases."""

from __future__ import annotations

from typing import Final

from txaioetcd import KeySet

from twisted.internet.defer import gatherResults

from ..embedded import prefix_end
from ..errors import StorageUnavailable
from ._errors import RPCError
from ._values import (
    key_bytes,
    key_text,
)
from .client import EtcdClient

#: Maximum number of keys per request; their values are not sent.
PAGE: Final = 1000
#: Maximum number of leases requested at the same time.
MAX_CONCURRENT_LEASE_REQUESTS: Final = 16


async def read_expiration_times(client: EtcdClient, prefix: str, now: float) -> dict[str, float]:
    """
    Return the expiry times of the keys below C{prefix} that have a lease.

    @param now: The wall time.
    @raise StorageUnavailable: etcd does not respond.
    """
    try:
        by_lease: dict[int, list[str]] = {}
        for key, lease in await _list_leased_keys(client, prefix):
            by_lease.setdefault(lease, []).append(key)
        times: dict[str, float] = {}
        leases = list(by_lease)
        for first in range(0, len(leases), MAX_CONCURRENT_LEASE_REQUESTS):
            batch = leases[first : first + MAX_CONCURRENT_LEASE_REQUESTS]
            found = await gatherResults([client.lease_time_to_live(lease) for lease in batch])
            for lease, one in zip(batch, found, strict=True):
                # The lease may have expired.
                times |= dict.fromkeys(by_lease[lease], now + max(one.remaining, 0))
    except RPCError as error:
        raise StorageUnavailable(str(error)) from None
    return times


async def _list_leased_keys(client: EtcdClient, prefix: str) -> list[tuple[str, int]]:
    start, end = key_bytes(prefix), key_bytes(prefix_end(prefix))
    leased: list[tuple[str, int]] = []
    while True:
        page = await client.get(KeySet(start, range_end=end), limit=PAGE, keys_only=True)
        leased += [(key_text(item.key), item.lease) for item in page.kvs if item.lease]
        if page.count <= len(page.kvs) or not page.kvs:
            return leased
        start = page.kvs[-1].key + b"\0"
