"""Clients of Python libraries for a connection. The libraries are optional, and imported at first use."""

from __future__ import annotations

from collections.abc import Awaitable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treq.client import HTTPClient


class ClientFactories:
    """
    Methods that return clients; the base class of L{kubetwist.testing._connection.Connection}, which has the data.

    All clients have the identity of the connection.
    """

    __slots__ = ()

    url: str
    kubeconfig: Path
    token: str
    ca: str
    client_certificate: str
    client_key: str
    namespace: str

    def kubernetes(self) -> Any:
        """Return a new C{kubernetes.client.ApiClient}, which the caller closes."""
        config = import_client("kubernetes.config", "kubernetes")
        return config.new_client_from_config(str(self.kubeconfig))

    def kubernetes_aio(self) -> Awaitable[Any]:
        """Return an awaitable for a new C{kubernetes.aio.client.ApiClient}, of kubernetes 36 and later."""
        config = import_client("kubernetes.aio.config", "kubernetes>=36")
        client: Awaitable[Any] = config.new_client_from_config(config_file=str(self.kubeconfig))
        return client

    def kubernetes_asyncio(self) -> Awaitable[Any]:
        """
        Return an awaitable for a new C{kubernetes_asyncio.client.ApiClient}.

        C{async with await connection.kubernetes_asyncio() as api:} closes it.
        """
        config = import_client("kubernetes_asyncio.config", "kubernetes-asyncio")
        client: Awaitable[Any] = config.new_client_from_config(config_file=str(self.kubeconfig))
        return client

    def kr8s(self) -> Any:
        """Return a C{kr8s} API object."""
        return import_client("kr8s", "kr8s").api(kubeconfig=str(self.kubeconfig))

    def kr8s_async(self) -> Awaitable[Any]:
        """Return an awaitable for a C{kr8s.asyncio} API object."""
        client: Awaitable[Any] = import_client("kr8s.asyncio", "kr8s").api(kubeconfig=str(self.kubeconfig))
        return client

    def lightkube(self) -> Any:
        """Return a new C{lightkube.Client}."""
        return self._lightkube("Client")

    def lightkube_async(self) -> Any:
        """Return a new C{lightkube.AsyncClient}."""
        return self._lightkube("AsyncClient")

    def _lightkube(self, name: str) -> Any:
        library = import_client("lightkube", "lightkube")
        return getattr(library, name)(config=library.KubeConfig.from_file(str(self.kubeconfig)))

    def pykube(self) -> Any:
        """Return a new C{pykube.HTTPClient} of pykube-ng."""
        library = import_client("pykube", "pykube-ng")
        return library.HTTPClient(library.KubeConfig.from_file(str(self.kubeconfig)))

    def kopf(self) -> Any:
        """Return a C{kopf.ConnectionInfo}, for an operator's C{@kopf.on.login()} handler."""
        kopf = import_client("kopf", "kopf")
        credentials: dict[str, Any]
        if self.client_certificate:
            credentials = {
                "certificate_data": self.client_certificate.encode(),
                "private_key_data": self.client_key.encode(),
            }
        else:
            credentials = {"scheme": "Bearer", "token": self.token}
        return kopf.ConnectionInfo(
            server=self.url, ca_data=self.ca.encode(), default_namespace=self.namespace or None, **credentials
        )

    def treq(self, reactor: Any = None) -> HTTPClient:
        """
        Return a new treq client: it authenticates, trusts this server only, and URLs may be paths of the server.

        @param reactor: L{None} for the global one.
        """
        from ._treqclient import treq_client

        # One of both is enough.
        certificate = "" if self.token else self.client_certificate + self.client_key
        return treq_client(self.url, self.token, self.ca, reactor, certificate)


def import_client(module: str, requirement: str) -> Any:
    """
    Import a module of an optional library.

    @param requirement: What to install if it is missing.
    @raise ModuleNotFoundError: It is missing; the text has the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # Another module may be missing that the library imports.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ModuleNotFoundError(f"this needs {module}: pip install '{requirement}'", name=error.name) from None
