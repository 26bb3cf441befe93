"""
TLS connections that send what is short when the turn is over in which it was written.

Twisted encrypts it then, asks the system to be told when the socket can be written to, waits for that in another turn,
sends, and tells the system to stop: for a socket that could have been written to all along, most of the time. What all
connections have written in a turn is sent together, so that who gets his answer first does not take turns from others.
"""

from __future__ import annotations

from typing import Any, Final

from OpenSSL.SSL import Error, WantReadError

from twisted.internet.protocol import connectionDone
from twisted.internet.tcp import Connection
from twisted.logger import Logger
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

#: What one record of TLS takes. What is longer is better sent in the reactor's large pieces.
_RECORD: Final = 2**14
#: Bytes that a connection keeps until the turn is over.
_MOST_KEPT: Final = 64_000
#: What Go answers, whose clients know it, to those who do not speak TLS; and how OpenSSL says that one does not.
_NO_TLS: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_HTTP_REQUEST: Final = "http request"


class PromptTransport(TLSMemoryBIOProtocol):
    """One connection; what is written to it in one turn is sent as one."""

    factory: PromptFactory

    def __init__(self, factory: PromptFactory, protocol: Any, _connectWrapped: bool = True) -> None:
        TLSMemoryBIOProtocol.__init__(self, factory, protocol, _connectWrapped)
        self._kept: list[bytes] = []
        self._length = 0
        self._short = False

    def write(self, data: bytes) -> None:
        """See L{ITransport.write<twisted.internet.interfaces.ITransport.write>}."""
        if not self._kept:
            self.factory.flush_soon(self)
        self._kept.append(data)
        self._length += len(data)
        if self._length > _MOST_KEPT:
            self.flush()

    def writeSequence(self, iovec: Any) -> None:
        """See L{ITransport.writeSequence<twisted.internet.interfaces.ITransport.writeSequence>}."""
        self.write(b"".join(iovec))

    def flush(self) -> None:
        """Send what was written."""
        kept = self._kept
        if kept:
            self._kept, self._length = [], 0
            TLSMemoryBIOProtocol.write(self, kept[0] if len(kept) == 1 else b"".join(kept))

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
        self._kept, self._length = [], 0
        TLSMemoryBIOProtocol.connectionLost(self, reason)

    def _tlsShutdownFinished(self, reason: Failure | None) -> None:
        if (
            reason is not None
            and reason.check(Error)
            and not self._handshakeDone
            and _HTTP_REQUEST in str(reason.value)
        ):
            below: Any = self.transport
            below.write(_NO_TLS)
        TLSMemoryBIOProtocol._tlsShutdownFinished(self, reason)

    # How it goes to the system.

    def _write(self, data: bytes) -> None:
        self._short = len(data) <= _RECORD
        TLSMemoryBIOProtocol._write(self, data)

    def _flushSendBIO(self) -> None:
        below: Any = self.transport
        if not self._short or not isinstance(below, Connection) or below.dataBuffer or below._tempDataLen:
            TLSMemoryBIOProtocol._flushSendBIO(self)
            return
        try:
            data = self._tlsConnection.bio_read(2 * _RECORD)
        except WantReadError:
            return
        if below.disconnecting or not below.connected:
            return
        sent = below.writeSomeData(data)
        if not isinstance(sent, int):
            # The client has gone: the reactor is to find out for itself.
            below.write(data)
        elif sent < len(data):
            below.write(data[sent:])


class PromptFactory(TLSMemoryBIOFactory):
    """Puts TLS in front of a site, as C{reactor.listenSSL} does."""

    protocol = PromptTransport
    _log = Logger()

    def __init__(self, context: Any, site: Any, reactor: Any) -> None:
        """
        @param context: L{IOpenSSLContextFactory<twisted.internet.interfaces.IOpenSSLContextFactory>}.
        """
        super().__init__(context, False, site, reactor)
        self._reactor = reactor
        self._unsent: list[PromptTransport] = []

    def flush_soon(self, transport: PromptTransport) -> None:
        """Have something sent when this turn is over."""
        if not self._unsent:
            self._reactor.callLater(0, self._flush)
        self._unsent.append(transport)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        for transport in unsent:
            try:
                transport.flush()
            except Exception:
                # Others have something to send, too.
                self._log.failure("what was written to a connection was not sent")
