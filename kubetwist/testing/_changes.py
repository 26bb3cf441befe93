"""
The changes in the storage of a server in this process, for C{eventually}.

Code on the reactor subscribes to them. Other threads and processes connect to a socket in the server's temporary
directory, which has one line of JSON per change. A client that does not read receives the newest change only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from twisted.internet.defer import DeferredLock, ensureDeferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Factory, Protocol
from twisted.logger import Logger
from zope.interface import implementer

from ..api.storage import StorageEvent
from ..interfaces import IStorageObserver
from ..storage.errors import StorageError

if TYPE_CHECKING:
    from ..interfaces import IStorageBackend, IStorageWatch

#: Larger objects are not part of the lines.
MAX_OBJECT: Final = 128 * 1024

#: Called with each change.
Subscriber = Callable[[StorageEvent], object]


@implementer(IStorageObserver)
class StorageChanges:
    """Watches a whole storage while there are subscribers."""

    _log = Logger()

    def __init__(self, backend: IStorageBackend, prefix: str) -> None:
        """
        @param prefix: The prefix of all keys, with a slash at its end.
        """
        self._backend = backend
        self._prefix = prefix
        self._subscribers: dict[Subscriber, None] = {}
        self._watch: IStorageWatch | None = None
        #: Held while a watch begins.
        self._lock = DeferredLock()

    async def subscribe(self, subscriber: Subscriber) -> None:
        """Call C{subscriber} with each change from now on."""
        self._subscribers[subscriber] = None
        await self._lock.run(lambda: ensureDeferred(self._begin()))

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop calling C{subscriber}. Idempotent."""
        self._subscribers.pop(subscriber, None)
        self._stop_unused()

    def stop(self) -> None:
        """Remove all subscribers."""
        self._subscribers.clear()
        self._stop_unused()

    def _stop_unused(self) -> None:
        if not self._subscribers and self._watch is not None:
            watch, self._watch = self._watch, None
            watch.stop()

    async def _begin(self) -> None:
        if self._watch is None:
            self._watch = await self._backend.watch(self._prefix, self._backend.revision, self)
            self._stop_unused()

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}."""
        for event in events:
            for subscriber in tuple(self._subscribers):
                subscriber(event)

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}: begin again."""
        self._watch = None
        if self._subscribers:
            ensureDeferred(self._begin_again())

    async def _begin_again(self) -> None:
        try:
            await self._lock.run(lambda: ensureDeferred(self._begin()))
        except StorageError as error:
            self._log.info("changes are not watched any more: {error}", error=error)
            return
        # Something may have changed in between.
        self.committed([StorageEvent(self._prefix, None, self._backend.revision, 0)])


@implementer(IPushProducer)
class _ChangeConnection(Protocol):
    """Sends changes to one client."""

    factory: _ChangeFactory

    def __init__(self) -> None:
        self._paused = False
        self._waiting: StorageEvent | None = None

    def connectionMade(self) -> None:
        """Begin to send changes."""
        transport: Any = self.transport
        self.factory.connections.add(self)
        transport.registerProducer(self, True)
        begun = ensureDeferred(self.factory.changes.subscribe(self._changed))
        begun.addCallbacks(lambda _: transport.write(b"{}\n"), lambda _: transport.abortConnection())

    def connectionLost(self, reason: Any = None) -> None:
        """Stop."""
        self.factory.connections.discard(self)
        self.factory.changes.unsubscribe(self._changed)

    def _changed(self, event: StorageEvent) -> None:
        if self._paused:
            self._waiting = event
            return
        transport: Any = self.transport
        transport.write(change_line(event))

    def pauseProducing(self) -> None:
        """See L{IPushProducer}."""
        self._paused = True

    def resumeProducing(self) -> None:
        """See L{IPushProducer}."""
        self._paused = False
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._changed(waiting)

    def stopProducing(self) -> None:
        """See L{IPushProducer}."""


class _ChangeFactory(Factory):
    protocol = _ChangeConnection  # type: ignore[assignment] # as of Factory.forProtocol
    noisy = False

    def __init__(self, changes: StorageChanges) -> None:
        self.changes = changes
        self.connections: set[_ChangeConnection] = set()


def change_line(event: StorageEvent) -> bytes:
    """Return the line of a change: its key, and the object if it is JSON of limited size."""
    change: dict[str, Any] = {"key": event.key, "revision": event.revision}
    value = event.value
    if value is None:
        change["deleted"] = True
    elif value.startswith(b"{") and len(value) <= MAX_OBJECT:
        # Decoded, since values end with a new line.
        with suppress(ValueError):
            change["object"] = orjson.loads(value)
    return orjson.dumps(change) + b"\n"


class ChangeServer:
    """
    The changes of one server.

    @ivar changes: For code on the reactor.
    """

    def __init__(self, backend: IStorageBackend, prefix: str, folder: Path, reactor: Any) -> None:
        """
        @param folder: The directory of the socket, which belongs to the user only.
        """
        self.changes = StorageChanges(backend, prefix)
        self._path = str(folder / "changes")
        self._reactor = reactor
        self._port: Any = None
        self._factory = _ChangeFactory(self.changes)

    def listen(self) -> str:
        """Listen, and return the path of the socket. Idempotent."""
        if self._port is None:
            self._port = self._reactor.listenUNIX(self._path, self._factory, mode=0o600)
        return self._path

    async def stop(self) -> None:
        """Remove all subscribers, and close all connections."""
        self.changes.stop()
        port, self._port = self._port, None
        for connection in tuple(self._factory.connections):
            transport: Any = connection.transport
            transport.abortConnection()
        if port is not None:
            await port.stopListening()
