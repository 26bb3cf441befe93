"""The connection of a storage process to one front process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final
from typing import Protocol as TypingProtocol

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IPushProducer, IUNIXTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.storage import Write
from ...tracing.propagation import RemoteSpanContext
from ...tracing.spans import Tracer
from ..errors import OutcomeUnknown, StorageUnavailable
from ..traced import commit_in_trace
from ._calls import CalledServer, divide, find_call
from ._errors import ErrorFields, error_fields
from ._frames import (
    FrameReader,
    ProtocolError,
    encode_frame,
)
from ._messages import (
    COMMIT,
    HELLO,
    LOST,
    REQUEST,
    RESPONSE,
    RESULTS,
    TRACE,
    WELCOME,
    Result,
    Welcome,
    decode_hello,
    decode_trace,
    decode_transactions,
    encode_position,
    encode_result,
    encode_welcome,
)
from ._requests import (
    FAILED,
    LAST,
    MORE,
    Request,
    decode_request,
    encode_failure,
    encode_response,
)
from ._revisionpage import RevisionPage
from ._sockets import peer_is_trusted, send

#: Maximum number of transactions and requests of a front that are in progress; it is not read while there are more.
MAX_IN_PROGRESS: Final = 1024
#: Maximum size in bytes of the events that a front has not read. Beyond it, they are dropped.
MAX_UNREAD_EVENTS: Final = 32 << 20
#: The size in bytes of unread responses and results beyond which the front is not read.
MAX_UNREAD_RESPONSES: Final = 8 << 20


class ConnectionServer(CalledServer, TypingProtocol):
    """
    The part of a server that its connections use: L{kubetwist.storage.remote._server.StorageServer}.

    @ivar page: The newest revision, for fronts; L{None} if they have to request it.
    @ivar tracer: Records spans of transactions; L{None} without tracing.
    """

    page: RevisionPage | None
    tracer: Tracer | None

    def connected(self, connection: StorageConnection) -> bool:
        """Add a connection; return false if there are too many."""

    def welcome(self, connection: StorageConnection) -> Welcome:
        """Send changes to a connection from now on; return the position at which they begin."""

    def disconnected(self, connection: StorageConnection) -> None:
        """Remove a connection."""

    def flush_soon(self, connection: StorageConnection) -> None:
        """Send the data of a connection at the end of this iteration."""


class Origin:
    """
    The attachment of a write: where it comes from.

    @ivar connection: The connection of the front.
    @ivar number: The number of its transaction.
    @ivar index: The index of the write in it.
    @ivar draft: The encoded draft of the object, for the other fronts.
    """

    __slots__ = ("connection", "draft", "index", "number")

    def __init__(self, connection: StorageConnection, number: int, index: int, draft: bytes) -> None:
        self.connection = connection
        self.number = number
        self.index = index
        self.draft = draft


@implementer(IPushProducer)
class StorageConnection(Protocol):
    """
    The connection to one front.

    What is written in an iteration is sent at its end: events, then results of transactions, then responses.
    """

    transport: Any
    _log = Logger()

    def __init__(self, server: ConnectionServer) -> None:
        self._server = server
        self._reader = FrameReader()
        self._welcomed = False
        self._connected = False
        self._flush_scheduled = False
        #: Whether the front does not read.
        self._paused = False
        #: Whether events were dropped since the last ones that were sent.
        self._events_lost = False
        self._events: list[bytes] = []
        self._results: list[bytes] = []
        self._responses: list[bytes] = []
        self._events_size = 0
        self._responses_size = 0
        self._in_progress = 0
        #: The spans of transactions that follow, by number.
        self._traces: dict[int, RemoteSpanContext] = {}
        self._reading = True

    # --- Protocol

    def connectionMade(self) -> None:
        """See L{Protocol.connectionMade}: refuse processes of other users."""
        if not peer_is_trusted(self.transport):
            self._log.warn("refused a process of another user at the socket of the storage")
            self.transport.abortConnection()
        elif not self._server.connected(self):
            self._log.warn("refused a connection to the storage: there are too many, or the server stops")
            self.transport.abortConnection()
        else:
            self._connected = True
            self.transport.registerProducer(self, True)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{Protocol.connectionLost}; transactions in progress continue."""
        self._connected = False
        self._events, self._results, self._responses = [], [], []
        self._server.disconnected(self)

    def close(self) -> None:
        """Close the connection after everything that was written."""
        self.flush()
        if self.transport is not None:
            self.transport.unregisterProducer()
            self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        """See L{Protocol.dataReceived}."""
        if not self._connected:
            return
        try:
            for kind, payload in self._reader.feed(data):
                self._received(kind, payload)
        except ProtocolError as error:
            self._log.error("a front sent an invalid message, closing its connection: {error}", error=error)
            self._connected = False
            self.transport.abortConnection()

    def _received(self, kind: int, payload: bytes) -> None:
        if kind == COMMIT and self._welcomed:
            for number, writes in decode_transactions(payload):
                self._commit(number, writes)
        elif kind == TRACE and self._welcomed:
            number, context = decode_trace(payload)
            if self._server.tracer is not None and len(self._traces) < MAX_IN_PROGRESS:
                self._traces[number] = context
        elif kind == REQUEST and self._welcomed:
            self._call(decode_request(payload))
        elif kind == HELLO and not self._welcomed:
            decode_hello(payload)
            self._welcome()
        else:
            raise ProtocolError(f"a message of kind {kind} is not expected")

    def _welcome(self) -> None:
        server = self._server
        self._welcomed = True
        welcome = server.welcome(self)
        transport = self.transport
        if server.page is not None and IUNIXTransport.providedBy(transport):
            transport.sendFileDescriptor(server.page.descriptor)
        transport.write(encode_frame(WELCOME, [encode_welcome(welcome)]))

    # --- IPushProducer: whether the front reads

    def pauseProducing(self) -> None:
        """See L{IPushProducer.pauseProducing}."""
        self._paused = True

    def resumeProducing(self) -> None:
        """See L{IPushProducer.resumeProducing}."""
        self._paused = False
        self.flush()

    def stopProducing(self) -> None:
        """See L{IPushProducer.stopProducing}: the connection is lost."""
        self._paused = True

    # --- writing to the front

    def send_events(self, frame: bytes) -> None:
        """Send a frame of events, or drop it if the front has not read too many."""
        if self._events_lost:
            return
        if self._paused and self._events_size + len(frame) > MAX_UNREAD_EVENTS:
            self._log.warn("a front does not read, and loses its position: unread={size}", size=self._events_size)
            self.lose_events()
            return
        self._events.append(frame)
        self._events_size += len(frame)
        self._flush_soon()

    def lose_events(self) -> None:
        """Drop unread events; the front is notified when it reads, and lists again."""
        self._events_lost = True
        self._events, self._events_size = [], 0
        self._flush_soon()

    def _respond(self, payload: bytes) -> None:
        if self._connected:
            frame = encode_frame(RESPONSE, [payload])
            self._responses.append(frame)
            self._responses_size += len(frame)
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._server.flush_soon(self)

    def flush(self) -> None:
        """Send what was written, if the front reads."""
        self._flush_scheduled = False
        if not self._connected:
            return
        if not self._paused:
            pieces: list[bytes] = []
            if self._events_lost:
                self._events_lost = False
                position = encode_position(self._server.revision, self._server.storage.compacted)
                pieces.append(encode_frame(LOST, [position]))
            pieces += self._events
            if self._results:
                pieces += _result_frames(self._results)
            pieces += self._responses
            self._events, self._results, self._responses = [], [], []
            self._events_size = self._responses_size = 0
            if pieces:
                send(self.transport, b"".join(pieces))
        self._pace()

    def _pace(self) -> None:
        """Read from the front, or stop reading, by what is in progress and unread."""
        reading = self._in_progress < MAX_IN_PROGRESS and self._responses_size < MAX_UNREAD_RESPONSES
        if reading != self._reading and self._connected:
            self._reading = reading
            (self.transport.resumeProducing if reading else self.transport.pauseProducing)()

    def _begin(self) -> None:
        self._in_progress += 1
        if self._in_progress >= MAX_IN_PROGRESS:
            self._pace()

    def _end(self) -> None:
        self._in_progress -= 1
        if not self._reading:
            self._pace()

    # --- transactions

    def _commit(self, number: int, writes: list[Write]) -> None:
        self._begin()
        for index, write in enumerate(writes):
            draft = write.attachment
            assert isinstance(draft, bytes), "a decoded write has its encoded draft"
            write.attachment = Origin(self, number, index, draft)
        result: Deferred[int]
        context = self._traces.pop(number, None) if self._traces else None
        tracer = self._server.tracer
        try:
            if context is None or tracer is None:
                result = self._server.storage.commit(writes)
            else:
                result = commit_in_trace(self._server.storage, writes, tracer, context)
        except Exception:
            result = fail()
        result.addBoth(self._committed, number)

    def _committed(self, result: int | Failure, number: int) -> None:
        self._end()
        if isinstance(result, Failure):
            error = _failure_fields(result)
            if error is None:
                self._log.failure("a transaction failed", result)
                error = _fields_of(OutcomeUnknown("the storage process failed to write"))
            response = Result(number, 0, error)
        else:
            response = Result(number, result)
        if self._connected:
            encoded = encode_result(response)
            self._results.append(encoded)
            self._responses_size += len(encoded)
            self._flush_soon()

    # --- requests

    def _call(self, request: Request) -> None:
        call = find_call(request.method)
        self._begin()
        send_part = partial(self._send_part, request.number)
        result = Deferred.fromCoroutine(call(self._server, self, request, send_part))
        result.addBoth(self._ended)
        result.addCallback(self._answered, request).addErrback(self._failed, request)

    def _send_part(self, number: int, content: bytes) -> None:
        self._respond(encode_response(number, MORE, content))

    def _ended(self, result: Any) -> Any:
        self._end()
        return result

    def _answered(self, content: bytes, request: Request) -> None:
        self._respond(encode_response(request.number, LAST, content))

    def _failed(self, failure: Failure, request: Request) -> None:
        error = _failure_fields(failure)
        if error is None:
            self._log.failure("a request of a front failed: method={method}", failure, method=request.method)
            error = _fields_of(StorageUnavailable("the storage process failed to answer"))
        self._respond(encode_response(request.number, FAILED, encode_failure(error)))


def _failure_fields(failure: Failure) -> ErrorFields | None:
    return None if failure.value is None else error_fields(failure.value)


def _fields_of(error: Exception) -> ErrorFields:
    fields = error_fields(error)
    assert fields is not None
    return fields


def _result_frames(results: Sequence[bytes]) -> Iterable[bytes]:
    """Return frames of results."""
    return [encode_frame(RESULTS, part) for part in divide(results)]
