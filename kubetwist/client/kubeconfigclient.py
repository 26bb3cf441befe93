"""Clients with settings from a kubeconfig that is reloaded when it changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..api.filewatcher import FileWatcher
from .errors import InvalidRESTConfig
from .factory import ClientFactory
from .httpclient import (
    Response,
    WebhookClient,
)
from .kubeconfig import (
    named_files,
    parse_kubeconfig,
)
from .restconfig import RESTConfig


class KubeconfigClient:
    """Client of the server in the current kubeconfig."""

    def __init__(self, outgoing: ClientFactory, files: FileWatcher, path: str | Path, source: str) -> None:
        """
        Read the file, and watch it for changes.

        @param files: The watcher of files.
        @param source: The name of the file in the log: a flag.
        @raise InvalidRESTConfig: It cannot be read, or is invalid.
        """
        self._outgoing = outgoing
        self._path = Path(path)
        try:
            settings, _ = files.watch([path], self._load, self._use, source, also=lambda loaded: loaded[1])
        except OSError as error:
            raise InvalidRESTConfig(f"cannot read {error.filename}: {error.strerror}") from error
        self._client: WebhookClient = outgoing.client(settings)

    def _load(self, contents: Sequence[bytes]) -> tuple[RESTConfig, list[Path]]:
        folder = self._path.parent
        return parse_kubeconfig(contents[0], folder, str(self._path)), named_files(contents[0], folder)

    def _use(self, loaded: tuple[RESTConfig, list[Path]]) -> None:
        previous, self._client = self._client, self._outgoing.client(loaded[0])
        previous.retire()

    async def post(self, body: bytes, *, timeout: float) -> Response:
        """@see: L{WebhookClient.post}."""
        return await self._client.post(body, timeout=timeout)

    def retire(self) -> None:
        """@see: L{WebhookClient.retire}."""
        self._client.retire()
