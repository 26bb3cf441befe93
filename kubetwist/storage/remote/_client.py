"""The connection of a front process to the storage process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from typing import Protocol as TypingProtocol

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IDelayedCall, IFileDescriptorReceiver, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.storage import StorageEvent, Write
from ...tracing.propagation import RemoteSpanContext
from ...tracing.spans import Span, current
from ..errors import InvalidArgument, StorageUnavailable
from ._errors import make_error
from ._frames import (
    MAX_FRAME_SIZE,
    PART_SIZE,
    FrameReader,
    ProtocolError,
    encode_frame,
)
from ._messages import (
    COMMIT,
    EVENTS,
    HELLO,
    LOST,
    REQUEST,
    RESPONSE,
    RESULTS,
    TRACE,
    WELCOME,
    Welcome,
    decode_events,
    decode_position,
    decode_results,
    decode_welcome,
    encode_hello,
    encode_trace,
    encode_transaction,
)
from ._requests import (
    FAILED,
    LAST,
    Request,
    decode_failure,
    decode_response,
    encode_request,
)
from ._revisionpage import MappedRevision
from ._sockets import peer_is_trusted, send

#: The size in bytes of what the storage process has not read beyond which writes are refused.
MAX_UNREAD_WRITES: Final = 256 << 20
#: Seconds that a connection may take until it is welcomed.
WELCOME_TIMEOUT: Final = 5.0
_NUMBERS: Final = 1 << 32
#: Bytes of the frame of events of a transaction, in addition to the writes.
_EVENTS_OVERHEAD: Final = 64


class Follower(TypingProtocol):
    """Handles what the storage process sends without a request."""

    def welcomed(self, client: StorageClient, welcome: Welcome) -> None:
        """Handle the begin of a connection; changes after its revision follow."""

    def received(self, events: Sequence[StorageEvent], revision: int, compacted: int) -> None:
        """Handle changes and the newest revision."""

    def lost(self, revision: int, compacted: int) -> None:
        """Handle the loss of changes up to C{revision}."""

    def disconnected(self, client: StorageClient, reason: str) -> None:
        """Handle the end of a connection, after its calls have failed."""


class PendingTransaction:
    """
    A transaction without a result.

    @ivar sent: Whether it was sent, so that its outcome is unknown if the connection is lost.
    @ivar revision: The revision of its events; 0 before they are received.
    """

    __slots__ = ("result", "revision", "sent", "writes")

    def __init__(self, writes: Sequence[Write]) -> None:
        self.writes = writes
        self.result: Deferred[int] = Deferred()
        self.sent = False
        self.revision = 0


class _PendingRequest:
    """A request without a complete response, and the content of the parts so far."""

    __slots__ = ("parts", "result")

    def __init__(self) -> None:
        self.result: Deferred[list[bytes]] = Deferred()
        self.parts: list[bytes] = []


@implementer(IFileDescriptorReceiver, IPushProducer)
class StorageClient(Protocol):
    """
    A connection to the storage process.

    All transactions of an iteration of the reactor are sent in one frame at its end.

    @ivar revision_page: The newest revision in the memory of the storage process, if it is shared.
    @ivar transactions: The transactions without a result, by number.
    @ivar closed: Fires when the connection is closed.
    """

    transport: Any
    _log = Logger()

    def __init__(self, follower: Follower, reactor: IReactorTime) -> None:
        self.revision_page: MappedRevision | None = None
        self.transactions: dict[int, PendingTransaction] = {}
        self._follower = follower
        self._reactor = reactor
        self._reader = FrameReader()
        self._connected = False
        self._welcomed = False
        self._numbers = 0
        self._requests: dict[int, _PendingRequest] = {}
        #: Whether the storage process does not read.
        self._paused = False
        #: The transactions that are not sent: encoded ones for the next frame, complete frames, and all of them.
        self._transactions: list[bytes] = []
        self._transactions_size = 0
        self._frames: list[bytes] = []
        self._unsent: list[PendingTransaction] = []
        self._unsent_size = 0
        self._unsent_requests: list[bytes] = []
        self._flush_scheduled = False
        self._welcome_timeout: IDelayedCall | None = None
        self._idle: Deferred[None] | None = None
        self.closed: Deferred[None] = Deferred()
        self._end_reason = ""

    # --- Protocol

    def connectionMade(self) -> None:
        """See L{Protocol.connectionMade}."""
        if not peer_is_trusted(self.transport):
            self._abort("the socket of the storage belongs to another user")
            return
        self._connected = True
        self._welcome_timeout = self._reactor.callLater(WELCOME_TIMEOUT, self._abort, "the storage process is silent")
        self.transport.registerProducer(self, True)
        self.transport.write(encode_frame(HELLO, [encode_hello()]))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{Protocol.connectionLost}: fail all requests; the follower handles transactions."""
        self._connected = False
        self._cancel_timeout()
        if self.revision_page is not None:
            self.revision_page.close()
            self.revision_page = None
        text = self._end_reason or f"lost the connection to the storage process: {reason.getErrorMessage()}"
        requests, self._requests = self._requests, {}
        for request in requests.values():
            request.result.errback(StorageUnavailable(text))
        self._follower.disconnected(self, text)
        if self._idle is not None:
            self._idle.callback(None)
            self._idle = None
        self.closed.callback(None)

    def fileDescriptorReceived(self, descriptor: int) -> None:
        """See L{IFileDescriptorReceiver.fileDescriptorReceived}: map the page with the newest revision."""
        if self.revision_page is not None:
            self.revision_page.close()
            self.revision_page = None
        try:
            self.revision_page = MappedRevision(descriptor)
        except (OSError, ValueError) as error:
            self._log.warn("cannot map the revision of the storage: {error}", error=error)

    def dataReceived(self, data: bytes) -> None:
        """See L{Protocol.dataReceived}."""
        if not self._connected:
            return
        try:
            for kind, payload in self._reader.feed(data):
                self._received(kind, payload)
        except ProtocolError as error:
            self._abort(f"the storage process sent an invalid message: {error}")

    def _cancel_timeout(self) -> None:
        if self._welcome_timeout is not None and self._welcome_timeout.active():
            self._welcome_timeout.cancel()

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when all transactions have results, or the connection is lost; called once."""
        self._idle = Deferred()
        idle = self._idle
        self._check_idle()
        return idle

    def _check_idle(self) -> None:
        if self._idle is not None and not self.transactions:
            idle, self._idle = self._idle, None
            idle.callback(None)

    def close(self) -> None:
        """Close the connection after everything that was written."""
        self._flush()
        if self._connected and self.transport is not None:
            self.transport.unregisterProducer()
            self.transport.loseConnection()

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abortConnection()

    # --- IPushProducer: whether the storage process reads

    def pauseProducing(self) -> None:
        """See L{IPushProducer.pauseProducing}."""
        self._paused = True

    def resumeProducing(self) -> None:
        """See L{IPushProducer.resumeProducing}."""
        self._paused = False
        self._flush()

    def stopProducing(self) -> None:
        """See L{IPushProducer.stopProducing}: the connection is lost."""
        self._paused = True

    def _abort(self, reason: str) -> None:
        self._log.error("{reason}", reason=reason)
        self._end_reason = reason
        self._connected = False
        self.transport.abortConnection()

    # --- receiving

    def _received(self, kind: int, payload: bytes) -> None:
        if not self._welcomed:
            if kind != WELCOME:
                raise ProtocolError(f"the first message is of kind {kind}")
            self._welcomed = True
            self._cancel_timeout()
            self._follower.welcomed(self, decode_welcome(payload))
        elif kind == EVENTS:
            revision, compacted, events = decode_events(payload, self._find_write)
            self._follower.received(events, revision, compacted)
        elif kind == RESULTS:
            self._results_received(payload)
        elif kind == RESPONSE:
            self._response_received(*decode_response(payload))
        elif kind == LOST:
            self._follower.lost(*decode_position(payload))
        else:
            raise ProtocolError(f"a message of kind {kind} is not expected")

    def _find_write(self, number: int, index: int, revision: int) -> Write:
        """Return a write to which an event refers, and note the revision of its transaction."""
        try:
            transaction = self.transactions[number]
            write = transaction.writes[index]
        except LookupError:
            raise ProtocolError(f"an event refers to write {index} of transaction {number}") from None
        transaction.revision = revision
        return write

    def _results_received(self, payload: bytes) -> None:
        for number, revision, error in decode_results(payload):
            if number not in self.transactions:
                raise ProtocolError(f"a result is of transaction {number}")
            # An invalid error leaves the transaction without a result.
            made = None if error is None else make_error(error)
            result = self.transactions.pop(number).result
            if made is None:
                result.callback(revision)
            else:
                result.errback(made)
        if self._idle is not None:
            self._check_idle()

    def _response_received(self, number: int, kind: int, content: bytes) -> None:
        request = self._requests.get(number)
        if request is None:
            raise ProtocolError(f"a response is to request {number}")
        if kind == FAILED:
            error = make_error(decode_failure(content))
            del self._requests[number]
            request.result.errback(error)
            return
        request.parts.append(content)
        if kind == LAST:
            del self._requests[number]
            request.result.callback(request.parts)

    # --- sending

    def commit(self, writes: Sequence[Write]) -> Deferred[int]:
        """
        Send a transaction, whose keys can be encoded.

        @return: See L{kubetwist.interfaces.IStorageBackend.commit}.
        """
        number = self._next_number(self.transactions)
        encoded = encode_transaction(number, writes)
        size = len(encoded) + _EVENTS_OVERHEAD
        if size > MAX_FRAME_SIZE:
            return fail(InvalidArgument(f"a transaction has at most {MAX_FRAME_SIZE} bytes"))
        if self._unsent_size + size > MAX_UNREAD_WRITES:
            return fail(StorageUnavailable("the storage process does not accept more writes at present"))
        if self._transactions and self._transactions_size + size > PART_SIZE:
            self._complete_frame()
        transaction = self.transactions[number] = PendingTransaction(writes)
        span = current.get()
        if isinstance(span, Span):
            # It precedes the frame of the transaction.
            context = RemoteSpanContext(span.trace.id, span.span_id, True)
            self._frames.append(encode_frame(TRACE, [encode_trace(number, context)]))
        self._transactions.append(encoded)
        self._transactions_size += size
        self._unsent.append(transaction)
        self._unsent_size += size
        self._flush_soon()
        return transaction.result

    def _complete_frame(self) -> None:
        self._frames.append(encode_frame(COMMIT, self._transactions))
        self._transactions, self._transactions_size = [], 0

    def request(self, request: Request) -> Deferred[list[bytes]]:
        """
        Send a request.

        @param request: The request; its number is set here.
        @return: Fires with the parts of the response.
        """
        number = self._next_number(self._requests)
        pending = self._requests[number] = _PendingRequest()
        encoded = encode_request(request._replace(number=number))
        self._unsent_requests.append(encode_frame(REQUEST, [encoded]))
        self._flush_soon()
        return pending.result

    def _next_number(self, used: dict[int, Any]) -> int:
        """Return the next number that is not in use."""
        number = self._numbers
        while number in used:
            number = (number + 1) % _NUMBERS
        self._numbers = (number + 1) % _NUMBERS
        return number

    def _flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._reactor.callLater(0, self._flush)

    def _flush(self) -> None:
        """Send what was written in this iteration."""
        self._flush_scheduled = False
        if not self._connected or self._paused:
            return
        if self._transactions:
            self._complete_frame()
        for transaction in self._unsent:
            transaction.sent = True
        pieces = [*self._frames, *self._unsent_requests]
        self._frames, self._unsent_requests, self._unsent, self._unsent_size = [], [], [], 0
        if pieces:
            send(self.transport, pieces[0] if len(pieces) == 1 else b"".join(pieces))
