"""
Servers that several processes of one test run share: the controller of pytest-xdist starts them for its workers.

The controller listens on a Unix socket. A worker sends the flags of a server as a line of JSON, and receives the
connection. The first worker of a server prepares it, and confirms that; the workers after it wait for this.
"""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import asdict

from ..api.jsontypes import JSONObject
from ._connection import Connection, ServerHandle
from ._eventually import EventuallyMixin
from ._simulation import SimulationMixin
from ._waiting import WaitingMixin

if TYPE_CHECKING:
    from .manifests import Objects

#: The kind of a server, and its flags.
_Key: TypeAlias = tuple[str, tuple[str, ...]]
#: Maximum size of a message in bytes.
_MAX_MESSAGE: Final = 1024 * 1024
#: Attributes of servers that would disturb the tests of other workers.
_DISTURBING: Final = frozenset(
    (
        "advance_time",
        "clear_faults",
        "compact",
        "disturb_watches",
        "end_watches",
        "freeze_time",
        "inject",
        "record_requests",
        "reset",
        "reset_clock",
        "restore",
        "resume_time",
        "set_baseline",
        "snapshot",
    )
)


class SharedServers:
    """
    The servers of a controller. They start when they are requested, and run until L{stop}.

    @ivar address: The path of the socket.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kubetwist-")
        self.address = str(Path(self._folder.name) / "servers")
        self._servers: dict[_Key, tuple[threading.Lock, list[Any]]] = {}
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.address)
        self._listener.listen(64)
        self._stopped = False
        threading.Thread(target=self._accept, name="kubetwist servers", daemon=True).start()

    def stop(self) -> None:
        """Stop all servers. Idempotent."""
        with self._lock:
            stopped, self._stopped = self._stopped, True
            servers, self._servers = self._servers, {}
        if stopped:
            return
        # A shutdown, unlike a close, ends the accept in the other thread.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for _, started in servers.values():
            for server in started:
                server.__exit__(None, None, None)
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], name="kubetwist server", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one worker."""
        with connection, connection.makefile("rwb") as stream:
            request = json.loads(stream.readline(_MAX_MESSAGE))
            key = request["kind"], tuple(request["arguments"])
            with self._lock:
                if self._stopped:
                    return
                lock, started = self._servers.setdefault(key, (threading.Lock(), []))
            # The lock is held until the first worker has prepared the server.
            with lock:
                try:
                    new = not started
                    server = _started(*key) if new else started[0]
                except Exception as error:
                    _send(stream, {"error": f"{type(error).__name__}: {error}"})
                    return
                _send(stream, {"new": new, "connection": _fields(server.connection)})
                if not new:
                    return
                if stream.readline(_MAX_MESSAGE):
                    started.append(server)
                    _send(stream, {})
                else:
                    # The preparation has failed, and the next worker is to try it with a new server.
                    server.__exit__(None, None, None)


def _started(kind: str, arguments: Sequence[str]) -> Any:
    if kind == "process":
        from ._process import SubprocessServer

        return SubprocessServer(*arguments).start()
    from ._child import ChildKubeAPI

    server = ChildKubeAPI(*arguments).start()
    server.settle()
    return server


def _fields(connection: Connection) -> dict[str, Any]:
    """Return a connection as JSON."""
    fields = asdict(connection, recurse=False)
    return {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}


def _connection(fields: dict[str, Any]) -> Connection:
    folder = fields["folder"]
    paths = {"kubeconfig": Path(fields["kubeconfig"]), "folder": None if folder is None else Path(folder)}
    return Connection(**{**fields, **paths})


def _send(stream: Any, message: dict[str, Any]) -> None:
    try:
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()
    except BrokenPipeError:
        # The worker has ended.
        pass


class SharedServerError(Exception):
    """The controller cannot start a server; the text is the reason."""


class SharedServer(WaitingMixin, EventuallyMixin, SimulationMixin, ServerHandle):
    """A server of the controller, in a worker. It lacks the methods that would disturb other workers."""

    def __init__(self, address: str, kind: str, *arguments: str) -> None:
        """
        @param address: The socket of the controller.
        @param kind: C{"process"}, or C{"child"}.
        @param arguments: Flags of C{twist kubeapi}.
        """
        self._address = address
        self._request = {"kind": kind, "arguments": arguments}

    def prepared(self, prepare: Callable[[SharedServer], object]) -> SharedServer:
        """
        Connect to the server; call C{prepare} if no worker has done so before, and wait until one has done so.

        @raise SharedServerError: The server cannot be started.
        """
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._address)
            with connection.makefile("rwb") as stream:
                _send(stream, self._request)
                line = stream.readline(_MAX_MESSAGE)
                if not line:
                    raise SharedServerError("the controller has stopped")
                answer = json.loads(line)
                if "error" in answer:
                    raise SharedServerError(answer["error"])
                self._connection = _connection(answer["connection"])
                if answer["new"]:
                    prepare(self)
                    _send(stream, {})
                    stream.readline(_MAX_MESSAGE)
        return self

    def load(self, source: Objects, namespace: str = "default") -> list[JSONObject]:
        """As L{InProcessServer.load}."""
        from ._loading import load_objects

        return load_objects(self.connection, source, namespace)

    def __getattr__(self, name: str) -> Any:
        if name in _DISTURBING:
            raise AttributeError(
                f"{name} would disturb the tests of other workers, which share this server: set kubetwist_xdist ="
                " worker"
            )
        raise AttributeError(name)
