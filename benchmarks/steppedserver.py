"""
A whole server without sockets, threads and real time, whose reactor is stepped: the same requests run the same code.

A real server with the memory backend runs from the received bytes to the sent bytes, except for OpenSSL:
L{PlainTLS} stands for its connection. Threads' work is done at once, and all clocks advance by a fixed step when they
are read. L{remove_chance} must be called before kubetwist is imported.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

from OpenSSL.SSL import WantReadError

from twisted.internet.address import IPv4Address
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.internet.tcp import Connection
from twisted.python.failure import Failure
from zope.interface import implementer

T = TypeVar("T")

#: Seconds that a clock advances when it is read; in the order of what a server spends between two readings.
CLOCK_STEP = 1e-5
#: The time at the start, in seconds since the epoch.
EPOCH = 1_790_000_000.0
#: Delays up to this number of seconds are waited for: work that the server puts off, such as joined events.
MAX_DELAY = 0.05
TOKEN = "stepped-token"


def remove_chance() -> None:
    """Replace the clocks of L{time} by counters, which have no cost in Python, and random numbers by seeded ones."""
    for name in ("perf_counter", "monotonic", "thread_time", "process_time"):
        setattr(time, name, count(1000.0, CLOCK_STEP).__next__)
    time.time = count(EPOCH, CLOCK_STEP).__next__
    random.seed(1)
    os.urandom = random.Random(2).randbytes


class PlainTLS:
    """The part of L{OpenSSL.SSL.Connection} that Twisted uses for a connection with TLS; it leaves data as they are."""

    def __init__(self, protocol: bytes) -> None:
        """@param protocol: What ALPN has chosen."""
        self._protocol = protocol
        self._received: list[bytes] = []
        self._sent: list[bytes] = []
        self._began = False

    def set_accept_state(self) -> None:
        """Be the server."""

    def set_app_data(self, data: object) -> None:
        """Ignore what Twisted keeps with a connection."""

    def do_handshake(self) -> None:
        """
        Need nothing of the client, but as in TLS, not while the connection is made.

        @raise WantReadError: It is the first call.
        """
        if not self._began:
            self._began = True
            raise WantReadError

    def get_alpn_proto_negotiated(self) -> bytes:
        """Return what ALPN has chosen."""
        return self._protocol

    def get_peer_certificate(self) -> None:
        """Return that the client has no certificate."""

    def get_cipher_name(self) -> None:
        """Return that there is no cipher."""

    def bio_write(self, data: bytes) -> int:
        """Take data of the client."""
        self._received.append(data)
        return len(data)

    def recv(self, size: int) -> bytes:
        """Return data of the client."""
        if not self._received:
            raise WantReadError
        return self._received.pop(0)

    def send(self, data: bytes) -> int:
        """Take data for the client."""
        self._sent.append(bytes(data))
        return len(data)

    def bio_read(self, size: int) -> bytes:
        """Return data for the client."""
        if not self._sent:
            raise WantReadError
        data = b"".join(self._sent)
        self._sent = [data[size:]] if len(data) > size else []
        return data[:size]

    def shutdown(self) -> bool:
        """End at once."""
        return True

    def bio_shutdown(self) -> None:
        """End."""


@implementer(IOpenSSLServerConnectionCreator)
class PlainTLSCreator:
    """
    Creates L{PlainTLS}.

    @ivar protocol: What ALPN chooses.
    """

    protocol = b"http/1.1"

    def serverConnectionForTLS(self, protocol: Any) -> Any:
        """Return the connection of a transport."""
        return PlainTLS(self.protocol)


class _DoneAtOnce:
    """A thread pool without threads."""

    def callInThread(self, call: Callable[..., object], *args: object, **kw: object) -> None:
        """Call C{call}."""
        call(*args, **kw)

    def callInThreadWithCallback(
        self, on_result: Callable[[bool, object], object], call: Callable[..., object], *args: object, **kw: object
    ) -> None:
        """Call C{call}, and pass on its result."""
        try:
            result = call(*args, **kw)
        except BaseException:
            on_result(False, Failure())
        else:
            on_result(True, result)


class _Port:
    """What listening returns; clients are connected by L{SteppedServer.connect}."""

    def stopListening(self) -> None:
        """Do nothing."""


class SteppedReactor(ReactorBase):
    """Twisted's own scheduling of calls, without sockets; L{step} is one iteration."""

    def __init__(self) -> None:
        self.now = EPOCH
        self._pool = _DoneAtOnce()
        self._writers: list[Any] = []
        super().__init__()
        self.running = True

    def seconds(self) -> float:
        """Return the time, which L{run_pending} advances."""
        return self.now

    def installWaker(self) -> None:
        """Do nothing: no thread has to be woken."""

    def wakeUp(self) -> None:
        """Do nothing."""

    def getThreadPool(self) -> Any:
        """Return a pool without threads."""
        return self._pool

    def callInThread(self, _callable: Callable[..., Any], *args: object, **kwargs: object) -> None:
        """Call C{_callable} now."""
        self._pool.callInThread(_callable, *args, **kwargs)

    def adoptStreamPort(self, descriptor: int, family: int, factory: object) -> _Port:
        """Return a port at which no client arrives."""
        return _Port()

    def addReader(self, reader: Any) -> None:
        """Do nothing: clients' data are passed to their transports."""

    removeReader = addReader

    def addWriter(self, writer: Any) -> None:
        """Let a transport write in the next iteration."""
        if writer not in self._writers:
            self._writers.append(writer)

    def removeWriter(self, writer: Any) -> None:
        """Let a transport write no longer."""
        if writer in self._writers:
            self._writers.remove(writer)

    def getWriters(self) -> list[Any]:
        """Return the transports that have something to write."""
        return self._writers

    def step(self) -> None:
        """Run the calls that are due, and let transports write."""
        self.runUntilCurrent()
        for writer in tuple(self._writers):
            writer.doWrite()

    def run_pending(self) -> None:
        """Run iterations until nothing is left to do, apart from calls that are due later than L{MAX_DELAY}."""
        while True:
            self.step()
            if self.threadCallQueue or self._writers:
                continue
            delay = self.timeout()
            if delay is None or delay > MAX_DELAY:
                return
            self.now += delay

    def wait(self, awaitable: Deferred[T] | Coroutine[Any, Any, T]) -> T:
        """
        Run iterations until there is a result, and return or raise it.

        @raise RuntimeError: Nothing is left to do, and there is no result.
        """
        results: list[Any] = []
        deferred = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(awaitable)
        deferred.addBoth(results.append)
        while not results:
            self.step()
            delay = self.timeout()
            if delay is None and not (results or self.threadCallQueue or self._writers):
                raise RuntimeError("nothing is left to do, and there is no result")
            self.now += delay or 0.0
        (result,) = results
        if isinstance(result, Failure):
            result.raiseException()
        return cast("T", result)


class MemorySocket:
    """
    The socket of a client's connection, as the server sees it.

    @ivar received: What the server has sent.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []

    def send(self, data: bytes) -> int:
        """Keep data for the client."""
        self.received.append(bytes(data))
        return len(data)

    def setblocking(self, blocking: bool) -> None:
        """Do nothing."""

    def setsockopt(self, *options: object) -> None:
        """Do nothing."""

    def fileno(self) -> int:
        """Return that there is no descriptor."""
        return -1


class MemoryConnection(Connection):
    """Twisted's part of a client's connection."""

    def getPeer(self) -> IPv4Address:
        """Return the address of the client."""
        return IPv4Address("TCP", "127.0.0.1", 40000)

    def getHost(self) -> IPv4Address:
        """Return the address of the server."""
        return IPv4Address("TCP", "127.0.0.1", 6443)


class Client:
    """A connection to a L{SteppedServer}."""

    def __init__(self, socket: MemorySocket, transport: Any) -> None:
        self.socket = socket
        self._receive = transport.dataReceived

    def send(self, message: bytes) -> None:
        """Send data, which the server reads at once; L{SteppedReactor.run_pending} does the rest."""
        self._receive(message)

    def take(self) -> bytes:
        """Return what the server has sent since the last call."""
        data = b"".join(self.socket.received)
        self.socket.received.clear()
        return data

    def message(self, request: bytes) -> bytes:
        """Return the bytes of a request, which is given in HTTP/1.1."""
        return request

    def succeeded(self, answer: bytes) -> bool:
        """Return whether the status of a response is 2xx."""
        return answer[9:10] == b"2"


class Http2Client(Client):
    """A connection with HTTP/2 to a L{SteppedServer}, as of a client with large windows and a header table."""

    def __init__(self, socket: MemorySocket, transport: Any) -> None:
        from jh2._hazmat import Encoder

        from kubetwist.http.http2 import frames as http2

        super().__init__(socket, transport)
        self._encoder = Encoder()
        self._stream_id = -1
        window = http2.MAX_WINDOW
        self.send(
            http2.PREFACE
            + http2.settings_frame([(http2.SETTINGS_INITIAL_WINDOW_SIZE, window)])
            + http2.window_update(0, window - http2.INITIAL_WINDOW)
        )

    def message(self, request: bytes) -> bytes:
        """Return the frames of a request, which is given in HTTP/1.1, with the next stream id."""
        from kubetwist.http.http2 import frames as http2

        head, _, body = request.partition(b"\r\n\r\n")
        (method, path, _), *lines = (line.split(maxsplit=2) for line in head.split(b"\r\n"))
        fields = [(name[:-1].lower(), b" ".join(value)) for name, *value in lines]
        (_, authority), *fields = fields
        pseudo = [(b":method", method), (b":path", path), (b":scheme", b"https"), (b":authority", authority)]
        self._stream_id += 2
        block = self._encoder.encode([(name, value, False) for name, value in (*pseudo, *fields)], True)
        frames: bytes = http2.header_frames(self._stream_id, block, not body)
        return frames + http2.data_frames(self._stream_id, (body,), len(body), True) if body else frames

    def succeeded(self, answer: bytes) -> bool:
        """Return whether the status of a response is 2xx."""
        from kubetwist.http.http2 import frames as http2

        reader = http2.FrameReader(http2.MAX_FRAME_SIZE, b"")
        reader.feed(answer)
        frame = reader.next_frame()
        while frame is not None and frame[0] != http2.HEADERS:
            frame = reader.next_frame()
        # The first block of a connection begins with the size of the table.
        return frame is not None and frame[3].removeprefix(b"\x20").startswith((b"\x88", b"\x08\x032"))


class SteppedServer:
    """A server with the memory backend on a L{SteppedReactor}, with the default filters and admission plugins."""

    def __init__(self, *flags: str) -> None:
        """@param flags: Further flags of C{twist kubeapi}."""
        from kubetwist.server.service import KubeAPIService
        from kubetwist.tap import Options

        self.reactor = SteppedReactor()
        self._folder = tempfile.TemporaryDirectory(prefix="kubetwist-")
        tokens = Path(self._folder.name, "tokens.csv")
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        options = Options()
        options.parseOptions(
            [
                f"--data-dir={self._folder.name}/data",
                "--bind-address=127.0.0.1",
                "--secure-port=0",
                "--in-memory",
                "--controllers=",
                f"--token-auth-file={tokens}",
                *flags,
            ]
        )
        self._service = KubeAPIService(options, cast("Any", self.reactor))

    def start(self) -> None:
        """Start, and return when the server is ready."""
        from kubetwist.http.connection.coalescingtls import CoalescingTLSFactory

        self._service.startService()
        self.reactor.wait(self._service.ready)
        server = self._service.server
        assert server is not None, "the service is ready"
        site = server.site
        self._creator = PlainTLSCreator()
        self._factory = CoalescingTLSFactory(
            cast("Any", self._creator), site, cast("Any", self.reactor), site.write_events
        )

    def close(self) -> None:
        """Remove the files of the server, which is not stopped."""
        self._folder.cleanup()

    def connect(self, *, with_http2: bool = False) -> Client:
        """Connect a client."""
        self._creator.protocol = b"h2" if with_http2 else b"http/1.1"
        socket = MemorySocket()
        connection = MemoryConnection(cast("Any", socket), cast("Any", None), cast("Any", self.reactor))
        connection.connected = True
        transport: Any = self._factory.buildProtocol(connection.getPeer())
        connection.protocol = transport
        transport.makeConnection(connection)
        return (Http2Client if with_http2 else Client)(socket, transport)

    @staticmethod
    def message(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        """Return a request as bytes; underscores in names of headers stand for dashes."""
        fields = {"Host": "127.0.0.1:6443", "Authorization": f"Bearer {TOKEN}", **headers}
        if body:
            fields["Content-Length"] = str(len(body))
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body

    def call(self, client: Client, message: bytes) -> bytes:
        """Send a request, and return the response, which is not parsed."""
        client.send(message)
        self.reactor.run_pending()
        return client.take()
