"""The protocols of the server on which APIs are installed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..controllers.machinery.config import ControllerConfig, TrustSource

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from ..api.featuregates import FeatureGates
    from ..api.flagvalues import FlagValues
    from ..authentication.certificates import ClientCAProvider
    from ..authentication.union import TokenAuthentication
    from ..client.factory import ClientFactory
    from ..flowcontrol.scheduler import CooperativeScheduler
    from ..interfaces import IAuthorizer, IControllerFactory, IServerReactor, IStorageBackend
    from ..metrics.registry import Registry
    from ..registry.rbac.ruleresolver import RuleResolver
    from .mux import DelegatingMux
    from .proxy.upstreamclients import KubeletTLS

#: A hook of a server; its coroutine or Deferred is awaited.
Hook = Callable[[], object]


class APIHost(Protocol):
    """A server of the chain; L{kubetwist.server.generic.GenericServer} provides it."""

    @property
    def mux(self) -> DelegatingMux:
        """Return the mux of the server's paths."""

    def add_pre_listen_hook(self, name: str, start: Hook, /, covers: Sequence[str] = ()) -> None:
        """
        Call C{start} when the storage is open, and await it before the server listens.

        @param covers: Names of the reference's hooks whose work C{start} also does; health paths show their state.
        """

    def add_post_start_hook(self, name: str, run: Hook, /, covers: Sequence[str] = ()) -> None:
        """
        Call C{run} when the server listens; it is ready when all these hooks are done.

        @param covers: As for L{add_pre_listen_hook}.
        """

    def add_ready_hook(self, name: str, run: Hook, /) -> None:
        """Call C{run} when the server is ready."""

    def add_pre_shutdown_hook(self, name: str, run: Hook, /) -> None:
        """Call C{run} when the server begins to stop, while it still serves."""

    def register_destroy_func(self, name: str, stop: Hook, /) -> None:
        """Call C{stop} after the last request, before the storage is closed."""


class ProxyTrustSource(TrustSource, Protocol):
    """The certificates of the server, with the authority of the front proxy certificate that it issues itself."""

    @property
    def front_proxy_authority(self) -> bytes:
        """Return the certificates that verify the front proxy certificate, PEM."""

    @property
    def front_proxy_listeners(self) -> list[Callable[[], object]]:
        """Return what is called when L{front_proxy_authority} has changed."""


class KubeletTLSSource(Protocol):
    """The client certificate for kubelets."""

    def current(self) -> Coroutine[Deferred[Any], Any, KubeletTLS]:
        """Return the certificate and the trusted authorities that are in use now."""


class APIConfig(ControllerConfig, Protocol):
    """The configuration of the server; L{kubetwist.server.config.ServerConfig} provides it."""

    @property
    def options(self) -> FlagValues:
        """Return the values of flags, by name."""

    @property
    def features(self) -> FeatureGates:
        """Return the feature gates and the release of the server."""

    @property
    def reactor(self) -> IServerReactor:
        """Return the reactor that the server runs on."""

    @property
    def backend(self) -> IStorageBackend:
        """Return the storage backend, not opened."""

    @property
    def traced(self) -> bool:
        """Return whether requests are traced."""

    @property
    def authorizer(self) -> IAuthorizer:
        """Return all authorizers, combined."""

    @property
    def grants(self) -> RuleResolver:
        """Return the resolver of the current roles and bindings."""

    @property
    def outgoing(self) -> ClientFactory:
        """Return the factory of clients of webhooks and of other servers."""

    @property
    def metrics(self) -> Registry:
        """Return the registry of the metrics in C{/metrics}."""

    @property
    def scheduler(self) -> CooperativeScheduler:
        """Return the scheduler that runs heavy work in slices."""

    @property
    def credentials(self) -> ProxyTrustSource:
        """Return the certificates of the server."""

    @property
    def kubelet_credentials(self) -> KubeletTLSSource | None:
        """Return the client certificate for kubelets."""

    @property
    def client_authorities(self) -> Sequence[ClientCAProvider]:
        """Return the authorities for the client certificates that the server requests."""

    @property
    def controllers(self) -> Sequence[IControllerFactory]:
        """Return the factories of the enabled controllers."""

    @property
    def address(self) -> str:
        """Return the host and port at which clients reach this server."""

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the advertised address and port."""

    @property
    def is_front(self) -> bool:
        """Return whether this process is a front: the storage process does what one process of a server does."""

    @property
    def serves(self) -> bool:
        """Return whether this process serves requests."""

    def share(self, total: int, /) -> int:
        """Return the share of this process of a limit of the server."""

    def authenticate_token(
        self, token: str, audiences: Sequence[str] = (), /
    ) -> TokenAuthentication | Deferred[TokenAuthentication]:
        """Authenticate a bearer token."""
