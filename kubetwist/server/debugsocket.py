"""
C{--debug-socket-path}: C{/debug/flags} and C{/debug/pprof} on a Unix socket, without TLS and authentication.

They are there also if C{--profiling} is off, and answer when the server refuses requests. The mode of the socket is
0600, so that only the user of the server can connect.

@see: kubernetes/apiserver, C{pkg/server/routes/debugsocket.go}.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.error import CannotListenError

from ..filters.requestinfo import with_request_info
from ..http.site import KubeSite, traverse
from ..resources.mux import DelegatingMux, NotFound
from .errors import StartError

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IListeningPort

    from .config import ServerConfig
    from .generic import GenericServer

HOOK: Final = "kubetwist/debug-socket"


def add_debug_socket(config: ServerConfig, server: GenericServer, install: Callable[[DelegatingMux], object]) -> None:
    """
    Listen on the socket of the flag while the server runs.

    Each process of a server with workers has a socket; the number of a worker is appended to the path.

    @param install: Registers the paths.
    """
    path: str = config.options["debug-socket-path"]
    if config.is_front:
        path = f"{path}.{config.workers.number}"
    mux = DelegatingMux("debug-socket", NotFound())  # type: ignore[no-untyped-call] # Twisted has no annotations here
    install(mux)
    debug_socket = DebugSocket(path, mux, config.reactor)
    server.add_post_start_hook(HOOK, debug_socket.start)
    server.register_destroy_func("debug socket", debug_socket.stop)


class DebugSocket:
    """A Unix socket with the resources of a mux."""

    def __init__(self, path: str, mux: DelegatingMux, reactor: Any) -> None:
        """
        @param reactor: Listens; provides L{twisted.internet.interfaces.IReactorUNIX} and L{IReactorTime}.
        """
        self._path = path
        self._site = KubeSite(with_request_info(traverse(mux)), reactor)
        self._reactor = reactor
        self._port: IListeningPort | None = None

    def start(self) -> None:
        """
        Listen. The socket of an earlier process is replaced.

        @raise StartError: The socket cannot be created.
        """
        try:
            with suppress(FileNotFoundError):
                if not stat.S_ISSOCK(os.lstat(self._path).st_mode):
                    raise StartError(f"--debug-socket-path: {self._path} exists, and is not a socket")
                os.unlink(self._path)
            # No other user can connect before the mode is set.
            previous = os.umask(0o177)
            try:
                self._port = self._reactor.listenUNIX(self._path, self._site, mode=0o600)
            finally:
                os.umask(previous)
        except (OSError, CannotListenError) as error:
            raise StartError(f"--debug-socket-path: cannot listen on {self._path}: {error}") from error

    def stop(self) -> Deferred[None] | None:
        """Stop listening, and remove the socket. Idempotent."""
        port, self._port = self._port, None
        return None if port is None else port.stopListening()
