"""
Node ports of several servers that share a storage, which are recorded in a C{RangeAllocation} object.

The key and format are those of kube-apiserver, so that both can share a storage. This server writes the object in the
transaction of the service, so that no port leaks if the server stops; ports that kube-apiserver leaked are freed by a
periodic repair.

@see: kubernetes, C{pkg/registry/core/service/portallocator} and C{allocator/storage}.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ....api.errors import APIStatusError
from ....api.jsontypes import JSONValue
from ....api.record import (
    Draft,
    Record,
)
from ....api.storage import Write
from ....interfaces import IStorageBackend
from ....schema.protobuf.codec import read_envelope
from ....schema.protobuf.encoding import envelope
from ....schema.protobuf.leaves import decode_bytes
from ....schema.protobuf.messages import TEXT, VALUE, FieldDescriptor, MessageDecoder
from ....schema.protobuf.wire import UNEXPECTED_EOF, WireError, encode_length_delimited
from ....storage.cache.watchcache import WatchCache
from ....storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageError, UnknownFormatError
from ....storage.protobuf import is_protobuf
from ...generic.allocation import AllocationConflict
from ...generic.cacheerrors import translate_cache_error

if TYPE_CHECKING:
    from .portallocator import NodePortAllocator

#: The prefix of the keys of RangeAllocations below the prefix of the storage, and the name of that of node ports.
DIRECTORY: Final = "ranges/"
NAME: Final = "servicenodeports"
#: Interval of repairs in seconds, and the number of repairs without a service after which a port is freed.
REPAIR_INTERVAL: Final = 180.0
NUM_REPAIRS_BEFORE_LEAK_CLEANUP: Final = 3
#: Maximum number of attempts of a write after conflicts with other servers.
ATTEMPTS: Final = 100
#: Maximum size, in bytes, of the bitmap of a range.
_MAX_BYTES: Final = 65536 // 8
#: The protobuf message of a RangeAllocation, which is not in the type definitions, and its empty metadata.
_NO_METADATA: Final = bytes.fromhex("0a0012001a0022002a00320038004200")
_RANGE: Final = MessageDecoder(
    "RangeAllocation", lambda: (FieldDescriptor(2, TEXT, "range"), FieldDescriptor(3, VALUE, "data", decode_bytes))
)


def encode_bitmap(ports: Iterable[int], low: int) -> int:
    """Return the bitmap of ports as an integer, whose lowest bit is the port C{low}."""
    bits = 0
    for port in ports:
        bits |= 1 << (port - low)
    return bits


def decode_bitmap(bits: int, low: int) -> set[int]:
    """Return the ports whose bits are set."""
    ports = set()
    while bits:
        lowest = bits & -bits
        ports.add(low + lowest.bit_length() - 1)
        bits ^= lowest
    return ports


def encode_range(low: int, high: int, ports: Iterable[int], *, protobuf: bool = False) -> bytes:
    """
    Return the stored form of the object.

    @param low: The first port of the range.
    @param high: The last port of the range.
    @param ports: The allocated ports.
    @param protobuf: Whether the object is encoded as protobuf instead of JSON.
    """
    bits = encode_bitmap((port for port in ports if low <= port <= high), low)
    octets_of_bits = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
    if protobuf:
        message = (
            encode_length_delimited(1, _NO_METADATA)
            + encode_length_delimited(2, f"{low}-{high}".encode())
            + encode_length_delimited(3, octets_of_bits)
        )
        return envelope("v1", "RangeAllocation", message)
    data = b64encode(octets_of_bits).decode()
    obj = {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": f"{low}-{high}", "data": data}
    return orjson.dumps(obj) + b"\n"


def decode_range(value: bytes) -> tuple[int, int]:
    """
    Decode a stored object.

    @return: The bitmap, and the port of its lowest bit.
    @raise UnknownFormatError: The value is not a RangeAllocation.
    """
    try:
        obj = _read(value)
        low = int(obj["range"].partition("-")[0]) if obj["kind"] == "RangeAllocation" else -1
        data = b64decode(obj.get("data") or "", validate=True)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UnknownFormatError("it is no range of ports") from None
    if not 0 <= low < 65536 or len(data) > _MAX_BYTES:
        raise UnknownFormatError("it is no range of ports")
    return int.from_bytes(data, "big"), low


def _read(value: bytes) -> JSONValue:
    """Parse a stored object; of protobuf, only the used fields."""
    if not is_protobuf(value):
        return orjson.loads(value)
    message = read_envelope(value)
    obj: dict[str, Any] = {"kind": message.kind}
    try:
        _RANGE.read(message.raw, 0, len(message.raw), obj, 0)
    except IndexError:
        raise WireError(UNEXPECTED_EOF) from None
    return obj


def _record(key: str, value: bytes, revision: int) -> Record:
    # The cache contains JSON that begins with metadata. Other RangeAllocations are ignored.
    if key != NAME:
        value = b""
    else:
        decode_range(value)
        if is_protobuf(value):
            value = orjson.dumps(_read(value))
    return Record.from_draft(key, revision, Draft(b'{"metadata":{"value":%b}}' % orjson.dumps(value.decode()), {}, {}))


class RecordedPorts:
    """
    Reader of the object with the allocated node ports.

    @ivar key: The key of the object in the storage.
    @ivar cache: The cache of the object.
    """

    def __init__(self, backend: IStorageBackend, prefix: str, low: int, clock: IReactorTime) -> None:
        """
        @param backend: The storage that the servers share.
        @param prefix: The prefix of all keys in the storage.
        @param low: The first port of the range of this server.
        @param clock: The reactor, or a clock in tests.
        """
        self.key = f"{prefix}{DIRECTORY}{NAME}"
        self.cache = WatchCache(backend, f"{prefix}{DIRECTORY}", _record, clock, translate=translate_cache_error)
        self._low = low
        #: The last decoded revision, its bitmap, and the port of the lowest bit.
        self._known: tuple[int, int, int] = (0, 0, low)

    def state(self) -> tuple[int, int, int]:
        """Return the revision of the object, its bitmap, and the port of the lowest bit; revision 0 without object."""
        record = self.cache.get(NAME)
        if record is None:
            return 0, 0, self._low
        if record.revision != self._known[0]:
            bits, low = decode_range(orjson.loads(record.item)["metadata"]["value"].encode())
            self._known = record.revision, bits, low
        return self._known

    def is_allocated(self, port: int) -> bool:
        """Return whether the object records a port as allocated."""
        _, bits, low = self.state()
        return port >= low and bool(bits >> (port - low) & 1)


class NodePortRegistry:
    """Node ports shared by several servers in a C{RangeAllocation} object, with repair (Go: C{RangeRegistry})."""

    _log = Logger()

    def __init__(
        self,
        backend: IStorageBackend,
        recorded: RecordedPorts,
        allocator: NodePortAllocator,
        clock: IReactorTime,
        *,
        protobuf: bool = False,
    ) -> None:
        """
        @param backend: The storage that the servers share.
        @param recorded: The reader of the object.
        @param allocator: The allocator of this server, which uses C{recorded} as well.
        @param clock: The reactor, or a clock in tests.
        @param protobuf: Whether the object is written as protobuf instead of JSON.
        """
        self.key = recorded.key
        self.cache = recorded.cache
        self._backend = backend
        self._recorded = recorded
        self._allocator = allocator
        self._clock = clock
        self._protobuf = protobuf
        self._lock = DeferredLock()
        #: Number of repairs that found a port without a service, by port.
        self._leaks: dict[int, int] = {}
        self._call: IDelayedCall | None = None
        self._stopped = False

    # --- writing

    async def commit(
        self, allocated: Sequence[int], freed: Sequence[int], write: Callable[[Sequence[Write]], Awaitable[int]]
    ) -> int:
        """
        Write a service together with the object of allocated ports.

        @param allocated: The ports that the write allocates.
        @param freed: The ports that the write releases.
        @param write: Commits the service together with the given writes.
        @return: The revision of the write.
        @raise AllocationConflict: Another server allocated one of the ports.
        """
        await self._lock.acquire()
        try:
            for _ in range(ATTEMPTS):
                revision, bits, low = self._recorded.state()
                before = decode_bitmap(bits, low)
                if not revision:
                    before |= self._allocator.ports_in_use()
                elif before.intersection(allocated):
                    raise AllocationConflict(self.key, revision)
                try:
                    return await write([self._change(revision, (before - set(freed)).union(allocated))])
                except (RevisionConflict, KeyExists, KeyNotFound) as error:
                    if error.key != self.key:
                        raise
                    await self.cache.wait_until_fresh_or_timeout(error.revision)
        finally:
            self._lock.release()
        raise APIStatusError.internal("the node ports in use are changed by others all the time")

    def _change(self, revision: int, ports: set[int]) -> Write:
        """Return the write that sets the ports of the object."""
        low, high = self._allocator.low, self._allocator.high
        return Write(self.key, encode_range(low, high, ports, protobuf=self._protobuf), revision)

    # --- repair

    async def start(self) -> None:
        """
        Fill the cache.

        @raise StorageError: The storage cannot be read.
        """
        await self.cache.start()

    def stop(self) -> None:
        """Stop repairs and the cache."""
        self._stopped = True
        if self._call is not None and self._call.active():
            self._call.cancel()
        self.cache.stop()

    async def repair(self, services: WatchCache) -> None:
        """
        Set the recorded ports to those of services, now and every C{REPAIR_INTERVAL}; free leaked ports.

        @param services: The cache of services, with which the allocator is synchronized.
        """
        try:
            await self._repair(services)
        except (StorageError, APIStatusError) as error:
            self._log.warn("node port repair failed: error={error}", error=error)
        if not self._stopped:
            self._call = self._clock.callLater(REPAIR_INTERVAL, self._repair_again, services)

    def _repair_again(self, services: WatchCache) -> None:
        Deferred.fromCoroutine(self.repair(services)).addErrback(
            lambda failure: self._log.failure("node port repair failed: unexpected error", failure)
        )

    async def _repair(self, services: WatchCache) -> None:
        await self._lock.acquire()
        try:
            revision, bits, low = self._recorded.state()
            await services.wait_until_fresh(revision)
            before, allocated = decode_bitmap(bits, low), self._allocator.ports_in_use()
            lost = before - allocated - self._allocator.pending()
            self._leaks = {port: self._leaks.get(port, 0) + 1 for port in lost}
            freed = {port for port, rounds in self._leaks.items() if rounds >= NUM_REPAIRS_BEFORE_LEAK_CLEANUP}
            ports = (before | allocated) - freed
            if revision and ports == before and low == self._allocator.low:
                return
            try:
                await self._backend.commit([self._change(revision, ports)])
            except (RevisionConflict, KeyExists, KeyNotFound) as error:
                # Another server changed the object: it is repaired next time.
                await self.cache.wait_until_fresh_or_timeout(error.revision)
        finally:
            self._lock.release()
