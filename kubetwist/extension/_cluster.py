"""Client of the Kubernetes API server in front of an extension server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson
from attrs import evolve

from ..api.filewatcher import FileWatcher
from ..client.errors import InvalidRESTConfig
from ..client.factory import ClientFactory
from ..client.httpclient import (
    Response,
    WebhookClient,
)
from ..client.kubeconfig import (
    named_files,
    parse_kubeconfig,
)
from ..client.restconfig import RESTConfig

#: The directory with the service account's credentials in every pod.
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Maximum size of a response in bytes.
_LIMIT: Final = 4 * 1024 * 1024


class KubeAPIClient:
    """
    Client of the API server in a kubeconfig, which is reloaded when it changes.

    @ivar description: The kubeconfig, for messages.
    """

    def __init__(
        self, outgoing: ClientFactory, files: FileWatcher, path: str, environment: Mapping[str, str] = os.environ
    ) -> None:
        """
        Read the kubeconfig, and watch it for changes.

        @param outgoing: The factory of clients.
        @param files: L{kubetwist.server.watchedfiles.FileReloader}.
        @param path: The kubeconfig; C{""} for the credentials of this pod.
        @param environment: The environment variables.
        @raise InvalidRESTConfig: There is no kubeconfig, or it is invalid.
        """
        self._outgoing = outgoing
        self._clients: dict[str, WebhookClient] = {}
        self.description = path or "the pod's service account"
        if path:
            self._folder, self._settings = Path(path).parent, self._watch_kubeconfig(files, Path(path))
        else:
            self._folder, self._settings = SERVICE_ACCOUNT, self._watch_service_account(files, environment)

    def _watch_kubeconfig(self, files: FileWatcher, path: Path) -> RESTConfig:
        def load(contents: Sequence[bytes]) -> tuple[RESTConfig, list[Path]]:
            return parse_kubeconfig(contents[0], path.parent, str(path)), named_files(contents[0], path.parent)

        try:
            config: RESTConfig = files.watch([path], load, self._reload, "--kubeconfig", also=lambda one: one[1])[0]
        except OSError as error:
            raise InvalidRESTConfig(f"cannot read {error.filename}: {error.strerror}") from error
        return config

    def _watch_service_account(self, files: FileWatcher, environment: Mapping[str, str]) -> RESTConfig:
        host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise InvalidRESTConfig("--kubeconfig is not set, and the server does not run in a pod")
        content = in_cluster_kubeconfig(host, port)

        def load(contents: Sequence[bytes]) -> tuple[RESTConfig, list[Path]]:
            return parse_kubeconfig(content, SERVICE_ACCOUNT, "the pod's service account"), []

        paths = [SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"]
        try:
            config: RESTConfig = files.watch(paths, load, self._reload, "the pod's service account")[0]
        except OSError as error:
            raise InvalidRESTConfig(f"cannot read {error.filename}: {error.strerror}") from error
        return config

    def _reload(self, loaded: tuple[RESTConfig, list[Path]]) -> None:
        self._settings = loaded[0]
        old_clients, self._clients = self._clients, {}
        for client in old_clients.values():
            client.retire()

    def client(self, path: str) -> WebhookClient:
        """Return the client for a path."""
        client = self._clients.get(path)
        if client is None:
            settings = evolve(self._settings, url=self._settings.url.rstrip("/") + path)
            client = self._clients[path] = self._outgoing.client(settings, limit=_LIMIT)
        return client

    async def get(self, path: str, timeout: float) -> Response:
        """
        Send a GET request for a path.

        @param timeout: In seconds.
        @raise kubetwist.client.errors.CallError: There is no response.
        """
        return await self.client(path).get(timeout=timeout)


class PathClient:
    """A path of a L{KubeAPIClient}, with the interface of a client for one URL."""

    def __init__(self, cluster: KubeAPIClient, path: str) -> None:
        self._cluster = cluster
        self._path = path

    async def post(self, body: bytes, *, timeout: float) -> Response:
        """See L{WebhookClient.post}."""
        return await self._cluster.client(self._path).post(body, timeout=timeout, show_timeout=False)


def in_cluster_kubeconfig(host: str, port: str) -> bytes:
    """Return a kubeconfig for the server address in a pod's environment and the files of its service account."""
    address = f"[{host}]" if ":" in host else host
    return orjson.dumps(
        {
            "clusters": [
                {"name": "pod", "cluster": {"server": f"https://{address}:{port}", "certificate-authority": "ca.crt"}}
            ],
            "users": [{"name": "pod", "user": {"tokenFile": "token"}}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
            "current-context": "pod",
        }
    )
