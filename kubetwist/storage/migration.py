"""
The migration of all data from one storage backend to another of any type.

Values are copied in their stored form, so uids, data and encrypted values stay unchanged; revisions are the
target's. Both stores are read in key order. The target has a record of the migration until it is complete: the source,
and the key up to which everything is copied, so that an interrupted migration continues there. At the end, and on
request without copying, all keys are compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import orjson
from attrs import asdict, define, evolve, field, frozen

from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore

from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.storage import (
    Page,
    StoredValue,
    Write,
)
from ..api.times import posix_now, seconds_since_epoch
from ..interfaces import IBumpableStorage, IExpiringStorage, IStorageBackend
from ..schema.protobuf.codec import read_envelope
from ..schema.protobuf.leaves import decode_micro_time
from ..schema.protobuf.messages import (
    MESSAGE,
    NUMBER,
    TEXT,
    VALUE,
    FieldDescriptor,
    MessageDecoder,
)
from ..schema.protobuf.wire import int32
from ._expiry import Timer
from .errors import KeyNotFound, StorageError
from .protobuf import is_protobuf
from .wrappers import unwrap_backend

#: Keys read per request.
PAGE_SIZE: Final = 500
#: Maximum number of writes in one transaction; etcd's defaults allow 128 keys and 1.5 MiB.
MAX_TRANSACTION_WRITES: Final = 100
MAX_TRANSACTION_BYTES: Final = 1 << 20
#: Maximum number of transactions under way.
MAX_CONCURRENT_TRANSACTIONS: Final = 8
#: Maximum number of seconds by which a key's time to live may grow.
MAX_EXPIRATION_DELAY: Final = 120.0
#: Maximum number of differences that an error names.
MAX_NAMED_KEYS: Final = 3

#: The key of the record of an incomplete migration, below the prefix of the target.
RECORD_KEY: Final = "kubetwist.dev/migration"
#: Number of keys after which the record is updated.
RECORD_INTERVAL: Final = 5000

#: The prefix of encrypted values, whose ciphertext depends on the key in the store.
ENCRYPTED_PREFIX: Final = b"k8s:enc:"
#: The prefix of the records by which servers of a store announce their addresses.
MASTER_LEASES_PREFIX: Final = "masterleases/"
#: The Lease of the server whose controllers run.
CONTROLLERS_LEASE: Final = "leases/kube-system/kubetwist-controllers"


class MigrationError(StorageError):
    """The migration is impossible, or failed; the text is one line."""


#: A Lease in protobuf, as far as its holder.
_SPEC: Final = MessageDecoder(
    "LeaseSpec",
    lambda: (
        FieldDescriptor(1, TEXT, "holderIdentity"),
        FieldDescriptor(2, NUMBER, "leaseDurationSeconds", int32),
        FieldDescriptor(4, VALUE, "renewTime", decode_micro_time),
    ),
)
_LEASE: Final = MessageDecoder("Lease", lambda: (FieldDescriptor(2, MESSAGE, "spec", _SPEC),))


def _lease(value: bytes) -> JSONValue:
    if not is_protobuf(value):
        return orjson.loads(value)
    raw = read_envelope(value).raw
    return _LEASE.decode(raw, 0, len(raw), 0)


async def _holder(backend: IStorageBackend, key: str) -> str:
    """Return the holder of a Lease; C{""} if it has none, or if it is unknown because the Lease is encrypted."""
    try:
        spec = _lease((await backend.read(key)).value)["spec"]
        until = seconds_since_epoch(spec["renewTime"]) + spec["leaseDurationSeconds"]
        return str(spec.get("holderIdentity") or "") if posix_now() < until else ""
    except (KeyNotFound, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return ""


@define
class MigrationResult:
    """
    The result of a migration.

    @ivar keys: The number of keys that are equal in both stores at the end.
    @ivar size: The size of their values in bytes.
    @ivar resources: The number of keys by the first part of the key: C{{"pods": 3}}.
    @ivar resumed: The key after which the migration continued; C{""} if it began with the first one.
    @ivar written: The number of keys written.
    @ivar deleted: The number of keys deleted from the target, as the source does not have them.
    @ivar expiring: The number of C{keys} with a time to live.
    """

    keys: int = 0
    size: int = 0
    resources: dict[str, int] = field(factory=dict)
    resumed: str = ""
    written: int = 0
    deleted: int = 0
    expiring: int = 0
    source_revision: int = 0
    target_revision: int = 0


@frozen
class _Record:
    """
    The record of an incomplete migration.

    @ivar source: The description of the source.
    @ivar revision: The revision of the source; the cursor is valid for this revision only.
    @ivar cursor: The last key, without the prefix, up to which all keys without a time to live are copied.
    """

    source: str
    revision: int
    cursor: str = ""

    def encode(self) -> bytes:
        """Return the value of the key L{RECORD_KEY}."""
        return orjson.dumps({"format": 1, **asdict(self)})

    @classmethod
    def decode(cls, value: bytes) -> _Record:
        """
        Return the record in a value.

        @raise MigrationError: It is damaged, or of a newer kubetwist.
        """
        try:
            content = orjson.loads(value)
            if content["format"] != 1:
                raise ValueError
            return cls(str(content["source"]), int(content["revision"]), str(content["cursor"]))
        except (ValueError, TypeError, KeyError) as error:
            raise MigrationError("the record of the migration in the target is damaged: use --replace") from error


async def incomplete_migration(backend: IStorageBackend, prefix: str) -> str:
    """
    Return the source of a migration into a store that is incomplete; C{""} if there is none.

    @param prefix: The prefix of the keys, with its last slash.
    @raise StorageError: The store fails.
    """
    try:
        found = await backend.read(prefix + RECORD_KEY)
    except KeyNotFound:
        return ""
    return _Record.decode(found.value).source


@define
class Migration:
    """
    One migration.

    @ivar source_prefix: The prefix of the keys in the source, with its last slash: C{"/registry/"}.
    @ivar replace: Whether the target may hold data, which is then replaced by the content of the source.
    @ivar report_progress: The progress callback; called now and then with the action and the number of keys.
    @ivar source_name: A description of the source, which an interrupted migration must have, too, to be continued.
    """

    source: IStorageBackend
    target: IStorageBackend
    source_prefix: str
    target_prefix: str
    clock: Timer
    replace: bool = False
    report_progress: Callable[[str, int], object] = lambda action, keys: None
    source_name: str = ""
    result: MigrationResult = field(factory=MigrationResult, init=False)
    _expiration_times: Mapping[str, float] = field(factory=dict, init=False)
    _target_times: Mapping[str, float] = field(factory=dict, init=False)
    _record_revision: int = field(default=0, init=False)
    _batch: list[Write] = field(factory=list, init=False)
    _size: int = field(default=0, init=False)
    _running: list[Deferred[int]] = field(factory=list, init=False)
    _slots: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MAX_CONCURRENT_TRANSACTIONS), init=False)

    async def run(self) -> MigrationResult:
        """
        Copy all keys, then compare all of them.

        @raise MigrationError: The data cannot be moved, or was changed during the move.
        @raise StorageError: The source or the target fails. The target keeps the writes so far; run it again to
            continue.
        """
        await self._check_unserved(self.source, self.source_prefix, "source")
        await self._check_unserved(self.target, self.target_prefix, "target")
        record = await self._begin()
        self._expiration_times = await expiration_times(self.source, self.source_prefix)
        self._target_times = await expiration_times(self.target, self.target_prefix)
        try:
            await self._move(record)
            await self._move_expiring()
            await self._wait_written()
        except BaseException:
            for result in self._running:
                result.addErrback(lambda failure: None)
            raise
        await self._bump_revision()
        await self._verify()
        await self.target.commit([Write(self.target_prefix + RECORD_KEY, None, None)])
        self.result.target_revision = self.target.revision
        return self.result

    async def verify(self) -> MigrationResult:
        """
        Compare all keys, without writing.

        @raise MigrationError: The stores differ, or the source is empty.
        @raise StorageError: The source or the target fails.
        """
        await self._check_source()
        self._expiration_times = await expiration_times(self.source, self.source_prefix)
        self.result.source_revision, self.result.target_revision = self.source.revision, self.target.revision
        await self._verify()
        return self.result

    # --- before

    async def _check_unserved(self, backend: IStorageBackend, prefix: str, role: str) -> None:
        if not backend.shared:
            return
        page = await backend.read_page(f"{prefix}{MASTER_LEASES_PREFIX}", limit=MAX_NAMED_KEYS)
        names = ", ".join(item.key.rpartition("/")[2] for item in page.items)
        if not names:
            names = await _holder(backend, f"{prefix}{CONTROLLERS_LEASE}")
        if names:
            raise MigrationError(
                f"the {role} is in use by {names}: stop these servers and wait until their leases expire"
            )

    async def _check_source(self) -> None:
        page = await self.source.read_page(self.source_prefix, limit=1)
        if not page.items:
            raise MigrationError(f"the source has no keys below {self.source_prefix}")
        source = await incomplete_migration(self.source, self.source_prefix)
        if source:
            raise MigrationError(f"the source is incomplete: a migration from {source} into it was interrupted")

    async def _begin(self) -> _Record:
        """
        Check that the target is empty, or has an interrupted migration of the same source, and record this one.

        @return: The record. Its cursor is empty if all keys must be compared, because the source has changed.
        """
        await self._check_source()
        record = _Record(self.source_name, self.source.revision)
        try:
            found = await self.target.read(self.target_prefix + RECORD_KEY)
        except KeyNotFound:
            page = await self.target.read_page(self.target_prefix, limit=1)
            if page.items and not self.replace:
                raise MigrationError(
                    f"the target is not empty: it has {page.items[0].key}; --replace makes it equal to the source"
                ) from None
            await self._write_record(record)
            return record
        self._record_revision = found.revision
        if not self.replace:
            former = _Record.decode(found.value)
            if former.source != self.source_name:
                raise MigrationError(
                    f"the target has an incomplete migration from {former.source}; --replace makes it equal to the"
                    " source"
                )
            if former.revision == record.revision:
                self.result.resumed = former.cursor
                return former
        await self._write_record(record)
        return record

    async def _write_record(self, record: _Record) -> None:
        write = Write(self.target_prefix + RECORD_KEY, record.encode(), self._record_revision)
        self._record_revision = await self.target.commit([write])

    # --- the migration

    async def _move(self, record: _Record) -> None:
        """Write the keys without a time to live, and delete keys that the source does not have."""
        count = 0
        async for key, source_item, target_item in self._compare_keys(record.cursor):
            count += 1
            if source_item is None:
                if target_item is not None:
                    await self._write(Write(target_item.key, None, target_item.revision))
                    self.result.deleted += 1
                continue
            self._check_value(source_item)
            if source_item.key not in self._expiration_times:
                if target_item is None:
                    await self._write(Write(self.target_prefix + key, source_item.value, 0))
                elif target_item.value != source_item.value or target_item.key in self._target_times:
                    await self._write(Write(target_item.key, source_item.value, target_item.revision))
            if count % PAGE_SIZE == 0:
                self.report_progress("copied", count)
            if count % RECORD_INTERVAL == 0:
                await self._flush()
                await self._wait_written()
                await self._write_record(evolve(record, cursor=key))
        await self._flush()

    def _check_value(self, item: StoredValue) -> None:
        if item.value.startswith(ENCRYPTED_PREFIX) and self.source_prefix != self.target_prefix:
            raise MigrationError(
                f"the value at {quoted(item.key)} is encrypted for that key: --from-etcd-prefix and --to-etcd-prefix "
                "must be the same"
            )

    async def _move_expiring(self) -> None:
        """
        Write the keys with a time to live.

        The keys that expire first come first: where keys share leases, later keys can use theirs.
        """
        for key, when in sorted(self._expiration_times.items(), key=lambda item: item[1]):
            try:
                item = await self.source.read(key)
            except KeyNotFound:
                continue
            remaining = when - self.clock.seconds()
            if remaining > 0:
                name = self.target_prefix + key[len(self.source_prefix) :]
                await self._write(Write(name, item.value, None, max(remaining, 1.0)))
                self.result.expiring += 1
        await self._flush()

    async def _write(self, write: Write) -> None:
        size = len(write.value or b"") + len(write.key)
        # A lease is per transaction, so expiring keys are written one by one.
        if self._batch and (
            len(self._batch) == MAX_TRANSACTION_WRITES
            or self._size + size > MAX_TRANSACTION_BYTES
            or write.ttl is not None
        ):
            await self._flush()
        self._batch.append(write)
        self._size += size
        if write.value is not None:
            self.result.written += 1

    async def _flush(self) -> None:
        """Begin the collected transaction, when there is a slot for it."""
        if not self._batch:
            return
        writes, self._batch, self._size = self._batch, [], 0
        for result in [one for one in self._running if one.called]:
            self._running.remove(result)
            await result
        await self._slots.acquire()

        def release(result: object) -> object:
            self._slots.release()
            return result

        result = self.target.commit(writes)
        result.addBoth(release)
        self._running.append(result)

    async def _wait_written(self) -> None:
        running, self._running = self._running, []
        for result in await DeferredList(running, consumeErrors=True):
            succeeded, failure = result
            if not succeeded:
                failure.raiseException()  # type: ignore[attr-defined]

    async def _bump_revision(self) -> None:
        """Advance the target past the source's revisions, so that clients of the source see no revision twice."""
        self.result.source_revision = self.source.revision
        skipping = IBumpableStorage(unwrap_backend(self.target), None)
        if self.target.revision <= self.source.revision and skipping is not None:
            await skipping.bump_revision(self.source.revision + 1)
        self.result.target_revision = self.target.revision

    # --- after

    async def _verify(self) -> None:
        """Read both stores again and compare all keys, their values and times to live."""
        different: list[str] = []
        result = self.result
        result.keys = result.size = result.expiring = 0
        target_times = await expiration_times(self.target, self.target_prefix)
        count = 0
        async for key, source_item, target_item in self._compare_keys():
            count += 1
            if count % PAGE_SIZE == 0:
                self.report_progress("compared", count)
            when = self._expiration_times.get(self.source_prefix + key)
            if source_item is not None and target_item is not None and source_item.value == target_item.value:
                if not _same_expiration(when, target_times.get(self.target_prefix + key)):
                    different.append(f"{key} (time to live)")
                    continue
                result.keys += 1
                result.size += len(source_item.value)
                result.expiring += when is not None
                resource = key.partition("/")[0]
                result.resources[resource] = result.resources.get(resource, 0) + 1
                continue
            if when is not None and when < self.clock.seconds() + MAX_EXPIRATION_DELAY:
                continue
            different.append(key)
        if different:
            names = ", ".join(different[:MAX_NAMED_KEYS]) + (", ..." if len(different) > MAX_NAMED_KEYS else "")
            raise MigrationError(
                f"{len(different)} keys differ after the migration ({names}): a store was written to during it; stop "
                "the writers and retry with --replace"
            )

    async def _compare_keys(self, after: str = "") -> AsyncIterator[tuple[str, StoredValue | None, StoredValue | None]]:
        """
        Yield all keys of both stores, in order, without their prefixes, except for the record of the migration.

        @param after: The key after which they begin; C{""} for the first one.
        """
        sources = _Items(self.source, self.source_prefix, after)
        targets = _Items(self.target, self.target_prefix, after)
        source_item, target_item = await sources.next(), await targets.next()
        while source_item is not None or target_item is not None:
            source_key = None if source_item is None else source_item.key[len(self.source_prefix) :]
            target_key = None if target_item is None else target_item.key[len(self.target_prefix) :]
            if source_key is not None and (target_key is None or source_key < target_key):
                yield source_key, source_item, None
                source_item = await sources.next()
            elif target_key is not None and (source_key is None or target_key < source_key):
                if target_key != RECORD_KEY:
                    yield target_key, None, target_item
                target_item = await targets.next()
            else:
                assert source_key is not None
                yield source_key, source_item, target_item
                source_item, target_item = await sources.next(), await targets.next()


def _same_expiration(source: float | None, target: float | None) -> bool:
    """Return whether two keys expire at the same time, or both never; leases of etcd have whole seconds or minutes."""
    if source is None or target is None:
        return source is target
    return abs(source - target) <= MAX_EXPIRATION_DELAY


class _Items:
    """Reads the values below a prefix, at one revision, one by one."""

    def __init__(self, backend: IStorageBackend, prefix: str, after: str = "") -> None:
        self._backend = backend
        self._prefix = prefix
        self._start = f"{prefix}{after}\0" if after else ""
        self._page: Page | None = None
        self._left: deque[StoredValue] = deque()

    async def next(self) -> StoredValue | None:
        """Return the next one; L{None} at the end."""
        if not self._left:
            last = self._page
            if last is None:
                page = await self._backend.read_page(self._prefix, start=self._start, limit=PAGE_SIZE)
            elif last.more:
                start = last.items[-1].key + "\0"
                page = await self._backend.read_page(self._prefix, start=start, limit=PAGE_SIZE, revision=last.revision)
            else:
                return None
            self._page = page
            self._left.extend(page.items)
        return self._left.popleft() if self._left else None


async def expiration_times(backend: IStorageBackend, prefix: str) -> Mapping[str, float]:
    """Return when the keys below a prefix expire, by the wall time."""
    innermost = unwrap_backend(backend)
    if not IExpiringStorage.providedBy(innermost):
        return {}
    times: Mapping[str, float] = await innermost.expiration_times(prefix)
    return times
