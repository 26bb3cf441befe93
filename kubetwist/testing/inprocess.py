"""The server in the process of the tests: on a reactor that runs, or on one in a thread."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from .connection import Connection, Reachable, write_token_file
from .reactorthread import running_reactor, wait_for


class InProcessServer(Reachable):
    """
    A server on a running reactor, with an empty store in memory.

    For code that lives on the reactor too, such as trial tests and pytest-twisted: nothing here blocks but C{request},
    which must not be called in the reactor's thread.
    """

    def __init__(
        self,
        *arguments: str,
        data_dir: Path | None = None,
        token_auth_file: Path | None = None,
        reactor: Any = None,
    ) -> None:
        """
        @param arguments: Further flags of C{twist kubeapi}; later ones win over ours.
        @param data_dir: To use and to keep; a temporary one without it.
        @param token_auth_file: Instead of one with a single administrator's token.
        @param reactor: L{None} for the global one.
        """
        self._arguments = arguments
        self._data_dir = data_dir
        self._token_auth_file = token_auth_file
        self._reactor = reactor
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._service: Any = None

    async def start(self) -> InProcessServer:
        """Start, and come back when it is ready."""
        from ..tap import Options, makeService

        self._temporary = tempfile.TemporaryDirectory(prefix="kubetwist-")
        folder = Path(self._temporary.name)
        token, token_auth_file = "", self._token_auth_file
        if token_auth_file is None:
            token, token_auth_file = write_token_file(folder)
        data_dir = self._data_dir or folder / "data"
        options = Options()
        options.parseOptions(
            [
                f"--data-dir={data_dir}",
                "--bind-address=127.0.0.1",
                "--secure-port=0",
                "--storage-backend=memory",
                f"--token-auth-file={token_auth_file}",
                *self._arguments,
            ]
        )
        try:
            self._service = makeService(options)
            self._service.startService()
            await self._service.ready
        except BaseException:
            await self.stop()
            raise
        self._connection = Connection.from_kubeconfig(data_dir / "admin.kubeconfig", token)
        return self

    async def stop(self) -> None:
        """End it: requests that run are finished, watches end, files are removed. Idempotent."""
        service, self._service = self._service, None
        temporary, self._temporary = self._temporary, None
        try:
            if service is not None and service.running:
                await service.stopService()
        finally:
            if temporary is not None:
                temporary.cleanup()

    async def __aenter__(self) -> InProcessServer:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()


class KubeAPI(Reachable):
    """
    A server in this process for tests that know nothing of Twisted: the reactor runs in a thread.

    A context manager; or C{start()} and C{stop()}. Takes the same arguments as L{InProcessServer}.
    """

    def __init__(self, *arguments: str, data_dir: Path | None = None, token_auth_file: Path | None = None) -> None:
        self._server = InProcessServer(*arguments, data_dir=data_dir, token_auth_file=token_auth_file)
        self._reactor: Any = None

    def start(self) -> KubeAPI:
        """Start, and wait until it is ready."""
        self._reactor = running_reactor()
        wait_for(self._reactor, self._server.start)
        self._connection = self._server.connection
        return self

    def stop(self) -> None:
        """End it, and wait for that. Idempotent."""
        if self._reactor is not None:
            wait_for(self._reactor, self._server.stop)

    def __enter__(self) -> KubeAPI:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
