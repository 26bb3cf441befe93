"""Run etcd for tests: members in separate processes, on free ports, with temporary data."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from ..api.renamed import renamed_attributes, renamed_names

#: Directories with the program if it is not on PATH.
PROGRAM: Final = "KUBETWIST_TEST_ETCD"
#: Seconds that members have to start and to stop.
START_TIMEOUT: Final = 30.0


def find_etcd() -> str:
    """
    Find the program: $KUBETWIST_TEST_ETCD, or etcd.

    @return: The path; C{""} if it is not installed.
    """
    return shutil.which(os.environ.get(PROGRAM) or "etcd") or ""


def etcd_skip_reason() -> str:
    """Return the reason to skip a test; C{""} if etcd is installed."""
    return "" if find_etcd() else f"etcd is not installed: install Debian's etcd-server, or set {PROGRAM}"


class EtcdNotReady(Exception):
    """A member ended or timed out before it was ready; the text is its log."""


def reserve_ports(count: int) -> list[socket.socket]:
    """
    Return sockets that are bound to free ports of 127.0.0.1.

    While they are open, the system assigns the ports to no other process, but a program can listen on them.
    """
    sockets: list[socket.socket] = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        sockets.append(one)
    return sockets


class EtcdMember:
    """
    One member.

    @ivar url: The URL for clients.
    @ivar log: The file of its output.
    """

    def __init__(self, name: str, folder: Path, ports: tuple[int, int], tls: TLSFiles | None, flags: tuple[str, ...]):
        self.name = name
        self._data = folder / name
        self.log = folder / f"{name}.log"
        self._tls = tls
        self._flags = flags
        self.port, peer_port = ports
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.peer_url = f"http://127.0.0.1:{peer_port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the process id."""
        assert self._process is not None, "the member was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Return whether the process exists; it may be paused."""
        return self._process is not None and self._process.poll() is None

    def spawn(self, cluster: str) -> None:
        """Start the member without waiting."""
        command = [
            *(find_etcd(), "--name", self.name, "--data-dir", str(self._data), "--logger", "zap"),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url),
            *("--initial-cluster", cluster, "--heartbeat-interval", "20", "--election-timeout", "200"),
            # The suite for all stores has a transaction of 1500 keys; the server has none of that size.
            *("--max-txn-ops", "2000"),
        ]
        if self._tls is not None:
            files = self._tls
            command += ["--cert-file", str(files.certificate), "--key-file", str(files.key)]
            if files.authority is not None:
                command += ["--client-cert-auth", "--trusted-ca-file", str(files.authority)]
        # End the member with the tests, even if they crash.
        if shutil.which("setpriv"):
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with self.log.open("ab") as log:
            # A separate process group: an interrupt at the terminal must only reach the tests.
            self._process = subprocess.Popen(
                [*command, *self._flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        """
        Wait until the member accepts connections.

        @raise EtcdNotReady: The member is not ready in time.
        """
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    raise EtcdNotReady(self.log.read_text(errors="replace")[-4000:]) from None
                time.sleep(0.005)

    def signal(self, number: int) -> None:
        """Send a signal: C{SIGSTOP}, C{SIGCONT}."""
        if self.running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the member; its data are kept."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait(START_TIMEOUT)


class TLSFiles:
    """
    The TLS files of a member.

    @ivar authority: The authority of client certificates; L{None} does not require any.
    """

    def __init__(self, certificate: Path, key: Path, authority: Path | None = None) -> None:
        self.certificate = certificate
        self.key = key
        self.authority = authority


class EtcdServer:
    """
    An etcd of one or more members; a context manager, or C{start()} and C{stop()}.

    @ivar members: In the order of their names.
    """

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes("EtcdServer", {"revive": "start_stopped_members"})

    def __init__(self, members: int = 1, *, tls: TLSFiles | None = None, flags: tuple[str, ...] = ()) -> None:
        """
        @param flags: Further flags of each member.
        """
        # Tests write much data that need not be durable: memory is faster, if it is mounted as a file system.
        parent_folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="kubetwist-etcd-", dir=parent_folder))
        self._reserved = reserve_ports(2 * members)
        ports = [int(one.getsockname()[1]) for one in self._reserved]
        self.members = [
            EtcdMember(f"m{number}", self._folder, (ports[2 * number], ports[2 * number + 1]), tls, flags)
            for number in range(members)
        ]

    @property
    def urls(self) -> list[str]:
        """Return the client URLs of the members."""
        return [member.url for member in self.members]

    @property
    def cluster(self) -> str:
        """Return the value of --initial-cluster."""
        return ",".join(f"{member.name}={member.peer_url}" for member in self.members)

    def start(self) -> EtcdServer:
        """
        Start all members that do not run, and wait for them.

        @raise EtcdNotReady: A member did not start; all members and data are removed.
        """
        try:
            self.start_stopped_members()
        except EtcdNotReady:
            self.stop()
            raise
        return self

    def start_stopped_members(self) -> None:
        """
        Start as L{start} does, but keep members and data after a failure, so that it can be repeated.

        @raise EtcdNotReady: A member did not start.
        """
        starting = [member for member in self.members if not member.running]
        for member in starting:
            member.spawn(self.cluster)
        for member in starting:
            member.wait()

    def stop(self) -> None:
        """Stop all members, and remove their data."""
        for member in self.members:
            member.kill()
        for one in self._reserved:
            one.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> EtcdServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"why_no_etcd": "etcd_skip_reason"})
