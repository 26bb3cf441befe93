"""The expiry times of keys in etcd, from their leases."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import Any, Final

from twisted.internet.defer import Deferred, gatherResults

from ..embedded import prefix_end
from ..errors import StorageUnavailable
from ._descriptors import (
    LEASE_TIME_TO_LIVE,
    RANGE,
)
from ._errors import (
    ProtocolError,
    RPCError,
)
from ._messages import (
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
        by_lease: dict[str, list[str]] = {}
        for key, lease in await _list_leased_keys(client, prefix):
            by_lease.setdefault(lease, []).append(key)
        times: dict[str, float] = {}
        leases = list(by_lease)
        for first in range(0, len(leases), MAX_CONCURRENT_LEASE_REQUESTS):
            batch = leases[first : first + MAX_CONCURRENT_LEASE_REQUESTS]
            remaining = await gatherResults(
                [Deferred.fromCoroutine(_remaining_seconds(client, lease)) for lease in batch]
            )
            for lease, seconds in zip(batch, remaining, strict=True):
                times |= dict.fromkeys(by_lease[lease], now + seconds)
    except RPCError as error:
        raise StorageUnavailable(str(error)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"etcd sent a lease that cannot be read: {error!r}") from None
    return times


async def _list_leased_keys(client: EtcdClient, prefix: str) -> list[tuple[str, str]]:
    start, end = key_bytes(prefix), key_bytes(prefix_end(prefix))
    times: list[tuple[str, str]] = []
    while True:
        request = {"key": _base64(start), "range_end": _base64(end), "limit": PAGE, "keys_only": True}
        response = await client.call_json(RANGE, request)
        items: list[dict[str, Any]] = response.get("kvs") or []
        times += [(key_text(a2b_base64(item["key"])), item["lease"]) for item in items if item.get("lease", "0") != "0"]
        if not response.get("more") or not items:
            return times
        start = a2b_base64(items[-1]["key"]) + b"\0"


async def _remaining_seconds(client: EtcdClient, lease: str) -> float:
    """Return the remaining seconds of a lease, which may have expired."""
    response = await client.call_json(LEASE_TIME_TO_LIVE, {"ID": lease})
    return max(float(response.get("TTL", 0)), 0.0)


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")
