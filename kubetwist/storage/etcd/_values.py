"""
The values of txaioetcd with what the storage needs beyond them: leases of keys, kinds of events, ends of watches.

A field that a message lacks is L{None}, as in txaioetcd: an empty value is, and so is the value of a deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from attrs import frozen
from txaioetcd import Expired, Header, KeySet, KeyValue, Lease

from twisted.internet.defer import Deferred

#: The first possible key; as the end of a range, it stands for no end.
FIRST_KEY: Final = b"\0"
ALL_KEYS: Final = KeySet(FIRST_KEY, range_end=FIRST_KEY)


def key_bytes(key: str) -> bytes:
    """Return a key in bytes; the inverse of L{key_text}, also for foreign keys."""
    return key.encode("utf-8", "surrogateescape")


def key_text(key: bytes) -> str:
    """Return a key as text."""
    return key.decode("utf-8", "surrogateescape")


def range_end(keys: KeySet) -> bytes:
    """Return the end of a set of keys, exclusive; C{b""} for a single key."""
    if not keys.prefix:
        return keys.range_end or b""
    # The first key behind those with the prefix: bytes of 255 have no successor.
    prefix = cast(bytes, keys.key).rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else FIRST_KEY


class EtcdKeyValue(KeyValue):  # type: ignore[misc] # txaioetcd has no annotations
    """
    A key with its value.

    @ivar lease: The id of its lease; L{None} for none.
    """

    def __init__(
        self,
        key: bytes,
        value: bytes | None,
        version: int | None = None,
        create_revision: int | None = None,
        mod_revision: int = 0,
        lease: int | None = None,
    ) -> None:
        """
        @param key: The key.
        @param value: The value; L{None} if it is empty.
        @param version: The number of writes since the key was created.
        @param create_revision: The revision at which it was created.
        @param mod_revision: The revision of its last write.
        @param lease: The id of its lease; L{None} for none.
        """
        # Set here and not in the base class, since a server makes one for each event.
        self.key = key
        self.value = value
        self.version = version
        self.create_revision = create_revision
        self.mod_revision = mod_revision
        self.lease = lease


class WatchEvent(EtcdKeyValue):
    """
    A change of a key, with its value after it.

    @ivar deleted: Whether the key was deleted.
    @ivar previous: The key before the change, if that was requested and is not compacted.
    """

    deleted = False
    previous: EtcdKeyValue | None = None

    @property
    def created(self) -> bool:
        """Return whether the key did not exist before."""
        return not self.deleted and bool(self.create_revision == self.mod_revision)

    @property
    def new_value(self) -> bytes | None:
        """Return the value, perhaps empty; L{None} after a deletion."""
        return None if self.deleted else self.value or b""


@frozen
class WatchRequest:
    """
    A request to watch keys.

    @ivar keys: The keys.
    @ivar start_revision: The first revision.
    @ivar return_previous: Whether events have the key before the change.
    @ivar filters: The kinds of events that are not sent: C{"NOPUT"}, C{"NODELETE"}.
    """

    keys: KeySet
    start_revision: int
    return_previous: bool = False
    filters: Sequence[str] = ()


class WatchResponse:
    """
    A message of a watch.

    @ivar changes: The events in the order of their revisions.
    @ivar partial: Whether more of these changes follow in the next message.
    @ivar compacted: The oldest revision available, if the watch ended because an older one was requested.
    """

    __slots__ = ("canceled", "changes", "compacted", "partial", "reason")

    def __init__(
        self,
        changes: list[WatchEvent],
        *,
        canceled: bool = False,
        partial: bool = False,
        compacted: int = 0,
        reason: str = "",
    ) -> None:
        self.changes = changes
        self.canceled = canceled
        self.partial = partial
        self.compacted = compacted
        self.reason = reason


@frozen
class LeaseTimeToLive:
    """
    The rest of a lease.

    @ivar remaining: Seconds until it expires; negative if it does not exist.
    @ivar keys: Its keys, if they were requested.
    """

    header: Header
    remaining: int
    keys: Sequence[bytes] = ()


class EtcdLease(Lease):  # type: ignore[misc] # txaioetcd has no annotations
    """A lease whose methods use the client that granted it."""

    def remaining(self) -> Deferred[int]:
        """Return the remaining seconds, of a lease that has not expired."""
        return Deferred.fromCoroutine(self._remaining())

    def keys(self) -> Deferred[list[bytes]]:
        """Return the keys with this lease."""
        return Deferred.fromCoroutine(self._keys())

    def revoke(self) -> Deferred[Header]:
        """Revoke the lease, and delete its keys."""
        return Deferred.fromCoroutine(self._revoke())

    def refresh(self) -> Deferred[Header]:
        """Restart the time to live."""
        return Deferred.fromCoroutine(self._refresh())

    async def _remaining(self) -> int:
        return self._alive(await self._existing().lease_time_to_live(self.lease_id)).remaining

    async def _keys(self) -> list[bytes]:
        return list(self._alive(await self._existing().lease_time_to_live(self.lease_id, keys=True)).keys)

    async def _revoke(self) -> Header:
        header = await self._existing().revoke_lease(self.lease_id)
        self._expired = True
        return header

    async def _refresh(self) -> Header:
        return self._alive(await self._existing().keep_lease_alive(self.lease_id)).header

    def _existing(self) -> Any:
        """Return the client, unless the lease is known to have expired."""
        if self._expired:
            raise Expired()
        return self._client

    def _alive(self, found: LeaseTimeToLive) -> LeaseTimeToLive:
        if found.remaining <= 0:
            self._expired = True
            raise Expired()
        return found
