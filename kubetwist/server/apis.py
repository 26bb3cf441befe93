"""The interface between a chain of servers and the APIs on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

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

    def install_documents(self) -> None:
        """Register the paths of discovery and OpenAPI documents."""


#: Installs APIs on the three servers: the aggregator, the Kubernetes API server and the server of custom resources.
Installer = Callable[[ServerConfig, GenericServer, GenericServer, GenericServer], InstalledAPIs | None]
