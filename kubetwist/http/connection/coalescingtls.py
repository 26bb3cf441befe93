"""
TLS connections that send short data at the end of an iteration of the reactor.

Twisted encrypts data at that time, registers the socket for writing, sends in a later iteration, and removes the
registration, although the socket is nearly always writable. Here the data that all connections have written in an
iteration are sent together at its end. Watch events are sent before responses: the client that receives the response
to a write may read its event from a watch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from OpenSSL.crypto import X509
from OpenSSL.SSL import Error, WantReadError, ZeroReturnError

from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IOpenSSLContextFactory,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
)
from twisted.internet.protocol import connectionDone
from twisted.internet.tcp import Connection
from twisted.logger import Logger
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from ._records import MAX_READ as _MAX_READ_SHORT
from ._records import RECORD as _RECORD
from ._records import MethodEncryptor, RecordBoundaries, RecordEncryptor, is_direct

#: Bytes that a connection keeps until the end of the iteration. Longer data are sent by the reactor in large pieces.
_MAX_BUFFERED: Final = 64_000
#: Bytes that OpenSSL encrypts in one call. It keeps a buffer of this size for a connection that has sent as much.
_MAX_ENCRYPTED: Final = 4 * _RECORD
#: Bytes of encrypted data that are read in one call, of long data.
_MAX_READ: Final = 5 * _RECORD
#: Number of connections with events from which on the events of several iterations are joined.
MIN_JOINED_CONNECTIONS = 16
#: Seconds in which events are joined while the server is busy.
JOINING_SECONDS = 0.002
#: Seconds in which events are sent in one iteration.
SENDING_SECONDS = 0.005
#: Number of connections whose events are sent before the time is checked.
_UNINTERRUPTED: Final = 16
#: Go's response to clients without TLS, which its clients recognize, and OpenSSL's error for them.
_NO_TLS: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_HTTP_REQUEST: Final = "http request"


class CoalescingTLSTransport(TLSMemoryBIOProtocol):
    """
    One connection; data that are written in one iteration are sent together.

    @ivar urgent: Whether its data are watch events, which are sent before other data.
    """

    factory: CoalescingTLSFactory
    urgent = False
    _tcp: Connection | None = None

    def __init__(self, factory: CoalescingTLSFactory, protocol: IProtocol, _connectWrapped: bool = True) -> None:
        TLSMemoryBIOProtocol.__init__(self, factory, protocol, _connectWrapped)
        self._pending: list[bytes] = []
        #: Data that precede the data of other connections.
        self._first: list[bytes] = []
        self._length = self._first_length = 0
        self._max_read = _MAX_READ_SHORT
        self._encryptor: MethodEncryptor
        #: What the encryptor uses of the connection.
        self._prepared: Any = None
        #: Sends to the socket; L{None} while the base class has data that come first, or does not accept data.
        self._send_now: Callable[[bytes | memoryview], int] | None = None
        #: Whether C{_pending} contains data that follow the watch events written before them.
        self._ordered = False
        self._boundaries = RecordBoundaries()
        #: Data that wait for the rest of the events before them.
        self._held: deque[list[bytes]] = deque()

    def makeConnection(self, transport: Any) -> None:
        """See L{IProtocol.makeConnection<twisted.internet.interfaces.IProtocol.makeConnection>}."""
        if isinstance(transport, Connection):
            self._tcp = transport
        TLSMemoryBIOProtocol.makeConnection(self, transport)
        self._encryptor = self.factory.encryptor_for(self._tlsConnection)
        self._prepared = self._encryptor.prepare(self._tlsConnection)

    def dataReceived(self, data: bytes) -> None:
        """See L{IProtocol.dataReceived<twisted.internet.interfaces.IProtocol.dataReceived>}."""
        self.factory.received += 1
        if (
            self._boundaries.received(data)
            and self._handshakeDone
            and not (self._appSendBuffer or self._aborted or self._lostTLSConnection)
        ):
            self._receive_record(data)
        else:
            TLSMemoryBIOProtocol.dataReceived(self, data)

    def _receive_record(self, data: bytes) -> None:
        """
        Deliver the content of one whole record, as most requests are.

        Twisted reads until OpenSSL has nothing more, and then asks for data to send. Both raise an exception, which
        takes longer than to decrypt the record.
        """
        try:
            content = self._encryptor.decrypt(self._prepared, data)
        except WantReadError:
            # A message of TLS itself, which may need an answer.
            self._flushSendBIO()
        except ZeroReturnError:
            # The end of the connection, which the next call returns again.
            self._flushReceiveBIO()  # type: ignore[no-untyped-call] # Twisted has no annotations
        except Error:
            self._tlsShutdownFinished(Failure())
            self._flushSendBIO()
        else:
            self.wrappedProtocol.dataReceived(content)

    def write(self, data: bytes) -> None:
        """
        See L{ITransport.write<twisted.internet.interfaces.ITransport.write>}.

        The data are sent after the watch events that were written before on any connection.
        """
        if not self._ordered:
            self._ordered = True
            self.factory.flush_soon(self)
        self._pending.append(data)
        self._length += len(data)
        if self._length > _MAX_BUFFERED:
            if not self.urgent:
                self.factory.flush_events()
            self.flush()

    def write_unordered(self, data: bytes) -> None:
        """Write data that need not follow watch events, unless data of L{write} wait: the response to a read."""
        if self._ordered or self.urgent or self._held:
            self.write(data)
            return
        if not self._pending:
            self.factory.flush_unordered_soon(self)
        self._pending.append(data)
        self._length += len(data)
        if self._length > _MAX_BUFFERED:
            self.flush()

    def writeSequence(self, iovec: Iterable[bytes]) -> None:
        """See L{ITransport.writeSequence<twisted.internet.interfaces.ITransport.writeSequence>}."""
        self.write(b"".join(iovec))

    def write_first(self, data: bytes) -> None:
        """
        Write data that precede the data of other connections, and the pending data of L{write}.

        HTTP/2 uses it for the watches of a connection that has other streams, too.
        """
        if not self._first:
            self.factory.flush_first_soon(self)
        self._first.append(data)
        self._first_length += len(data)
        if self._first_length > _MAX_BUFFERED:
            self.flush_first()

    def flush_first(self) -> None:
        """Send the data of L{write_first}."""
        first = self._first
        if first:
            self._first, self._first_length = [], 0
            self._send(first[0] if len(first) == 1 else b"".join(first))

    def flush(self) -> None:
        """Send the written data."""
        if self._first:
            self.flush_first()
        pending = self._pending
        if self._held:
            pending = [data for held in (*self._held, pending) for data in held]
            self._held.clear()
        if pending:
            long = pending.pop() if self._length > _MAX_BUFFERED else b""
            self._pending, self._length, self._ordered = [], 0, False
            if pending:
                self._send(pending[0] if len(pending) == 1 else b"".join(pending))
            if long:
                # It would be copied once more with what precedes it.
                self._send(long)

    def flush_unordered(self) -> None:
        """Send the written data, unless they follow watch events."""
        if not (self._ordered or self._held):
            self.flush()

    def hold(self) -> Callable[[], None]:
        """Let the written data wait for events; return the function that sends them."""
        held = self._pending
        self._held.append(held)
        self._pending, self._length, self._ordered = [], 0, False

        def release() -> None:
            if any(other is held for other in self._held):
                data: list[bytes] = []
                while data is not held:
                    data = self._held.popleft()
                    if data:
                        self._send(b"".join(data))

        return release

    def _send(self, data: bytes) -> None:
        """Encrypt data and send them; in one step if they fit into one record and nothing waits before them."""
        if not data:
            # OpenSSL reports an error for them, after which the connection would be closed.
            return
        send_now = self._send_now or self._find_send_now()
        if send_now is None or len(data) > _RECORD:
            self._send_by_base(data)
            return
        try:
            encrypted_length, encrypted = self._encryptor.encrypt(self._prepared, data)
        except WantReadError:
            # OpenSSL needs data of the client first.
            self._send_by_base(data)
            return
        except Error:
            self._tlsShutdownFinished(Failure())
            return
        try:
            sent = send_now(encrypted)
        except OSError:
            # The socket accepts nothing now, or the client has disconnected: the reactor detects that itself.
            sent = 0
        if sent < len(encrypted):
            self._send_now = None
            tcp: Any = self._tcp
            tcp.write(bytes(encrypted[sent:]))
        if encrypted_length < len(data):
            # The client has limited the size of records.
            self._send_by_base(data[encrypted_length:])

    def _find_send_now(self) -> Callable[[bytes | memoryview], int] | None:
        """Return the function that sends to the socket, if nothing waits before the next data."""
        tcp = self._tcp
        if (
            tcp is not None
            and self._handshakeDone
            and tcp.connected
            and not (
                self._appSendBuffer
                or self._lostTLSConnection
                or self.disconnecting
                or tcp.disconnecting
                or tcp.dataBuffer
                or tcp._tempDataLen
            )
        ):
            self._send_now = tcp.socket.send
        return self._send_now

    def _send_by_base(self, data: bytes) -> None:
        """Let the base class send data, which may keep some of them."""
        self._send_now = None
        TLSMemoryBIOProtocol.write(self, data)

    def _shutdownTLS(self) -> None:
        # All ways to close the connection for which the base class is responsible.
        self._send_now = None
        TLSMemoryBIOProtocol._shutdownTLS(self)

    def loseConnection(self) -> None:
        """See L{ITransport.loseConnection<twisted.internet.interfaces.ITransport.loseConnection>}."""
        if not self.urgent and (self._ordered or self._held):
            self.factory.flush_events()
        self.flush()
        self._send_now = None
        TLSMemoryBIOProtocol.loseConnection(self)

    def unregisterProducer(self) -> None:
        """See L{IConsumer.unregisterProducer<twisted.internet.interfaces.IConsumer.unregisterProducer>}."""
        # A connection that was to be closed when its producer is done is closed by this.
        self.flush()
        TLSMemoryBIOProtocol.unregisterProducer(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{IProtocol.connectionLost<twisted.internet.interfaces.IProtocol.connectionLost>}."""
        self._pending, self._first, self._length, self._ordered = [], [], 0, False
        self._held.clear()
        TLSMemoryBIOProtocol.connectionLost(self, reason)
        self._send_now = self._prepared = None
        # Break the cycle, which would wait for the garbage collector.
        self._producer = None

    def _tlsShutdownFinished(self, reason: Failure | None) -> None:
        self._send_now = None
        if (
            reason is not None
            and reason.check(Error)
            and not (self._handshakeDone or self.factory.is_client)
            and _HTTP_REQUEST in str(reason.value)
        ):
            socket: Any = self.transport
            socket.write(_NO_TLS)
        if reason is not None:
            # Its frames reference this connection until the garbage collector runs.
            reason.cleanFailure()
        TLSMemoryBIOProtocol._tlsShutdownFinished(self, reason)

    # Send the encrypted data to the socket.

    def _write(self, data: bytes) -> None:
        length = len(data)
        if length <= _RECORD:
            self._max_read = _MAX_READ_SHORT
            TLSMemoryBIOProtocol._write(self, data)
            return
        # As in the base class, with several records in each call of OpenSSL and of the system.
        self._max_read = _MAX_READ
        view, encrypted = memoryview(data), 0
        while encrypted < length and not self._lostTLSConnection:
            try:
                encrypted += self._tlsConnection.send(view[encrypted : encrypted + _MAX_ENCRYPTED])
            except WantReadError:
                self._bufferedWrite(data[encrypted:])  # type: ignore[no-untyped-call] # Twisted has no annotations
                return
            except Error:
                self._tlsShutdownFinished(Failure())
                return
            self._flushSendBIO()

    def _flushSendBIO(self) -> None:
        self._send_now = None
        socket: Any = self.transport
        if not isinstance(socket, Connection) or socket.dataBuffer or socket._tempDataLen:
            self._pass_all()
            return
        data = self._encrypted()
        if not data or socket.disconnecting or not socket.connected:
            return
        sent = socket.writeSomeData(data)
        if not isinstance(sent, int):
            # The client has disconnected: the reactor detects that itself.
            socket.write(data)
        elif sent < len(data):
            socket.write(data[sent:])

    def _encrypted(self) -> bytes:
        """Take the encrypted data from OpenSSL."""
        data: bytes = b""
        size = self._max_read
        try:
            while True:
                piece = self._tlsConnection.bio_read(size)
                data = data + piece if data else piece
                if len(piece) < size:
                    return data
        except WantReadError:
            return data

    def _pass_all(self) -> None:
        """Pass the encrypted data to the reactor."""
        data = self._encrypted()
        if data:
            socket: Any = self.transport
            socket.write(data)


class CoalescingTLSFactory(TLSMemoryBIOFactory):
    """
    Factory of TLS connections to a site, in place of C{reactor.listenSSL}, or of outgoing ones.

    @ivar received: The number of times that data were received.
    @ivar is_client: Whether the connections are outgoing.
    """

    protocol = CoalescingTLSTransport
    _log = Logger()

    def __init__(
        self,
        context: IOpenSSLContextFactory | IOpenSSLClientConnectionCreator,
        site: IProtocolFactory,
        reactor: IReactorTime,
        write_events: Callable[[], object] | None = None,
        *,
        is_client: bool = False,
    ) -> None:
        """
        @param context: Creates the TLS part of a connection.
        @param write_events: Writes the watch events of this iteration; called before a response is sent.
        @param is_client: Whether the connections are outgoing.
        """
        super().__init__(context, is_client, site, reactor)
        self.is_client = is_client
        self.received = 0
        self._encryptor: RecordEncryptor | None = None
        self._reactor = reactor
        self._write_events = write_events
        #: Connections with data that follow the events.
        self._unsent: list[CoalescingTLSTransport] = []
        #: Connections with data that need not follow the events.
        self._unordered: list[CoalescingTLSTransport] = []
        #: Functions that send the events of a connection, or data that follow the events before them.
        self._events: deque[Callable[[], None]] = deque()
        #: Whether the time to send events was used up.
        self._interrupted = False
        #: Time since which events are joined with later ones; L{None} when they are not.
        self._joined_since: float | None = None
        self._received_before = 0
        self._flush_scheduled = False

    def encryptor_for(self, connection: object) -> MethodEncryptor:
        """Return what encrypts short data of a connection."""
        # An outgoing connection is the only one of its factory, so that each would keep a buffer.
        if self.is_client or not is_direct(connection):
            return MethodEncryptor()
        if self._encryptor is None:
            self._encryptor = RecordEncryptor()
        return self._encryptor

    def flush_soon(self, transport: CoalescingTLSTransport) -> None:
        """Send the data of C{transport} at the end of this iteration."""
        if not self._flush_scheduled:
            self._schedule_flush()
        if transport.urgent:
            self._events.append(transport.flush)
        else:
            self._unsent.append(transport)

    def flush_unordered_soon(self, transport: CoalescingTLSTransport) -> None:
        """Send the data of C{transport} at the end of this iteration, even if events are sent later."""
        self._schedule_flush()
        self._unordered.append(transport)

    def flush_first_soon(self, transport: CoalescingTLSTransport) -> None:
        """Send the data of C{transport} that come first at the end of this iteration."""
        self._schedule_flush()
        self._events.append(transport.flush_first)

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._reactor.callLater(0, self._flush)

    def flush_events(self) -> None:
        """Send the waiting watch events."""
        if self._write_events is not None:
            self._write_events()
        self._run_until(None)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._events and not self._interrupted and self._joins_more():
            self._flush_unordered()
            self._schedule_flush()
            return
        if self._write_events is not None:
            self._write_events()
        self._joined_since = None
        self._run_until(self._reactor.seconds() + SENDING_SECONDS)
        unsent, self._unsent = self._unsent, []
        self._interrupted = bool(self._events)
        if self._interrupted:
            # The rest is sent in the next iteration, and the responses after it.
            self._events.extend([transport.hold() for transport in unsent])
            self._schedule_flush()
        else:
            for transport in unsent:
                self._guard(transport.flush)
        self._flush_unordered()

    def _joins_more(self) -> bool:
        """Return whether events wait for the next iteration: many connections have some, and the server is busy."""
        received, self._received_before = self._received_before, self.received
        since = self._joined_since
        now = self._reactor.seconds()
        if since is None:
            if len(self._events) < MIN_JOINED_CONNECTIONS:
                return False
            self._joined_since = now
            return True
        return received != self.received and now - since < JOINING_SECONDS

    def _run_until(self, end: float | None) -> None:
        """Send events until the time C{end}."""
        events, seconds, count = self._events, self._reactor.seconds, 0
        while events:
            flush = events.popleft()
            try:
                flush()
            except Exception:
                self._log_failure()
            count += 1
            if end is not None and not count % _UNINTERRUPTED and seconds() >= end:
                return

    def _flush_unordered(self) -> None:
        unordered, self._unordered = self._unordered, []
        for transport in unordered:
            self._guard(transport.flush_unordered)

    def _guard(self, flush: Callable[[], object]) -> None:
        try:
            flush()
        except Exception:
            self._log_failure()

    def _log_failure(self) -> None:
        # Other connections have data to send, too.
        self._log.failure("sending data of a connection failed")


def peer_certificates(transport: Any) -> list[X509]:
    """Return the certificate that the client of a connection has presented, and its chain; nothing without TLS."""
    presented: X509 | None = getattr(transport, "getPeerCertificate", lambda: None)()
    if presented is None:
        return []
    # At a server, the chain of OpenSSL begins after the certificate of the peer (SSL_get_peer_cert_chain(3)).
    return [presented, *(transport.getHandle().get_peer_cert_chain() or [])]
