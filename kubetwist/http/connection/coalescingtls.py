"""
TLS connections that send short data at the end of an iteration of the reactor.

Twisted encrypts data at that time, registers the socket for writing, sends in a later iteration, and removes the
registration, although the socket is nearly always writable. Here the data that all connections have written in an
iteration are sent together at its end. Watch events are sent before responses: the client that receives the response
to a write may read its event from a watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from OpenSSL.crypto import X509
from OpenSSL.SSL import Error, WantReadError

from twisted.internet.interfaces import IOpenSSLContextFactory, IProtocol, IProtocolFactory, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.internet.tcp import Connection
from twisted.logger import Logger
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

#: Maximum size of one TLS record.
_RECORD: Final = 2**14
#: Bytes that a connection keeps until the end of the iteration. Longer data are sent by the reactor in large pieces.
_MAX_BUFFERED: Final = 64_000
#: Bytes that OpenSSL encrypts in one call. It keeps a buffer of this size for a connection that has sent as much.
_MAX_ENCRYPTED: Final = 4 * _RECORD
#: Bytes of encrypted data that are read in one call, of short and of long data.
_MAX_READ_SHORT, _MAX_READ = 2 * _RECORD, 5 * _RECORD
#: Go's response to clients without TLS, which its clients recognize, and OpenSSL's error for them.
_NO_TLS: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_HTTP_REQUEST: Final = "http request"


class CoalescingTLSTransport(TLSMemoryBIOProtocol):
    """
    One connection; data that are written in one iteration are sent together.

    @ivar urgent: Whether it is sent before other connections.
    """

    factory: CoalescingTLSFactory
    urgent = False

    def __init__(self, factory: CoalescingTLSFactory, protocol: IProtocol, _connectWrapped: bool = True) -> None:
        TLSMemoryBIOProtocol.__init__(self, factory, protocol, _connectWrapped)
        self._pending: list[bytes] = []
        #: Data that precede the data of other connections.
        self._first: list[bytes] = []
        self._length = self._first_length = 0
        self._max_read = _MAX_READ_SHORT

    def write(self, data: bytes) -> None:
        """See L{ITransport.write<twisted.internet.interfaces.ITransport.write>}."""
        if not self._pending:
            self.factory.flush_soon(self)
        self._pending.append(data)
        self._length += len(data)
        if self._length > _MAX_BUFFERED:
            if not self.urgent:
                self.factory.flush_events()
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
            TLSMemoryBIOProtocol.write(self, first[0] if len(first) == 1 else b"".join(first))

    def flush(self) -> None:
        """Send the written data."""
        if self._first:
            self.flush_first()
        pending = self._pending
        if pending:
            long = pending.pop() if self._length > _MAX_BUFFERED else b""
            self._pending, self._length = [], 0
            if pending:
                TLSMemoryBIOProtocol.write(self, pending[0] if len(pending) == 1 else b"".join(pending))
            if long:
                # It would be copied once more with what precedes it.
                TLSMemoryBIOProtocol.write(self, long)

    def loseConnection(self) -> None:
        """See L{ITransport.loseConnection<twisted.internet.interfaces.ITransport.loseConnection>}."""
        self.flush()
        TLSMemoryBIOProtocol.loseConnection(self)

    def unregisterProducer(self) -> None:
        """See L{IConsumer.unregisterProducer<twisted.internet.interfaces.IConsumer.unregisterProducer>}."""
        # A connection that was to be closed when its producer is done is closed by this.
        self.flush()
        TLSMemoryBIOProtocol.unregisterProducer(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{IProtocol.connectionLost<twisted.internet.interfaces.IProtocol.connectionLost>}."""
        self._pending, self._first, self._length = [], [], 0
        TLSMemoryBIOProtocol.connectionLost(self, reason)
        # Break the cycle, which would wait for the garbage collector.
        self._producer = None

    def _tlsShutdownFinished(self, reason: Failure | None) -> None:
        if (
            reason is not None
            and reason.check(Error)
            and not self._handshakeDone
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
                self._bufferedWrite(data[encrypted:])  # type: ignore[no-untyped-call]
                return
            except Error:
                self._tlsShutdownFinished(Failure())
                return
            self._flushSendBIO()

    def _flushSendBIO(self) -> None:
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
    """Factory of TLS connections to a site, in place of C{reactor.listenSSL}."""

    protocol = CoalescingTLSTransport
    _log = Logger()

    def __init__(
        self,
        context: IOpenSSLContextFactory,
        site: IProtocolFactory,
        reactor: IReactorTime,
        write_events: Callable[[], object] | None = None,
    ) -> None:
        """
        @param context: Creates the TLS part of a connection.
        @param write_events: Writes the watch events of this iteration; called before a response is sent.
        """
        super().__init__(context, False, site, reactor)
        self._reactor = reactor
        self._write_events = write_events
        self._unsent: list[CoalescingTLSTransport] = []
        self._urgent: list[CoalescingTLSTransport] = []
        self._first: list[CoalescingTLSTransport] = []
        self._flush_scheduled = False

    def flush_soon(self, transport: CoalescingTLSTransport) -> None:
        """Send the data of C{transport} at the end of this iteration."""
        self._schedule_flush()
        (self._urgent if transport.urgent else self._unsent).append(transport)

    def flush_first_soon(self, transport: CoalescingTLSTransport) -> None:
        """Send the data of C{transport} that come first at the end of this iteration."""
        self._schedule_flush()
        self._first.append(transport)

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._reactor.callLater(0, self._flush)

    def flush_events(self) -> None:
        """Send the watch events of this iteration."""
        if self._write_events is not None:
            self._write_events()
        first, self._first = self._first, []
        for transport in first:
            self._guard(transport.flush_first)
        urgent, self._urgent = self._urgent, []
        self._flush_all(urgent)

    def _flush(self) -> None:
        self._flush_scheduled = False
        self.flush_events()
        unsent, self._unsent = self._unsent, []
        self._flush_all(unsent)

    def _flush_all(self, transports: list[CoalescingTLSTransport]) -> None:
        for transport in transports:
            self._guard(transport.flush)

    def _guard(self, flush: Callable[[], object]) -> None:
        try:
            flush()
        except Exception:
            # Other connections have data to send, too.
            self._log.failure("sending data of a connection failed")


def peer_certificates(transport: Any) -> list[X509]:
    """Return the certificate that the client of a connection has presented, and its chain; nothing without TLS."""
    presented: X509 | None = getattr(transport, "getPeerCertificate", lambda: None)()
    if presented is None:
        return []
    return [presented, *(transport.getHandle().get_peer_cert_chain() or [])[1:]]
