"""The chain of servers: aggregator, kube-apiserver, apiextensions-apiserver, and its end."""

from __future__ import annotations

from ..resources.mux import NotFound
from .apis import Installer
from .apiserver import APIServer
from .config import ServerConfig
from .generic import GenericServer
from .hooknames import hook_order


def create_server_chain(
    config: ServerConfig, install: Installer | None = None, server_type: type[APIServer] = APIServer
) -> APIServer:
    """
    Build the three servers, each of which delegates to the next.

    @param config: The complete configuration.
    @param install: Installs APIs on them; L{None} for the APIs of Kubernetes.
    @param server_type: The type of the server in front.
    @return: The server in front.
    """
    if install is None:
        from ..resources.apis import install_apis

        install = install_apis
    end = NotFound()  # type: ignore[no-untyped-call] # Twisted has no annotations here
    order = hook_order(config.features)
    extensions = GenericServer("apiextensions-apiserver", end, order, traced=config.traced)
    kube = GenericServer("kube-apiserver", extensions, order, traced=config.traced)
    aggregator = GenericServer("kube-aggregator", kube, order, traced=config.traced)
    return server_type(config, aggregator, install(config, aggregator, kube, extensions))
