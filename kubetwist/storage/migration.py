"""
Moving everything from one storage backend to another, whatever they are.

Values are moved as they are stored, byte by byte, so uids, data and what is encrypted stay the same; revisions are the
target's own. Both are read in key order and compared on the way, so that a move that was cut off goes on where it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import orjson
from attrs import define, field

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
from ..schema.protobuf.leaves import micro_time
from ..schema.protobuf.messages import (
    MESSAGE,
    NUMBER,
    TEXT,
    VALUE,
    Message,
    Step,
)
from ..schema.protobuf.wire import int32
from ._expiry import Timer
from .errors import KeyNotFound, StorageError
from .protobuf import is_protobuf
from .wrappers import unwrap_backend

#: Keys read at a time.
PAGE: Final = 500
#: The most writes in one transaction; etcd's defaults allow 128 keys and 1.5 MiB.
WRITES: Final = 100
BYTES: Final = 1 << 20
#: Transactions under way at a time.
MAX_CONCURRENT_TRANSACTIONS: Final = 8
#: Seconds that a key may outlive its time.
LATE: Final = 120.0
#: Differences that are named.
NAMED: Final = 3

#: How values begin that are encrypted, for the key that they are at.
ENCRYPTED: Final = b"k8s:enc:"
#: Below it, those who serve a store say that they do, if clients can reach them from elsewhere.
SERVED: Final = "masterleases/"
#: The Lease of the one of them whose controllers run.
CONTROLLERS: Final = "leases/kube-system/kubetwist-controllers"


class MigrationError(StorageError):
    """It cannot be moved, or was not; the text is one line."""


#: A Lease in protobuf, as far as it says who holds it.
_SPEC: Final = Message(
    "LeaseSpec",
    lambda: (
        Step(1, TEXT, "holderIdentity"),
        Step(2, NUMBER, "leaseDurationSeconds", int32),
        Step(4, VALUE, "renewTime", micro_time),
    ),
)
_LEASE: Final = Message("Lease", lambda: (Step(2, MESSAGE, "spec", _SPEC),))


def _lease(value: bytes) -> JSONValue:
    if not is_protobuf(value):
        return orjson.loads(value)
    raw = read_envelope(value).raw
    return _LEASE.value(raw, 0, len(raw), 0)


async def _holder(backend: IStorageBackend, key: str) -> str:
    """Return the holder of a Lease; C{""} if it has none, or if it is unknown because the Lease is encrypted."""
    try:
        spec = _lease((await backend.read(key)).value)["spec"]
        until = seconds_since_epoch(spec["renewTime"]) + spec["leaseDurationSeconds"]
        return str(spec.get("holderIdentity") or "") if posix_now() < until else ""
    except (KeyNotFound, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return ""


@define
class Moved:
    """
    The result of a migration.

    @ivar keys: How many are the same in both at the end.
    @ivar written: How many had to be written.
    @ivar deleted: How many of the target were not in the source.
    @ivar expiring: How many of C{keys} have a time to live.
    """

    keys: int = 0
    written: int = 0
    deleted: int = 0
    expiring: int = 0
    source_revision: int = 0
    target_revision: int = 0


@define
class Migration:
    """
    One move.

    @ivar source_prefix: Of the keys in the source, with its last slash: C{"/registry/"}.
    @ivar replace: Whether the target may hold data, which is then replaced by the content of the source.
    @ivar told: The progress callback; called now and then with the number of keys read.
    """

    source: IStorageBackend
    target: IStorageBackend
    source_prefix: str
    target_prefix: str
    clock: Timer
    replace: bool = False
    told: Callable[[int], object] = lambda keys: None
    moved: Moved = field(factory=Moved, init=False)
    _due: Mapping[str, float] = field(factory=dict, init=False)
    _batch: list[Write] = field(factory=list, init=False)
    _size: int = field(default=0, init=False)
    _running: list[Deferred[int]] = field(factory=list, init=False)
    _slots: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MAX_CONCURRENT_TRANSACTIONS), init=False)

    async def run(self) -> Moved:
        """
        Move everything, then compare all of it.

        @raise MigrationError: The data cannot be moved, or was changed during the move.
        @raise StorageError: The source or the target fails. The target keeps the writes so far; retry with C{replace}.
        """
        await self._check_unserved(self.source, self.source_prefix, "source")
        await self._check_unserved(self.target, self.target_prefix, "target")
        await self._check_empty()
        self._due = await expiries(self.source, self.source_prefix)
        try:
            await self._move()
            await self._move_expiring()
            await self._written()
        except BaseException:
            for answer in self._running:
                answer.addErrback(lambda failure: None)
            raise
        await self._forward()
        await self._verify()
        return self.moved

    # --- before

    async def _check_unserved(self, backend: IStorageBackend, prefix: str, which: str) -> None:
        if not backend.shared:
            return
        page = await backend.read_page(f"{prefix}{SERVED}", limit=NAMED)
        names = ", ".join(item.key.rpartition("/")[2] for item in page.items)
        if not names:
            names = await _holder(backend, f"{prefix}{CONTROLLERS}")
        if names:
            raise MigrationError(
                f"the {which} is served at present, by {names}: stop what serves it, and wait until its leases are over"
            )

    async def _check_empty(self) -> None:
        page = await self.source.read_page(self.source_prefix, limit=1)
        if not page.items:
            raise MigrationError(f"there is nothing below {self.source_prefix} in the source")
        page = await self.target.read_page(self.target_prefix, limit=1)
        if page.items and not self.replace:
            raise MigrationError(
                f"the target is not empty: there is {page.items[0].key}; with --replace it becomes what the source is"
            )

    # --- the move

    async def _move(self) -> None:
        """Write all that has no time to live, and delete what the source does not have."""
        seen = 0
        async for key, ours, theirs in self._both():
            if ours is None:
                if theirs is not None:
                    await self._write(Write(theirs.key, None, theirs.revision))
                    self.moved.deleted += 1
                continue
            self._check_value(ours)
            if ours.key in self._due:
                continue
            if theirs is None:
                await self._write(Write(self.target_prefix + key, ours.value, 0))
            elif theirs.value != ours.value:
                await self._write(Write(theirs.key, ours.value, theirs.revision))
            seen += 1
            if seen % PAGE == 0:
                self.told(seen)
        await self._flush()

    def _check_value(self, item: StoredValue) -> None:
        if item.value.startswith(ENCRYPTED) and self.source_prefix != self.target_prefix:
            raise MigrationError(
                f"the value at {quoted(item.key)} is encrypted for that key: --from-etcd-prefix and --to-etcd-prefix "
                "must be the same"
            )

    async def _move_expiring(self) -> None:
        """
        Write what has a time to live.

        Those that end first come first: where keys share leases those after them can.
        """
        for key, when in sorted(self._due.items(), key=lambda item: item[1]):
            try:
                item = await self.source.read(key)
            except KeyNotFound:
                continue
            left = when - self.clock.seconds()
            if left > 0:
                name = self.target_prefix + key[len(self.source_prefix) :]
                await self._write(Write(name, item.value, None, max(left, 1.0)))
                self.moved.expiring += 1
        await self._flush()

    async def _write(self, write: Write) -> None:
        size = len(write.value or b"") + len(write.key)
        # One lease is one transaction's: what expires is written one by one.
        if self._batch and (len(self._batch) == WRITES or self._size + size > BYTES or write.ttl is not None):
            await self._flush()
        self._batch.append(write)
        self._size += size
        if write.value is not None:
            self.moved.written += 1

    async def _flush(self) -> None:
        """Begin the transaction that was collected, when there is a slot for it."""
        if not self._batch:
            return
        writes, self._batch, self._size = self._batch, [], 0
        for answer in [one for one in self._running if one.called]:
            self._running.remove(answer)
            await answer
        await self._slots.acquire()

        def over(result: object) -> object:
            self._slots.release()
            return result

        answer = self.target.commit(writes)
        answer.addBoth(over)
        self._running.append(answer)

    async def _written(self) -> None:
        running, self._running = self._running, []
        for result in await DeferredList(running, consumeErrors=True):
            succeeded, failure = result
            if not succeeded:
                failure.raiseException()  # type: ignore[attr-defined]

    async def _forward(self) -> None:
        """Have no client that comes from the source meet a revision again that it has met there."""
        self.moved.source_revision = self.source.revision
        skipping = IBumpableStorage(unwrap_backend(self.target), None)
        if self.target.revision <= self.source.revision and skipping is not None:
            await skipping.forward(self.source.revision + 1)
        self.moved.target_revision = self.target.revision

    # --- after

    async def _verify(self) -> None:
        """Read both stores again and compare all keys."""
        wrong: list[str] = []
        self.moved.keys = 0
        async for key, ours, theirs in self._both():
            if ours is not None and theirs is not None and ours.value == theirs.value:
                self.moved.keys += 1
                continue
            when = self._due.get(self.source_prefix + key)
            if when is not None and when < self.clock.seconds() + LATE:
                continue
            wrong.append(key)
        if wrong:
            names = ", ".join(wrong[:NAMED]) + (", ..." if len(wrong) > NAMED else "")
            raise MigrationError(
                f"{len(wrong)} keys differ after the move ({names}): something has written meanwhile; stop it, and "
                "call again with --replace"
            )

    async def _both(self) -> AsyncIterator[tuple[str, StoredValue | None, StoredValue | None]]:
        """All keys of both, in order, without their prefixes."""
        sources = _Items(self.source, self.source_prefix)
        targets = _Items(self.target, self.target_prefix)
        ours, theirs = await sources.next(), await targets.next()
        while ours is not None or theirs is not None:
            our_key = None if ours is None else ours.key[len(self.source_prefix) :]
            their_key = None if theirs is None else theirs.key[len(self.target_prefix) :]
            if our_key is not None and (their_key is None or our_key < their_key):
                yield our_key, ours, None
                ours = await sources.next()
            elif their_key is not None and (our_key is None or their_key < our_key):
                yield their_key, None, theirs
                theirs = await targets.next()
            else:
                assert our_key is not None
                yield our_key, ours, theirs
                ours, theirs = await sources.next(), await targets.next()


class _Items:
    """Everything below a prefix, as of one moment, one by one."""

    def __init__(self, backend: IStorageBackend, prefix: str) -> None:
        self._backend = backend
        self._prefix = prefix
        self._page: Page | None = None
        self._left: deque[StoredValue] = deque()

    async def next(self) -> StoredValue | None:
        """The next one; L{None} when there is no more."""
        if not self._left:
            last = self._page
            if last is None:
                page = await self._backend.read_page(self._prefix, limit=PAGE)
            elif last.more:
                start = last.items[-1].key + "\0"
                page = await self._backend.read_page(self._prefix, start=start, limit=PAGE, revision=last.revision)
            else:
                return None
            self._page = page
            self._left.extend(page.items)
        return self._left.popleft() if self._left else None


async def expiries(backend: IStorageBackend, prefix: str) -> Mapping[str, float]:
    """When keys below a prefix delete themselves, by the wall time."""
    found = unwrap_backend(backend)
    if not IExpiringStorage.providedBy(found):
        return {}
    times: Mapping[str, float] = await found.expiries(prefix)
    return times
