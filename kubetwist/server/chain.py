"""The chain of servers: Aggregator, KubeAPIServer, APIExtensions, and the end of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ..http.request import KubeRequest
from .config import ServerConfig
from .generic import GenericServer

#: Puts APIs on the three servers.
Installer = Callable[[ServerConfig, GenericServer, GenericServer, GenericServer], Any]


class NotFound(Resource):
    """The end of the chain: nobody serves the path."""

    isLeaf = True

    def render(self, request: KubeRequest) -> Any:
        """Answer in plain text, whatever the method."""
        request.respond_text(404, "404 page not found\n")
        return NOT_DONE_YET


def create_server_chain(config: ServerConfig, install: Installer | None = None) -> GenericServer:
    """
    Build the three servers, each knowing only the next.

    @param install: Puts APIs on them; L{None} for those of Kubernetes.
    @return: The one in front.
    """
    if install is None:
        from ..resources.apis import install_apis
        from .credentials.kubelet import KubeletCredentials

        config.kubelet_credentials = KubeletCredentials(config.options, config.reactor, config.data, config.files)
        install = install_apis
    extensions = GenericServer("apiextensions-apiserver", NotFound())  # type: ignore[no-untyped-call]
    kube = GenericServer("kube-apiserver", extensions)
    aggregator = GenericServer("kube-aggregator", kube)
    install(config, aggregator, kube, extensions)
    return aggregator
