"""Snapshot, restore and reset the whole state of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson
from attrs import frozen

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from ..api.storage import (
    StoredValue,
    Write,
)
from ..controllers.machinery.queue import WorkQueue
from ..storage.errors import DecryptionUnavailable, KeyNotFound

if TYPE_CHECKING:
    from ..api.jsontypes import JSONValue
    from ..controllers.machinery.manager import ControllerManager
    from ..http.site import KubeSite
    from ..interfaces import IStorageBackend
    from ..server.apis import InstalledAPIs
    from ..server.lifecycle import PreparedAPIServer
    from ._clock import ServerClock

#: Number of keys per transaction, which limits the time in the reactor.
MAX_WRITES_PER_TRANSACTION: Final = 500
#: Number of consecutive reactor iterations without activity after which the server is idle.
QUIET_TURNS: Final = 4
#: Seconds that requests and controllers have to finish.
IDLE_TIMEOUT: Final = 5.0
#: Maximum number of restores while other clients write.
MAX_ATTEMPTS: Final = 10


@frozen(eq=False)
class Snapshot:
    """
    All stored objects.

    @ivar items: Values by key.
    @ivar due: Expiry of keys with a time to live, by the server's clock, in POSIX seconds.
    """

    items: Mapping[str, StoredValue]
    due: Mapping[str, float]

    def __len__(self) -> int:
        return len(self.items)


class ServerState:
    """
    The state of one running server.

    A restore writes the differences, as a client does: caches, indexes, controllers and routes follow from these
    writes, and revisions keep growing.
    """

    _log = Logger()

    def __init__(self, server: PreparedAPIServer, clock: ServerClock) -> None:
        """
        @param server: A ready server.
        """
        self._server = server
        self._clock = clock
        self._prefix = server.config.options["etcd-prefix"].rstrip("/") + "/"
        self._initial_snapshot: Snapshot | None = None
        self._reset_snapshot: Snapshot | None = None

    @property
    def _apis(self) -> InstalledAPIs:
        apis = self._server.apis
        assert apis is not None, "the server has APIs"
        return apis

    @property
    def _backend(self) -> IStorageBackend:
        return self._server.config.backend

    async def snapshot_initial(self) -> None:
        """Save the state after the start; save none if it cannot be decrypted yet."""
        with suppress(DecryptionUnavailable):
            self._initial_snapshot = await self.snapshot()

    async def snapshot(self) -> Snapshot:
        """Return the current state."""
        page = await self._backend.read_page(self._prefix)
        due = getattr(self._backend, "list_expirations", None)
        return Snapshot({item.key: item for item in page.items}, {} if due is None else due())

    async def restore(self, snapshot: Snapshot) -> int:
        """
        Restore a state.

        @return: The number of written keys.
        """
        written = 0
        for _ in range(MAX_ATTEMPTS):
            current = await self.snapshot()
            deletions, puts = _difference(current, snapshot, self._clock.seconds())
            if not deletions and not puts:
                break
            try:
                for writes in (deletions, puts):
                    for begin in range(0, len(writes), MAX_WRITES_PER_TRANSACTION):
                        await self._backend.commit(writes[begin : begin + MAX_WRITES_PER_TRANSACTION])
            except KeyNotFound:
                continue  # The key was deleted in between.
            written += len(deletions) + len(puts)
            break
        return written

    async def restore_until_stable(self, snapshot: Snapshot) -> None:
        """Restore a state, and let controllers react; undo their changes."""
        for _ in range(MAX_ATTEMPTS):
            written = await self.restore(snapshot)
            await self.settle()
            if not written:
                return
        self._log.warn(
            "restored state is still changing: attempts={attempts}; a client or controller keeps writing",
            attempts=MAX_ATTEMPTS,
        )

    async def compact(self) -> int:
        """Compact the storage up to the current revision."""
        revision: int = self._backend.revision
        await self._backend.compact(revision)
        apis = self._apis
        for store in apis.registry.stores:
            store.cache.progressed(store.cache.revision)
        custom = apis.custom
        for served in custom.all_served() if custom is not None else ():
            if served.ready:
                served.cache.progressed(served.cache.revision)
        return revision

    async def set_baseline(self) -> None:
        """Wait until controllers are idle, and make this state the one that L{reset} restores, without events."""
        await self.settle()
        settled = await self.snapshot()
        events = f"{self._prefix}events/"
        items = {key: item for key, item in settled.items.items() if not key.startswith(events)}
        self._reset_snapshot = Snapshot(items, settled.due)

    async def reset(self) -> None:
        """Restore the state after the start or after L{set_baseline}, and end all watches."""
        site = self._server.site
        site.end_long_running()
        await self._requests_finished(site)
        if self._reset_snapshot is None:
            # The first changes by controllers are part of the state after the start.
            assert self._initial_snapshot is not None, "there is a state of the start"
            await self.restore(self._initial_snapshot)
            await self.set_baseline()
            assert self._reset_snapshot is not None, "set_baseline sets it"
        await self.restore_until_stable(self._reset_snapshot)
        await self.compact()

    async def _requests_finished(self, site: KubeSite) -> None:
        if not site.open_requests:
            return
        finished = site.requests_finished()
        timer = self._clock.reactor.callLater(IDLE_TIMEOUT, finished.cancel)
        with suppress(CancelledError):
            await finished
        if timer.active():
            timer.cancel()

    async def _controllers_started(self) -> None:
        running = _running(self._apis)
        if running is not None and not running.started.called:
            started: Deferred[None] = Deferred()
            running.started.chainDeferred(started)
            await started

    async def settle(self, patience: float = IDLE_TIMEOUT) -> bool:
        """
        Wait until controllers run and are idle.

        @return: Whether they are idle before the timeout.
        """
        await self._controllers_started()
        reactor = self._clock.reactor
        deadline = reactor.seconds() + patience
        quiet = 0
        while quiet < QUIET_TURNS:
            quiet = quiet + 1 if self._idle() else 0
            if not quiet and reactor.seconds() > deadline:
                return False
            turn: Deferred[None] = Deferred()
            reactor.callLater(0, turn.callback, None)
            await turn
        return True

    def _idle(self) -> bool:
        apis = self._apis
        if not apis.idle:
            return False
        running = _running(apis)
        return running is None or all(queue.idle for queue in _queues(running))


def _running(apis: InstalledAPIs) -> ControllerManager | None:
    """Return the controllers that run in this server, not in another one of the same storage."""
    return None if apis.controllers is None else apis.controllers.running


def _queues(running: ControllerManager) -> Iterable[WorkQueue[Any]]:
    owners = [*running.controllers.values(), *running.context._recorders.values()]
    for owner in owners:
        for value in vars(owner).values():
            if isinstance(value, WorkQueue):
                yield value


def _difference(current: Snapshot, desired: Snapshot, seconds: float) -> tuple[Sequence[Write], Sequence[Write]]:
    """Return the keys to delete, then those to write."""
    deletions, puts = [], []
    for key, item in current.items.items():
        target = desired.items.get(key)
        if target is None or (target.value != item.value and _uid(target.value) != _uid(item.value)):
            deletions.append(key)
    deleted = set(deletions)
    for key, item in desired.items.items():
        existing = None if key in deleted else current.items.get(key)
        if existing is None or existing.value != item.value:
            due = desired.due.get(key)
            puts.append(Write(key, item.value, None, None if due is None else max(due - seconds, 0.001)))
    # Delete objects before their definitions and namespaces.
    deletions.sort(key=lambda key: ("/customresourcedefinitions/" in key, "/namespaces/" in key, key))
    return [Write(key, None, None) for key in deletions], puts


def _uid(value: bytes) -> JSONValue:
    try:
        return orjson.loads(value)["metadata"]["uid"]
    except (ValueError, KeyError, TypeError):
        return value
