"""
The storage process: serves one storage backend to front processes.

One watch of all keys feeds all fronts. An event is encoded once for all fronts that did not write it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IDelayedCall, IListeningPort, IReactorTime, IReactorUNIX
from twisted.internet.protocol import Factory
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.storage import StorageEvent
from ...interfaces import (
    ISharedStorage,
    IStorageBackend,
    IStorageObserver,
    IStorageWatch,
)
from ...tracing.spans import Tracer
from ..errors import StorageError
from ..wrappers import unwrap_backend
from ._connection import Origin, StorageConnection
from ._frames import MAX_FRAME_SIZE, PART_SIZE, encode_frame
from ._messages import EVENTS, WATCHED_PREFIX, Welcome, encode_event, encode_position, encode_reference
from ._revisionpage import RevisionPage
from ._sockets import listen

#: Maximum number of fronts.
MAX_CONNECTIONS: Final = 256
#: Seconds until a lost watch of the backend is tried again.
RETRY_INTERVAL: Final = 0.25


@implementer(IStorageObserver)
class StorageServer:
    """
    Serves a storage backend, which must be open, to front processes.

    @ivar storage: The backend.
    @ivar tracer: Records spans of transactions; L{None} without tracing.
    @ivar reactor: The reactor.
    @ivar revision: The revision up to which changes were passed to fronts.
    @ivar page: The newest revision, for fronts; L{None} if other servers write to the storage, too.
    """

    _log = Logger()

    def __init__(self, storage: IStorageBackend, reactor: IReactorTime, tracer: Tracer | None = None) -> None:
        """
        @param reactor: Schedules the sending of data at the end of an iteration.
        @param tracer: Records spans of transactions; L{None} without tracing.
        """
        self.storage = storage
        self.tracer = tracer
        self.revision = 0
        self._instance = int.from_bytes(os.urandom(8))
        self.page: RevisionPage | None = None
        #: The connection whose front compacts.
        self._compaction_claimant: object = None
        self.reactor = reactor
        self._connections: set[StorageConnection] = set()
        self._welcomed: set[StorageConnection] = set()
        self._unsent: list[StorageConnection] = []
        self._events: list[StorageEvent] = []
        self._watch: IStorageWatch | None = None
        self._watches = 0
        self._retry: IDelayedCall | None = None
        self._running = False
        self._port: IListeningPort | None = None

    # --- start and stop

    async def start(self) -> None:
        """
        Follow the backend, and accept fronts.

        @raise StorageError: The backend cannot be watched.
        """
        self._running = True
        if not ISharedStorage.providedBy(unwrap_backend(self.storage)):
            self.page = RevisionPage()
        await self._follow()

    def listen(self, reactor: IReactorUNIX, directory: str) -> None:
        """
        Listen on a socket in C{directory}.

        @raise StorageUnavailable: The directory cannot be used.
        """
        self._port = listen(reactor, directory, self.factory())

    def factory(self) -> Factory:
        """Return the factory of connections to fronts."""
        return StorageConnectionFactory(self)

    async def stop(self) -> None:
        """Send what is written, and close all connections. The backend stays open."""
        self._running = False
        port, self._port = self._port, None
        if port is not None:
            stopped = port.stopListening()
            if stopped is not None:
                await stopped
        if self._retry is not None and self._retry.active():
            self._retry.cancel()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        self._flush()
        for connection in list(self._connections):
            connection.close()
        page, self.page = self.page, None
        if page is not None:
            page.close()

    async def _follow(self) -> None:
        self._watches += 1
        current = self._watches
        self._events = []
        self._set_revision(self.storage.revision)
        for connection in self._welcomed:
            connection.lose_events()
        watch = await self.storage.watch(WATCHED_PREFIX, self.revision, self)
        if not self._running or current != self._watches:
            # It has ended before it was established, or this server was stopped.
            watch.stop()
            return
        self._watch = watch

    def _follow_later(self) -> None:
        if self._running:
            self._retry = self.reactor.callLater(RETRY_INTERVAL, self._follow_again)

    def _follow_again(self) -> None:
        def failed(failure: Failure) -> None:
            if failure.check(StorageError):
                self._log.warn("the storage cannot be watched, retrying: {reason}", reason=failure.value)
            else:
                self._log.failure("the storage cannot be watched", failure)
            self._follow_later()

        Deferred.fromCoroutine(self._follow()).addErrback(failed)

    # --- IStorageObserver

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}."""
        self._events += events

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}: send the events, and the revision."""
        events, self._events = self._events, []
        self._set_revision(revision)
        start = size = 0
        for index, event in enumerate(events):
            if size > PART_SIZE and event.revision != events[index - 1].revision:
                # All events of a revision are in one frame.
                self._send_events(events[start:index], events[index - 1].revision)
                start, size = index, 0
            if event.value is not None:
                size += len(event.value)
        self._send_events(events[start:], revision)

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}: follow the backend again; fronts may have missed events."""
        self._log.warn("lost the watch of the storage: {reason}", reason=reason)
        self._watches += 1
        self._watch = None
        self._follow_later()

    def _set_revision(self, revision: int) -> None:
        self.revision = revision
        if self.page is not None:
            self.page.write(revision)

    def _send_events(self, events: Sequence[StorageEvent], revision: int) -> None:
        if not self._welcomed:
            return
        written: dict[StorageConnection, list[tuple[int, Origin]]] = {}
        for index, event in enumerate(events):
            origin = event.attachment
            if type(origin) is Origin:
                written.setdefault(origin.connection, []).append((index, origin))
        head = encode_position(revision, self.storage.compacted)
        encoded: list[bytes] = [b""] * len(events)
        shared: bytes | None = None
        for connection in self._welcomed:
            own_events = written.get(connection)
            if own_events is None:
                if shared is None:
                    shared = _frame(head, _encode_missing(encoded, events, frozenset()))
                frame = shared
            else:
                references = {index for index, _ in own_events}
                pieces = list(_encode_missing(encoded, events, references))
                for index, origin in own_events:
                    pieces[index] = encode_reference(events[index], origin.number, origin.index)
                frame = _frame(head, pieces)
            if frame:
                connection.send_events(frame)
            else:
                connection.lose_events()

    # --- for connections

    def connected(self, connection: StorageConnection) -> bool:
        """Add a connection; return false if there are too many."""
        if not self._running or len(self._connections) >= MAX_CONNECTIONS:
            return False
        self._connections.add(connection)
        return True

    def welcome(self, connection: StorageConnection) -> Welcome:
        """Send changes to a connection from now on; return the position at which they begin."""
        self._welcomed.add(connection)
        return Welcome(self._instance, self.page is not None, self.revision, self.storage.compacted)

    def disconnected(self, connection: StorageConnection) -> None:
        """Remove a connection."""
        self._connections.discard(connection)
        self._welcomed.discard(connection)
        if self._compaction_claimant is connection:
            self._compaction_claimant = None

    def claim_compaction(self, claimant: object) -> bool:
        """Return whether a connection is the one whose front compacts: the first one that asks, until it ends."""
        if self._compaction_claimant is None:
            self._compaction_claimant = claimant
        return self._compaction_claimant is claimant

    def flush_soon(self, connection: StorageConnection) -> None:
        """Send the data of a connection at the end of this iteration."""
        if not self._unsent:
            self.reactor.callLater(0, self._flush)
        self._unsent.append(connection)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        for connection in unsent:
            connection.flush()


def _encode_missing(
    encoded: list[bytes], events: Sequence[StorageEvent], excepted: frozenset[int] | set[int]
) -> list[bytes]:
    """
    Encode the events that are not encoded yet.

    @param encoded: The encoded events, empty where they are not encoded.
    @param events: The events.
    @param excepted: The indices of events that are not needed.
    @return: C{encoded}.
    """
    for index, event in enumerate(events):
        if not encoded[index] and index not in excepted:
            origin = event.attachment
            encoded[index] = encode_event(event, origin.draft if type(origin) is Origin else b"")
    return encoded


def _frame(head: bytes, pieces: list[bytes]) -> bytes:
    """Return a frame of events; nothing if they are too large for one."""
    if sum(map(len, pieces)) > MAX_FRAME_SIZE - len(head):
        return b""
    return encode_frame(EVENTS, [head, *pieces])


class StorageConnectionFactory(Factory):
    """Creates the connections of a server."""

    noisy = False

    def __init__(self, server: StorageServer) -> None:
        self._server = server

    def buildProtocol(self, addr: IAddress | None) -> StorageConnection:
        """See L{Factory.buildProtocol}."""
        return StorageConnection(self._server)
