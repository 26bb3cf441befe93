"""The complete configuration of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from attrs import field, frozen

from twisted.internet.defer import Deferred

from ..api.featuregates import FeatureGates
from ..authentication.requestheader import RequestHeaderConfig
from ..metrics.registry import Registry
from .workerrole import WorkerRole

if TYPE_CHECKING:
    from ..audit.auditor import Auditor
    from ..authentication.certificates import ClientCAProvider
    from ..authentication.sessions import SessionAuthenticator
    from ..authentication.union import AuthenticatorUnion, TokenAuthentication
    from ..authorization.webhookmetrics import WebhookMetrics
    from ..client.factory import ClientFactory
    from ..controllers.fakeimages import FakeImages
    from ..flowcontrol.scheduler import CooperativeScheduler
    from ..interfaces import IAuthorizer, IControllerFactory, IServerReactor, IStorageBackend
    from ..registry.core.serviceaccount.tokenkeys import TokenKey
    from ..registry.core.serviceaccount.tokens import TokenIssuer
    from ..registry.rbac.ruleresolver import RuleResolver
    from ..storage.encryption.reloading import FileEncryption
    from .context import PluginContext
    from .credentials.kubelet import KubeletCredentials
    from .datadir import Credentials, DataDirectory
    from .listening import ServedAddress
    from .options import ServerOptions
    from .peers import Peers
    from .tracing import Tracing
    from .watchedfiles import FileReloader


@frozen(eq=False)
class ServerConfig:
    """
    The configuration of one server, complete: L{kubetwist.server.complete.complete} makes it from options.

    All files are read, and all plugins are created. L{kubetwist.server.lifecycle.PreparedAPIServer} has the state of a
    running server.

    @ivar context: The context of the plugins; its C{stores} are filled when the server is built.
    @ivar started_at: Time of the start, in the reactor's time.
    @ivar bound: The bound address; the server listens on it at the end of its start.
    @ivar endpoint: The advertised address and port.
    @ivar credentials: The certificates and keys that clients see.
    @ivar backend: The storage backend, not opened; it encrypts if encryption is configured.
    @ivar encryption: The encryption at rest; L{None} without C{--encryption-provider-config}.
    @ivar tracing: The traces; L{None} without C{--tracing-config-file}.
    @ivar controllers: The factories of the controllers that run.
    @ivar auditor: The audit; L{None} without one.
    @ivar held: Releases the data directory and the address.
    @ivar scheduler: Schedules expensive work in small pieces.
    @ivar workers: The processes that serve one storage; the only one in a server of one process.
    @ivar peers: The other processes; L{None} in a server of one process.
    @ivar health_metrics: The metrics of health checks.
    """

    context: PluginContext
    started_at: float
    bound: ServedAddress
    endpoint: tuple[str, int]
    credentials: Credentials
    backend: IStorageBackend
    encryption: FileEncryption | None
    tracing: Tracing | None
    authenticator: AuthenticatorUnion
    authorizer: IAuthorizer
    controllers: Sequence[IControllerFactory]
    auditor: Auditor | None
    held: ExitStack
    scheduler: CooperativeScheduler
    workers: WorkerRole = field(factory=WorkerRole)
    peers: Peers | None = None
    health_metrics: Registry = field(factory=Registry)

    @property
    def options(self) -> ServerOptions:
        """The parsed command line."""
        return self.context.options

    @property
    def reactor(self) -> IServerReactor:
        """The reactor that the server runs on."""
        return self.context.reactor

    @property
    def data(self) -> DataDirectory:
        """The data directory."""
        return self.context.data

    @property
    def images(self) -> FakeImages:
        """The behavior of images on simulated nodes."""
        return self.context.images

    @property
    def kubernetes_version(self) -> str:
        """The release whose definitions are served: C{"1.36"}."""
        version: str = self.options["kubernetes-version"]
        return version

    @property
    def features(self) -> FeatureGates:
        """The feature gates and the release of the server."""
        return FeatureGates.from_options(self.options)

    @property
    def traced(self) -> bool:
        """Return whether requests are traced."""
        return self.tracing is not None

    @property
    def grants(self) -> RuleResolver:
        """The current roles and bindings."""
        return self.context.grants

    @property
    def files(self) -> FileReloader:
        """The files that are reloaded when they change."""
        return self.context.files

    @property
    def outgoing(self) -> ClientFactory:
        """Creates the clients of webhooks and of other servers."""
        return self.context.outgoing

    @property
    def metrics(self) -> Registry:
        """The metrics of C{/metrics}."""
        return self.context.metrics

    @property
    def authorization_webhooks(self) -> WebhookMetrics:
        """The metrics of authorization webhooks."""
        return self.context.authorization_webhooks

    @property
    def kubelet_credentials(self) -> KubeletCredentials | None:
        """The client certificate for kubelets; L{None} in a server that does not call kubelets."""
        return self.context.kubelet_credentials

    @property
    def client_authorities(self) -> Sequence[ClientCAProvider]:
        """The authorities whose certificates the server requests from clients."""
        return self.context.client_authorities

    @property
    def sessions(self) -> SessionAuthenticator | None:
        """The sessions of the web page; L{None} without the page."""
        return self.context.sessions

    @property
    def token_issuer(self) -> TokenIssuer | None:
        """Signs tokens of service accounts; L{None} in a server without such tokens."""
        return self.context.token_issuer

    @property
    def token_keys(self) -> Sequence[TokenKey]:
        """The keys that verify those tokens."""
        return self.context.token_keys

    @property
    def token_key_listeners(self) -> list[Callable[[Sequence[TokenKey]], object]]:
        """Called with the new keys when C{--service-account-key-file} has changed."""
        return self.context.token_key_listeners

    @property
    def address(self) -> str:
        """The host and port at which clients reach this server: C{"127.0.0.1:6443"}."""
        return self.context.address

    @property
    def external_address(self) -> str:
        """The host and port in documents for clients: C{--external-hostname}, or without it L{address}."""
        host: str = self.options["external-hostname"]
        if not host:
            return self.address
        if ":" in host.rpartition("]")[2]:
            return host
        return f"{host}:{self.bound.port}"

    @property
    def is_front(self) -> bool:
        """Return whether this process is a front, see L{kubetwist.server.workerrole}."""
        return self.workers.number > 0

    @property
    def serves(self) -> bool:
        """Return whether this process serves requests."""
        return self.workers.serves

    def share(self, total: int) -> int:
        """Return the share of this process of a limit of the server; 0 for no limit."""
        return self.workers.share(total)

    @property
    def proxy_headers(self) -> RequestHeaderConfig:
        """The headers in which authenticating proxies name the user."""
        return RequestHeaderConfig.from_options(self.options)

    def authenticate_token(
        self, token: str, audiences: Sequence[str] = ()
    ) -> TokenAuthentication | Deferred[TokenAuthentication]:
        """See L{PluginContext.authenticate_token}."""
        return self.context.authenticate_token(token, audiences)

    def stop_following(self) -> None:
        """Give up the address if nothing listens on it, and stop reading changed files. Idempotent."""
        self.bound.close()
        self.files.stop()

    async def release(self, close_backend: Callable[[], Awaitable[None]] | None = None) -> None:
        """
        Close everything that was opened for this configuration.

        @param close_backend: Closes the storage backend, after all that may use it.
        """
        self.stop_following()
        await self.context.close()
        if close_backend is not None:
            await close_backend()
        self.held.close()
