"""The chain of servers: aggregator, kube-apiserver, apiextensions-apiserver, and its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ..http.request import KubeRequest
from .config import ServerConfig
from .generic import GenericServer

if TYPE_CHECKING:
    from ..controllers.aggregation.apiservices import Aggregation
    from ..controllers.machinery.election import LeaderElectedControllerManager
    from ..controllers.machinery.manager import ControllerManager
    from ..flowcontrol.controller import FlowControl
    from ..registry.assembly import ResourceRegistry
    from ..resources.customresources import CustomResources
    from ..resources.handlers.watch import WatchFlusher
    from ..resources.servedresources import IServedResources


class InstalledAPIs(Protocol):
    """Interface of the APIs of a chain of servers, for the server that runs them."""

    @property
    def registry(self) -> ResourceRegistry:
        """The stores and their shared parts."""

    @property
    def flusher(self) -> WatchFlusher:
        """Paces watches."""

    @property
    def served_resources(self) -> IServedResources:
        """The served groups, versions and resources."""

    @property
    def custom(self) -> CustomResources | None:
        """Serves custom resources; L{None} without definitions."""

    @property
    def aggregation(self) -> Aggregation | None:
        """The servers of APIServices; L{None} without APIServices."""

    @property
    def flow(self) -> FlowControl | None:
        """Priority and fairness; L{None} if requests are only counted."""

    @property
    def controllers(self) -> ControllerManager | LeaderElectedControllerManager | None:
        """The running controllers; L{None} before the server is ready, and without controllers."""

    @property
    def streams(self) -> Sequence[Callable[[KubeRequest], bool]]:
        """See L{kubetwist.http.site.KubeSite.streams}."""

    @property
    def idle(self) -> bool:
        """Return whether no custom resource definition and no APIService is being processed."""


#: Installs APIs on the three servers: the aggregator, the Kubernetes API server and the server of custom resources.
Installer = Callable[[ServerConfig, GenericServer, GenericServer, GenericServer], InstalledAPIs | None]


class NotFound(Resource):
    """The end of the chain: no server has a handler for the path."""

    isLeaf = True

    def render(self, request: KubeRequest) -> int:
        """Answer any method in plain text."""
        request.respond_text(404, "404 page not found\n")
        return NOT_DONE_YET


def create_server_chain(
    config: ServerConfig, install: Installer | None = None
) -> tuple[GenericServer, InstalledAPIs | None]:
    """
    Build the three servers, each of which delegates to the next.

    @param install: Installs APIs on them; L{None} for the APIs of Kubernetes.
    @return: The server in front, and the APIs.
    """
    if install is None:
        from ..resources.apis import install_apis

        install = install_apis
    extensions = GenericServer("apiextensions-apiserver", NotFound())  # type: ignore[no-untyped-call]
    kube = GenericServer("kube-apiserver", extensions)
    aggregator = GenericServer("kube-aggregator", kube)
    return aggregator, install(config, aggregator, kube, extensions)
