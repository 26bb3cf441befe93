"""What every part of a server is built from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from ..authentication.frontproxy import ProxyHeaders
from ..authorization.webhookmetrics import WebhookTally
from ..client.factory import Outgoing
from ..flowcontrol.turns import Turns
from ..interfaces import IAuthorizer, IStorageBackend
from ..metrics.registry import Registry
from ..registry.core.serviceaccount.tokenkeys import TokenKey
from ..registry.rbac.ruleresolver import Grants
from ..registry.stores import Stores
from .datadir import DataDirectory
from .hostaddress import advertised_address
from .watchedfiles import WatchedFiles


@define(eq=False)
class ServerConfig:
    """
    One server's configuration, complete.

    @ivar options: The parsed command line: L{kubetwist.cli.kubeapi.Options}.
    @ivar kubernetes_version: The release whose definitions are served: C{"1.36"}.
    @ivar backend: Opened before anything is started that needs it.
    @ivar encryption: How what is stored is encrypted, L{kubetwist.storage.encryption.reloading.FileEncryption}; L{None}
        where it is not.
    @ivar authorizer: Set before the servers are built.
    @ivar authenticator: Set before the servers are built.
    @ivar token_issuer: Signs the tokens of service accounts:
        L{kubetwist.registry.core.serviceaccount.tokens.TokenIssuer}.
    @ivar client_authorities: Whose certificates authenticators look for, as they are made:
        L{kubetwist.authentication.certificates.Authorities}.
    @ivar token_key_followers: Called with others when C{--service-account-key-file} has changed.
    @ivar authentication_configuration: What C{--authentication-config} says, once an authenticator has asked for it:
        L{kubetwist.authentication.configuration.AuthenticationConfiguration}.
    @ivar authentication_followers: Called with another one when the file has changed.
    @ivar credentials: What the server shows: L{kubetwist.server.datadir.Credentials}.
    @ivar kubelet_credentials: What kubelets are shown: L{kubetwist.server.credentials.kubelet.KubeletCredentials}.
    @ivar trust_followers: Called when what clients verify it by is another.
    @ivar closers: Called when the last request is answered.
    @ivar controllers: The factories of the controllers that are to run: L{kubetwist.interfaces.IControllerFactory}s.
    @ivar token_keys: What those tokens are verified by: L{kubetwist.registry.core.serviceaccount.tokenkeys.TokenKey}s.
    @ivar stores: The stores of the server, which is filled when the servers are built.
    @ivar grants: What roles and bindings say now.
    @ivar apis: L{kubetwist.resources.apis.APIs}, once the servers are built.
    @ivar aggregation: L{kubetwist.controllers.aggregation.apiservices.Aggregation}, once the servers are built;
        L{None} where there are no APIServices.
    @ivar availability: Looks after the servers that those name; likewise.
    @ivar audit_counts: What became of audit events: L{kubetwist.audit.failures.Counts}; L{None} where there are none.
    @ivar installed: What is served, as documents tell of it: L{kubetwist.resources.servedresources.IInstalled}.
    @ivar sessions: Who is signed in to the page: L{kubetwist.authentication.sessions.SessionAuthenticator}; L{None}
        where there is no page.
    @ivar traced: Requests leave spans, L{kubetwist.server.tracing}; set before the servers are built.
    @ivar flow: Which requests go first: L{kubetwist.flowcontrol.levels.FlowControl}; L{None} when they are only
        counted.
    @ivar turns: Where heavy work is done a little at a time.
    @ivar metrics: What is counted.
    @ivar health_metrics: What is counted of health checks.
    @ivar authorization_webhooks: What is counted of webhooks that decide.
    @ivar running_controllers: L{kubetwist.controllers.machinery.manager.RunningControllers}, once they are begun with.
    @ivar outgoing: How others are called: L{kubetwist.client.factory.Outgoing}; closed when the server stops.
    @ivar streams: Which bodies are passed on as they arrive: L{kubetwist.http.site.KubeSite.streams}.
    @ivar files: Looks again at the files that were read at the start.
    @ivar address: Where clients are told to find this server, once it listens: C{"127.0.0.1:6443"}.
    """

    options: Any
    reactor: Any
    data: DataDirectory
    backend: IStorageBackend
    kubernetes_version: str
    authorizer: IAuthorizer | None = None
    authenticator: Any = None
    encryption: Any = None
    stores: Stores = field(factory=Stores)
    grants: Grants = field(init=False)
    apis: Any = None
    aggregation: Any = None
    availability: Any = None
    running_controllers: Any = None
    audit_counts: Any = None
    installed: Any = None
    flow: Any = None
    sessions: Any = None
    traced: bool = False
    address: str = ""
    token_issuer: Any = None
    controllers: Sequence[Any] = ()
    token_keys: Sequence[TokenKey] = ()
    client_authorities: list[Any] = field(factory=list)
    credentials: Any = None
    kubelet_credentials: Any = None
    trust_followers: list[Callable[[], object]] = field(factory=list)
    token_key_followers: list[Callable[[Sequence[TokenKey]], object]] = field(factory=list)
    authentication_configuration: Any = None
    authentication_followers: list[Callable[[Any], object]] = field(factory=list)
    closers: list[Callable[[], object]] = field(factory=list)
    streams: list[Callable[[Any], bool]] = field(factory=list)
    metrics: Registry = field(factory=Registry)
    health_metrics: Registry = field(factory=Registry)
    authorization_webhooks: WebhookTally = field(factory=WebhookTally)
    turns: Turns = field(init=False)
    outgoing: Outgoing = field(init=False)
    files: WatchedFiles = field(init=False)

    _advertised: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._advertised = advertised_address(self.options["bind-address"], self.options["advertise-address"])
        self.outgoing = Outgoing(self.reactor, self._service, self.options["webhook-url-denied-cidrs"])
        self.files = WatchedFiles(self.reactor)
        self.turns = Turns(self.reactor)
        self.grants = Grants(self.stores)

    def _service(self, namespace: str, name: str) -> Any:
        return self.stores.view("", "services", namespace, name)

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the advertised address and port, once the server listens; no address before."""
        port = self.address.rpartition(":")[2]
        if not port:
            return "", 0
        return self._advertised, int(port)

    @property
    def external_address(self) -> str:
        """The host and port that others are told: C{--external-hostname}, or without it C{address}."""
        host = self.options["external-hostname"]
        if not host:
            return self.address
        if ":" in host.rpartition("]")[2]:
            return host  # type: ignore[no-any-return]
        return f"{host}:{self.address.rpartition(':')[2]}"

    @property
    def proxy_headers(self) -> ProxyHeaders:
        """Where authenticating proxies say whom they speak for."""
        return ProxyHeaders.of(self.options)

    @property
    def constrained_impersonation(self) -> bool:
        """Whether one may be allowed to do only some things as somebody else, as from 1.36 on."""
        minor = int(self.kubernetes_version.partition(".")[2])
        gate: bool = self.options["feature-gates"].get("ConstrainedImpersonation", minor >= 36)
        return gate

    def user_of_token(self, token: str, audiences: Sequence[str] = ()) -> Any:
        """
        Whose token this is.

        @param audiences: For one of whom it must be meant.
        @return: A L{kubetwist.authentication.union.TokenFinding}, or a Deferred of one.
        """
        return self.authenticator.user_of_token(token, audiences)
