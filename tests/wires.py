"""Connections whose two ends are controlled by a test: it waits for data byte by byte, without timing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import ssl
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, wrapClientTLS
from twisted.internet.protocol import Factory, Protocol
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.tls import ClientTLS
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair


class Wire(Protocol):
    """
    One end of a connection.

    @ivar data: The received data that were not taken.
    @ivar total: The number of received bytes.
    @ivar lost: The reason of the loss of the connection; L{None} while it is open.
    """

    transport: Any

    def __init__(self) -> None:
        self.data = bytearray()
        self.total = 0
        self.lost: Failure | None = None
        self._waiting: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def dataReceived(self, data: bytes) -> None:
        """Store the data."""
        self.data += data
        self.total += len(data)
        self._look()

    def connectionLost(self, reason: Failure = Failure(Exception())) -> None:  # noqa: B008
        """Record the loss of the connection."""
        self.lost = reason
        self._look()

    def _look(self) -> None:
        for one in list(self._waiting):
            if one not in self._waiting:
                # The callback of an earlier waiter has completed this one.
                continue
            found = one[0]()
            if found is not None:
                self._waiting.remove(one)
                one[1].callback(found)
            elif self.lost is not None:
                self._waiting.remove(one)
                one[1].errback(AssertionError(f"the connection is lost; there is {bytes(self.data)!r}"))

    def when(self, condition: Callable[[], Any]) -> Deferred[Any]:
        """Return the result of C{condition} as soon as it is not L{None}."""
        waiting: Deferred[Any] = Deferred()
        self._waiting.append((condition, waiting))
        self._look()
        return waiting

    def until(self, end: bytes) -> Deferred[bytes]:
        """Take all data up to and including C{end}."""

        def look() -> bytes | None:
            at = self.data.find(end)
            return None if at < 0 else self._take(at + len(end))

        return self.when(look)

    def take(self, size: int) -> Deferred[bytes]:
        """Take a number of bytes."""
        return self.when(lambda: self._take(size) if len(self.data) >= size else None)

    def arrived(self, total: int) -> Deferred[Any]:
        """Wait until a total number of bytes has arrived, and discard them."""

        def look() -> Any:
            self.data.clear()
            return True if self.total >= total else None

        return self.when(look)

    def end(self) -> Deferred[bytes]:
        """Wait for the end of the connection; return the data until then."""
        return self.when(lambda: self._take(len(self.data)) if self.lost is not None else None)

    def _take(self, size: int) -> bytes:
        taken = bytes(self.data[:size])
        del self.data[:size]
        return taken

    def send(self, data: bytes) -> None:
        """Write data."""
        self.transport.write(data)

    def close(self) -> None:
        """Close the connection cleanly."""
        self.transport.loseConnection()

    def kill(self) -> None:
        """Abort the connection, as the kill of a process does."""
        if self.lost is None:
            self.transport.abortConnection()


class Backend:
    """
    Backend on a free port of this machine.

    @ivar ca: The authority, PEM, if it uses TLS.
    @ivar wires: Its connections in order, including closed ones.
    """

    def __init__(
        self,
        reactor: Any,
        *,
        tls: bool = False,
        names: tuple[str, ...] = ("127.0.0.1",),
        protocols: tuple[bytes, ...] = (b"http/1.1",),
    ) -> None:
        """
        @param tls: Whether it uses TLS.
        @param names: The names in its certificate.
        @param protocols: The protocols that it accepts over TLS.
        """
        self._reactor = reactor
        self._authority = CertificateAuthority.make("backend-ca") if tls else None
        self._clients = CertificateAuthority.make("client-ca") if tls else None
        self._names = names
        self._protocols = list(protocols)
        self._port: Any = None
        self._awaited: list[Deferred[Wire]] = []
        self._untaken: list[Wire] = []
        self.wires: list[Wire] = []

    def start(self, *, require_client: bool = False) -> Backend:
        """Start to listen."""
        factory: Any = Factory.forProtocol(self._accept)
        factory.noisy = False
        if self._authority is not None:
            assert self._clients is not None
            pair = self._authority.issue(CertConfig("backend", names=self._names, server=True))
            certificate = ssl.PrivateCertificate.loadPEM(pair.certificate + pair.key)
            authority = ssl.Certificate.loadPEM(self._clients.pair.certificate)
            options = ssl.CertificateOptions(
                privateKey=certificate.privateKey.original,
                certificate=certificate.original,
                trustRoot=ssl.trustRootFromCertificates([authority]) if require_client else None,
                acceptableProtocols=self._protocols,
            )
            factory = TLSMemoryBIOFactory(options, False, factory)
            factory.noisy = False
        self._port = self._reactor.listenTCP(0, factory, interface="127.0.0.1")
        return self

    def _accept(self) -> Wire:
        backend = self

        class Accepted(Wire):
            def connectionMade(self) -> None:
                backend.wires.append(self)
                if backend._awaited:
                    backend._awaited.pop(0).callback(self)
                else:
                    backend._untaken.append(self)

        return Accepted()

    @property
    def ca(self) -> bytes:
        """Return the authority, PEM."""
        return b"" if self._authority is None else self._authority.pair.certificate

    @property
    def port(self) -> int:
        """Return the port."""
        return self._port.getHost().port  # type: ignore[no-any-return]

    @property
    def url(self) -> str:
        """Return the URL without a path."""
        return f"{'http' if self._authority is None else 'https'}://127.0.0.1:{self.port}"

    def client_pair(self, name: str) -> CertKeyPair:
        """Return a client certificate that it accepts."""
        assert self._clients is not None
        return self._clients.issue(CertConfig(name))

    def connection(self) -> Deferred[Wire]:
        """Return the next connection that was not returned yet."""
        waiting: Deferred[Wire] = Deferred()
        if self._untaken:
            waiting.callback(self._untaken.pop(0))
        else:
            self._awaited.append(waiting)
        return waiting

    async def stop(self) -> None:
        """Close all connections, and stop listening."""
        if self._port is not None:
            await self._port.stopListening()
            self._port = None
        for wire in self.wires:
            if wire.lost is None:
                wire.kill()
                await wire.end()


async def connect(reactor: Any, port: int, *, ca: bytes = b"", protocols: tuple[bytes, ...] = (b"http/1.1",)) -> Wire:
    """
    Connect to this machine.

    @param ca: The authority of the server's certificate; without it no TLS is used.
    @param protocols: The protocols that are offered over TLS.
    """
    endpoint: Any = TCP4ClientEndpoint(reactor, "127.0.0.1", port)
    if ca:
        endpoint = wrapClientTLS(ClientTLS(RESTConfig(url="", ca=ca), "127.0.0.1", protocols), endpoint)
    factory: Any = Factory.forProtocol(Wire)
    factory.noisy = False
    wire: Wire = await endpoint.connect(factory)
    return wire
