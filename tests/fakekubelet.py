"""
A kubelet for tests in a separate process: commands are executed, ports are ports of this machine, logs are files.

C{python -m tests.fakekubelet FOLDER}, where the folder has F{kubelet.crt}, F{kubelet.key}, and F{clients.crt}, whose
certificates clients must have. It prints its port. The log of a container is F{FOLDER/logs/NAMESPACE/POD/CONTAINER},
the log of its last run has the suffix C{.previous}. F{FOLDER/requests} has one line for each request,
F{FOLDER/abandoned} the URI of each log whose client was lost.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.interfaces import IPullProducer
from twisted.internet.protocol import ClientFactory, ProcessProtocol, Protocol
from twisted.internet.ssl import Certificate, CertificateOptions, trustRootFromCertificates
from twisted.internet.task import LoopingCall
from zope.interface import implementer

from kubetwist.http.request import KubeRequest
from kubetwist.http.site import KubeSite
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.streams.kubeletserver import Session, serve_command, serve_port_forward

PIECE = 64 * 1024
#: Poll interval of a followed log in seconds.
LOOK = 0.02
TIMESTAMP = b"2026-01-02T03:04:05.000000006Z "


class FakeKubelet:
    """Handler that responds like a kubelet."""

    def __init__(self, reactor: Any, folder: Path, *, websocket: bool = True) -> None:
        self._reactor = reactor
        self._folder = folder
        self._websocket = websocket

    def handle(self, request: KubeRequest) -> None:
        """Handle a request."""
        parts = request.path.decode().strip("/").split("/")
        with (self._folder / "requests").open("a") as requests:
            requests.write(f"{request.method.decode()} {request.uri.decode()}\n")
        if parts[0] == "containerLogs" and len(parts) == 4:
            self._log(request, *parts[1:])
        elif parts[0] == "redirect" or request.query.get("command") == ["redirect"]:
            request.setHeader(b"Location", b"https://elsewhere.example/")
            request.respond(302, b"", b"")
        elif parts[0] == "exec":
            command = request.query.get("command", [])
            serve_command(request, lambda session: self._run(session, command), reactor=self._reactor)
        elif parts[0] == "attach":
            command = ["sh", "-c", "echo attached; exec cat"]
            serve_command(request, lambda session: self._run(session, command), reactor=self._reactor)
        elif parts[0] == "portForward":
            serve_port_forward(request, self._dial, reactor=self._reactor)
        elif parts[0] == "healthz":
            request.respond_text(200, "ok")
        else:
            body = b"%b %b %b" % (request.method, request.uri, request.read_body())
            request.respond(200, body, b"text/plain")

    # Logs.

    def _log(self, request: KubeRequest, namespace: str, pod: str, container: str) -> None:
        query = {name: values[0] for name, values in request.query.items()}
        suffix = ".previous" if query.get("previous") == "true" else ""
        path = self._folder / "logs" / namespace / pod / f"{container}{suffix}"
        if not path.exists():
            text = f'previous terminated container "{container}" in pod "{pod}" not found' if suffix else "no log"
            request.respond_text(400 if suffix else 404, text)
            return
        request.setHeader(b"Content-Type", b"text/plain")
        if set(query) & {"tailLines", "limitBytes", "timestamps"}:
            lines = path.read_bytes().splitlines(True)
            if "tailLines" in query:
                lines = lines[len(lines) - int(query["tailLines"]) :]
            if "timestamps" in query:
                lines = [TIMESTAMP + line for line in lines]
            limit = int(query["limitBytes"]) if "limitBytes" in query else None
            request.respond(200, b"".join(lines)[:limit], b"text/plain")
            return
        log = _Log(request, path, query.get("follow") == "true", self._reactor)
        request.registerProducer(log, False)
        request.notifyFinish().addErrback(lambda _: self._log_abandoned(request, log))

    def _log_abandoned(self, request: KubeRequest, log: _Log) -> None:
        """Handle that the client of a log is lost."""
        log.stopProducing()
        with (self._folder / "abandoned").open("a") as abandoned:
            abandoned.write(f"{request.uri.decode()}\n")

    # Commands.

    def _run(self, session: Session, command: list[str]) -> None:
        tty = session.command.tty
        process = _Command(session)
        try:
            self._reactor.spawnProcess(process, command[0], command, env=dict(os.environ, TERM="xterm"), usePTY=tty)
        except OSError as error:
            session.write(str(error).encode(), "stderr")
            session.exit(127)

    # Ports.

    def _dial(self, port: int, write: Callable[[bytes], None], end: Callable[[], None]) -> Callable[[Any], None]:
        local = _Local(write, end)
        factory = _LocalFactory(local, end)
        self._reactor.connectTCP("127.0.0.1", port, factory)
        return local.take


@implementer(IPullProducer)
class _Log:
    """A log that is sent with backpressure."""

    def __init__(self, request: KubeRequest, path: Path, follow: bool, reactor: Any) -> None:
        self._request = request
        self._file = path.open("rb")
        self._look: LoopingCall | None = None
        if follow:
            self._look = LoopingCall(self._more)
            self._look.clock = reactor

    def resumeProducing(self) -> None:
        """Write the next chunk."""
        piece = self._file.read(PIECE)
        if piece:
            self._request.write(piece)
            return
        self._request.unregisterProducer()
        if self._look is not None:
            self._look.start(LOOK)
        else:
            self._file.close()
            self._request.finish()

    def _more(self) -> None:
        piece = self._file.read(PIECE)
        if piece:
            self._request.write(piece)

    def stopProducing(self) -> None:
        """Stop at the loss of the connection."""
        if self._look is not None and self._look.running:
            self._look.stop()
        self._file.close()


class _Command(ProcessProtocol):
    """A process and the streams of its client."""

    transport: Any

    def __init__(self, session: Session) -> None:
        self._session = session

    def connectionMade(self) -> None:
        session = self._session
        session.on_stdin = self._stdin
        session.on_resize = self._resize
        session.on_connection_lost = self._gone
        session.on_backpressure = self._pressure

    def _stdin(self, data: bytes | None) -> None:
        if data is not None:
            self.transport.write(data)
        elif self._session.command.tty:
            self.transport.write(b"\x04")
        else:
            self.transport.closeStdin()

    def _resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.transport.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def _gone(self) -> None:
        if self.transport.pid is not None:
            self.transport.signalProcess("KILL")

    def _pressure(self, full: bool) -> None:
        readers = [self.transport] if self._session.command.tty else list(self.transport.pipes.values())
        for reader in readers:
            if hasattr(reader, "pauseProducing"):
                if full:
                    reader.pauseProducing()
                else:
                    reader.resumeProducing()

    def outReceived(self, data: bytes) -> None:
        self._session.write(data)

    def errReceived(self, data: bytes) -> None:
        self._session.write(data, "stderr")

    def processEnded(self, reason: Any) -> None:
        value = reason.value
        self._session.exit(128 + value.signal if value.signal else value.exitCode or 0)


class _Local(Protocol):
    """A connection to a port of this machine."""

    def __init__(self, write: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._write = write
        self._end = end
        self._early: list[bytes | None] = []

    def take(self, data: bytes | None) -> None:
        """Handle data of the client; L{None} at its end."""
        if self.transport is None:
            self._early.append(data)
        elif data is None:
            self.transport.loseConnection()
        else:
            self.transport.write(data)

    def connectionMade(self) -> None:
        early, self._early = self._early, []
        for data in early:
            self.take(data)

    def dataReceived(self, data: bytes) -> None:
        self._write(data)

    def connectionLost(self, reason: Any = None) -> None:
        self._end()


class _LocalFactory(ClientFactory):
    noisy = False

    def __init__(self, protocol: Protocol, end: Callable[[], None]) -> None:
        self._protocol = protocol
        self._end = end

    def buildProtocol(self, addr: Any) -> Protocol:
        return self._protocol

    def clientConnectionFailed(self, connector: Any, reason: Any) -> None:
        self._end()


class KubeletProcess:
    """
    A L{FakeKubelet} in a separate process.

    @ivar folder: The directory of its files.
    @ivar port: Its port on 127.0.0.1.
    """

    def __init__(self, folder: Path, authority: CertificateAuthority | None = None) -> None:
        """
        Create its certificate.

        @param authority: The CA of the certificate, written to F{ca.crt}; a new one by default.
        """
        self.folder = folder
        self.port = 0
        self.authority = authority or CertificateAuthority.make("kubelets-ca")
        self._process: subprocess.Popen[str] | None = None
        pair = self.authority.issue(CertConfig("system:node:fake", "system:nodes", ("127.0.0.1", "localhost"), True))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.crt").write_bytes(self.authority.pair.certificate)
        (folder / "kubelet.crt").write_bytes(pair.certificate)
        (folder / "kubelet.key").write_bytes(pair.key)
        for name in ("requests", "abandoned"):
            (folder / name).touch()

    @classmethod
    def beside(cls, other: KubeletProcess, name: str) -> KubeletProcess:
        """Return another kubelet with a certificate of the same authority."""
        return cls(other.folder.parent / name, other.authority)

    def start(self, clients: bytes) -> None:
        """
        Start the process.

        @param clients: The CA of the client certificates, PEM.
        """
        (self.folder / "clients.crt").write_bytes(clients)
        command = [sys.executable, "-m", "tests.fakekubelet", str(self.folder)]
        root = Path(__file__).parent.parent
        self._process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill the process, like a power failure. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def log(self, namespace: str, pod: str, container: str) -> Path:
        """Return the file of a container's log."""
        path = self.folder / "logs" / namespace / pod / container
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def requests(self) -> list[str]:
        """Return the received requests."""
        return (self.folder / "requests").read_text().splitlines()

    def abandoned(self) -> list[str]:
        """Return the URIs of logs whose clients were lost."""
        return (self.folder / "abandoned").read_text().splitlines()


def main(folder: Path) -> None:
    """Serve until killed."""
    from twisted.internet import reactor as the_reactor

    reactor: Any = the_reactor
    own = Certificate.loadPEM((folder / "kubelet.crt").read_bytes())
    from OpenSSL import crypto

    key = crypto.load_privatekey(crypto.FILETYPE_PEM, (folder / "kubelet.key").read_bytes())
    clients = Certificate.loadPEM((folder / "clients.crt").read_bytes())
    options = CertificateOptions(
        privateKey=key, certificate=own.original, trustRoot=trustRootFromCertificates([clients])
    )
    site = KubeSite(FakeKubelet(reactor, folder).handle, reactor)
    port = reactor.listenSSL(0, site, options, interface="127.0.0.1")
    print(port.getHost().port, flush=True)
    reactor.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
