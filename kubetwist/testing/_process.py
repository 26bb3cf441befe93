"""A server in a separate process, as in production, which a test starts and kills."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from ..api.jsontypes import JSONObject
from ._connection import (
    Connection,
    ServerHandle,
    write_token_file,
)
from ._credentials import write_user_key
from ._eventually import EventuallyMixin
from ._processactivity import AuditLog, configures_audit
from ._simulation import SimulationMixin
from ._waiting import WaitingMixin

if TYPE_CHECKING:
    from ._activity import RecentActivity
    from .manifests import Objects, Sources


class ServerNotReady(Exception):
    """The server ended or timed out before it was ready; the text is its log."""


class SubprocessServer(WaitingMixin, EventuallyMixin, SimulationMixin, ServerHandle):
    """
    C{twist kubeapi} on a free port of 127.0.0.1, with a separate data directory.

    A context manager; or C{start()} and C{stop()}. It can be started again after C{stop()} or C{kill()}: on the same
    port, with the same data.

    @ivar data_dir: Removed when the context ends, unless it was given.
    @ivar log: The file of the server's output.
    """

    def __init__(
        self,
        *arguments: str,
        data_dir: Path | None = None,
        token_auth_file: Path | None = None,
        load: Sources = (),
        timeout: float = 30,
        record_requests: bool = False,
    ) -> None:
        """
        @param arguments: Further flags of C{twist kubeapi}.
        @param data_dir: An existing directory to use and keep; a temporary one by default.
        @param token_auth_file: Replaces the default file with a single administrator's token.
        @param load: What the first L{start} loads: paths, glob patterns and objects.
        @param timeout: Seconds to wait for the server to be ready, and to end.
        @param record_requests: Whether an audit log is written, for the requests in reports of failed tests; without
            effect if C{arguments} configure auditing.
        """
        self._arguments = arguments
        self._load = load
        self._timeout = timeout
        self._temporary: tempfile.TemporaryDirectory[str] | None = tempfile.TemporaryDirectory(prefix="kubetwist-")
        self._folder = Path(self._temporary.name)
        self.data_dir = data_dir or self._folder / "data"
        self.log = self._folder / "server.log"
        self._token = ""
        if token_auth_file is None:
            self._token, token_auth_file = write_token_file(self._folder)
        self._token_auth_file = token_auth_file
        self._user_key, self._user_key_flag = write_user_key(self._folder)
        self._audit_log = AuditLog(self._folder) if record_requests and not configures_audit(arguments) else None
        self._process: subprocess.Popen[bytes] | None = None
        self._notify: socket.socket | None = None
        self._port = 0

    @property
    def pid(self) -> int:
        """Return the process id."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self) -> SubprocessServer:
        """
        Start the server, and wait until it is ready; the first start also loads the objects.

        @raise ServerNotReady: The start failed.
        @raise kubetwist.testing.manifests.LoadError: A file cannot be read, or the server rejected an object.
        """
        notify_path = self._folder / "notify"
        notify_path.unlink(missing_ok=True)
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(notify_path))
        try:
            with self.log.open("ab") as log:
                self._process = self._spawn(notify_path, log)
            self._await_ready()
        except BaseException:
            self.kill()
            raise
        self._connection = Connection.from_kubeconfig(
            self.data_dir / "admin.kubeconfig", self._token, self._folder, self._user_key
        )
        self._port = self._connection.port
        if self._load:
            from ._loading import load_sources

            try:
                load_sources(self._connection, self._load)
            except BaseException:
                self.kill()
                raise
            # A later start serves the same data.
            self._load = ()
        return self

    def load(self, source: Objects, namespace: str = "default") -> list[JSONObject]:
        """As L{InProcessServer.load}."""
        from ._loading import load_objects

        return load_objects(self.connection, source, namespace)

    def _spawn(self, notify_path: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            *("-m", "twisted", "kubeapi"),
            f"--data-dir={self.data_dir}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--token-auth-file={self._token_auth_file}",
            self._user_key_flag,
            *(() if self._audit_log is None else self._audit_log.flags),
            *self._arguments,
        ]
        environment = os.environ | {"NOTIFY_SOCKET": str(notify_path)}
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def _await_ready(self) -> None:
        """Wait for READY=1, as a service manager does, and check periodically that the process is running."""
        assert self._process is not None and self._notify is not None
        self._notify.settimeout(0.1)
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline:
            try:
                if b"READY=1" in self._notify.recv(4096).splitlines():
                    return
            except TimeoutError:
                code = self._process.poll()
                if code is not None:
                    raise ServerNotReady(f"exit code {code}\n{self.output()}") from None
        raise ServerNotReady(f"not ready after {self._timeout} s\n{self.output()}")

    def activity_since(self, moment: float) -> RecentActivity | None:
        """
        Return the last requests since a moment; L{None} if they are not recorded.

        @param moment: A value of L{time.perf_counter}.
        """
        return None if self._audit_log is None else self._audit_log.since(moment, self.connection)

    def output(self) -> str:
        """Return the output of the server so far."""
        return self.log.read_text("utf-8", "replace")

    def stop(self) -> int:
        """
        Stop the server, and wait for its end.

        @return: Its exit code; 0 after a clean end, also when it was not running.
        """
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            return process.wait(self._timeout)
        finally:
            self._end(process)

    def kill(self) -> None:
        """Kill the process with SIGKILL, without any cleanup, like a power failure."""
        process, self._process = self._process, None
        self._end(process)

    def _end(self, process: subprocess.Popen[bytes] | None) -> None:
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def __enter__(self) -> SubprocessServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = None
