"""
The methods that a front process calls in the storage process.

Each returns the content of the last part of its response, and sends the parts before it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeAlias
from typing import Protocol as TypingProtocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from ...api.storage import StorageEvent
from ...interfaces import (
    IExpiringStorage,
    IProbedStorage,
    ISharedStorage,
    IStorageBackend,
    IStorageHistory,
    IStorageObserver,
)
from ..errors import RevisionCompacted
from ..protobuf import yield_to_reactor
from ..wrappers import unwrap_backend
from ._frames import PART_SIZE, ProtocolError
from ._messages import (
    encode_event,
    encode_position,
)
from ._requests import (
    Method,
    Request,
    encode_change,
    encode_expirations,
    encode_number,
    encode_page_head,
    encode_stored_value,
)


class CalledServer(TypingProtocol):
    """
    The part of a server that methods use.

    @ivar storage: The backend.
    @ivar reactor: The reactor.
    @ivar revision: The revision up to which changes were passed to fronts.
    """

    storage: IStorageBackend
    reactor: IReactorTime
    revision: int

    def claim_compaction(self, claimant: object) -> bool:
        """Return whether a connection is the one whose front compacts."""


_SendPart: TypeAlias = Callable[[bytes], None]
#: Its arguments are the server, the connection, the request, and a function that sends a part of the response.
Call: TypeAlias = Callable[[CalledServer, object, Request, _SendPart], Coroutine[Any, Any, bytes]]


def find_call(method: int) -> Call:
    """
    Return a method.

    @raise ProtocolError: There is no such method.
    """
    call = _METHODS.get(method)
    if call is None:
        raise ProtocolError(f"{method} is no method")
    return call


def divide(pieces: Iterable[bytes]) -> Iterable[list[bytes]]:
    """Divide pieces into parts of about L{PART_SIZE}; there is at least one part."""
    part: list[bytes] = []
    size = 0
    for piece in pieces:
        if size + len(piece) > PART_SIZE and part:
            yield part
            part, size = [], 0
        part.append(piece)
        size += len(piece)
    yield part


async def _send_all(
    server: CalledServer, head: Callable[[bool], bytes], pieces: Iterable[bytes], send_part: _SendPart
) -> bytes:
    """
    Send pieces in parts, each in another iteration of the reactor; return the last part.

    @param server: The server.
    @param head: Returns the start of a part; its argument is whether it is the last one.
    @param pieces: The pieces, which are encoded when they are taken.
    @param send_part: Sends a part.
    """
    previous: list[bytes] | None = None
    for part in divide(pieces):
        if previous is not None:
            send_part(b"".join((head(False), *previous)))
            await yield_to_reactor(server.reactor)
        previous = part
    return b"".join((head(True), *(previous or ())))


async def _read(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    found = await server.storage.read(request.text)
    return encode_page_head(found.revision, False) + encode_stored_value(found)


async def _read_page(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    limit, revision, _, _ = request.numbers
    page = await server.storage.read_page(request.text, start=request.second_text, limit=limit, revision=revision)
    return await _send_all(
        server,
        lambda last: encode_page_head(page.revision, page.more if last else True),
        map(encode_stored_value, page.items),
        send_part,
    )


async def _read_events(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    after, until, _, _ = request.numbers
    collector = _EventCollector(until)
    watch = await server.storage.watch(request.text, after, collector)
    try:
        events = await collector.complete
    finally:
        watch.stop()
    return await _send_all(
        server, lambda last: encode_position(until, server.storage.compacted), map(encode_event, events), send_part
    )


async def _read_changes(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    after, until, max_changes, max_bytes = request.numbers
    history = IStorageHistory(server.storage, None)
    if history is None:
        raise RevisionCompacted(after, until)
    found = await history.read_changes(request.text, after, until, max_changes, max_bytes)
    return await _send_all(
        server, lambda last: encode_number(found.revision), map(encode_change, found.changes), send_part
    )


async def _compact(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    await server.storage.compact(request.numbers[0])
    return encode_number(server.storage.compacted)


async def _claim_compaction(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    """Let one front compact until it disconnects; if other servers use the storage, it competes with them."""
    if not server.claim_compaction(claimant):
        return encode_number(False)
    shared = _innermost(server.storage, ISharedStorage)
    return encode_number(shared is None or await shared.claim_compaction(request.numbers[0]))


async def _current_revision(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    shared = _innermost(server.storage, ISharedStorage)
    return encode_number(server.revision if shared is None else await shared.current_revision())


async def _expiration_times(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    expiring = _innermost(server.storage, IExpiringStorage)
    found = {} if expiring is None else await expiring.expiration_times(request.text)
    return await _send_all(server, lambda last: b"", encode_expirations(found), send_part)


async def _probe_writing(server: CalledServer, claimant: object, request: Request, send_part: _SendPart) -> bytes:
    probed = _innermost(server.storage, IProbedStorage)
    if probed is not None:
        await probed.probe_writing()
    return b""


def _innermost(storage: IStorageBackend, interface: Any) -> Any:
    """Return the innermost backend if it has a capability, else L{None}."""
    return interface(unwrap_backend(storage), None)


@implementer(IStorageObserver)
class _EventCollector:
    """
    Collects the past events of a watch.

    @ivar complete: Fires with all events up to a revision.
    """

    def __init__(self, until: int) -> None:
        self.complete: Deferred[list[StorageEvent]] = Deferred()
        self._until = until
        self._events: list[StorageEvent] = []

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}."""
        self._events += [event for event in events if event.revision <= self._until]

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""
        if revision >= self._until and not self.complete.called:
            self.complete.callback(self._events)

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}."""
        if not self.complete.called:
            self.complete.errback(reason)


_METHODS: Final[dict[int, Call]] = {
    Method.READ: _read,
    Method.READ_PAGE: _read_page,
    Method.READ_EVENTS: _read_events,
    Method.READ_CHANGES: _read_changes,
    Method.COMPACT: _compact,
    Method.CLAIM_COMPACTION: _claim_compaction,
    Method.CURRENT_REVISION: _current_revision,
    Method.EXPIRATION_TIMES: _expiration_times,
    Method.PROBE_WRITING: _probe_writing,
}
