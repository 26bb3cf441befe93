"""The context of the plugins that are created before the server itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from attrs import define, field

from twisted.internet.defer import Deferred

from ..authorization.webhookmetrics import WebhookMetrics
from ..client.factory import ClientFactory
from ..metrics.registry import Registry
from ..registry.rbac.ruleresolver import RuleResolver
from ..registry.stores import Stores
from .errors import StartError
from .watchedfiles import FileReloader

if TYPE_CHECKING:
    from ..api.resource import JSONObject
    from ..authentication.certificates import ClientCAProvider
    from ..authentication.configuration import AuthenticationConfiguration
    from ..authentication.sessions import SessionAuthenticator
    from ..authentication.union import AuthenticatorUnion, TokenAuthentication
    from ..controllers.fakeimages import FakeImages
    from ..interfaces import IServerReactor
    from ..registry.core.serviceaccount.tokenkeys import TokenKey
    from ..registry.core.serviceaccount.tokens import TokenIssuer
    from .credentials.kubelet import KubeletCredentials
    from .datadir import DataDirectory
    from .options import ServerOptions

T = TypeVar("T")

_CONFIG_FLAG: Final = "--plugin-config-file"
_IMAGES_FLAG: Final = "--fake-images"


@define(eq=False)
class PluginContext:
    """
    The context of the factories of authenticators and authorizers, and of the audit.

    The factories are called before the server is built: L{stores} are filled, and L{authenticator} and
    L{kubelet_credentials} are set, between these calls and the first request.

    @ivar options: The parsed command line.
    @ivar data: The data directory, open.
    @ivar address: The host and port at which clients reach this server: C{"127.0.0.1:6443"}.
    @ivar stores: The stores of the server.
    @ivar grants: The current roles and bindings.
    @ivar outgoing: Creates clients of webhooks and of other servers; they are closed when the server stops.
    @ivar files: Reads files, and reloads them when they change.
    @ivar metrics: The metrics of C{/metrics}.
    @ivar authorization_webhooks: The metrics of authorization webhooks.
    @ivar authenticator: All authenticators, as one.
    @ivar token_issuer: Signs tokens of service accounts; L{None} in a server without such tokens.
    @ivar token_keys: The keys that verify those tokens.
    @ivar kubelet_credentials: The client certificate for kubelets; L{None} in a server that does not call kubelets.
    @ivar sessions: The sessions of the web page; L{None} without the page.
    @ivar client_authorities: The authorities of client certificates: the server requests certificates of these.
    @ivar token_key_listeners: Called with the new keys when C{--service-account-key-file} has changed.
    @ivar authentication_configuration: The content of C{--authentication-config} and of the flags C{--oidc-...}; set by
        the first authenticator that reads it.
    @ivar authentication_config_listeners: Called with the new content when the file has changed.
    @ivar closers: Called after the last request.
    """

    options: ServerOptions
    reactor: IServerReactor
    data: DataDirectory
    address: str
    authorization_webhooks: WebhookMetrics = field(factory=WebhookMetrics)
    metrics: Registry = field(factory=Registry)
    token_issuer: TokenIssuer | None = None
    token_keys: Sequence[TokenKey] = ()
    authenticator: AuthenticatorUnion | None = None
    kubelet_credentials: KubeletCredentials | None = None
    sessions: SessionAuthenticator | None = None
    client_authorities: list[ClientCAProvider] = field(factory=list)
    token_key_listeners: list[Callable[[Sequence[TokenKey]], object]] = field(factory=list)
    authentication_configuration: AuthenticationConfiguration | None = None
    authentication_config_listeners: list[Callable[[AuthenticationConfiguration], object]] = field(factory=list)
    closers: list[Callable[[], object]] = field(factory=list)
    outgoing: ClientFactory = field(init=False)
    files: FileReloader = field(init=False)
    stores: Stores = field(factory=Stores, init=False)
    grants: RuleResolver = field(init=False)
    _configured: set[str] = field(factory=set, init=False)
    _images: FakeImages | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.outgoing = ClientFactory(self.reactor, self._find_service, self.options["webhook-url-denied-cidrs"])
        self.files = FileReloader(self.reactor)
        self.grants = RuleResolver(self.stores)

    def _find_service(self, namespace: str, name: str) -> JSONObject | None:
        return self.stores.get_decoded("", "services", namespace, name)

    @property
    def images(self) -> FakeImages:
        """The behavior of images on simulated nodes."""
        if self._images is None:
            # Imported late: most servers have no simulated nodes.
            from ..controllers.fakeimages import FakeImages

            self._images = FakeImages()
        return self._images

    def watch_images(self) -> None:
        """
        Read the file of C{--fake-images}, and reload it when it changes.

        @raise StartError: The file cannot be read or is invalid.
        """
        path = self.options.get("fake-images")
        if not path:
            return
        from ..controllers.fakeimages import parse_images_file

        images = self.images
        try:
            read = self.files.watch(
                [path], lambda contents: parse_images_file(contents[0]), images.replace, _IMAGES_FLAG
            )
        except OSError as error:
            raise StartError(f"{_IMAGES_FLAG}: cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise StartError(f"{_IMAGES_FLAG}: {path}: {error}") from error
        images.replace(read)

    def watch_config(self, name: str, load: Callable[[bytes], T], use: Callable[[T], object]) -> T | None:
        """
        Read the file that C{--plugin-config-file} gives for a plugin, and reload it when it changes.

        @param name: The name of the plugin in the flag.
        @param load: Parses the content; raises L{ValueError} if it is invalid. Called now, and later in a thread.
        @param use: Called in the reactor's thread with the result of C{load} after a change. An invalid file is logged,
            and the previous configuration stays in use.
        @return: The result of C{load}; L{None} if the flag has no file for the plugin.
        @raise StartError: The file cannot be read or is invalid.
        """
        path = self.options["plugin-config-file"].get(name)
        if path is None:
            return None
        self._configured.add(name)
        try:
            return self.files.watch([path], lambda contents: load(contents[0]), use, f"{_CONFIG_FLAG}={name}")
        except OSError as error:
            raise StartError(f"{_CONFIG_FLAG}: cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise StartError(f"{_CONFIG_FLAG}: {path}: {error}") from error
        except RecursionError as error:
            raise StartError(f"{_CONFIG_FLAG}: {path}: it nests too deep") from error

    def check_configs_used(self) -> None:
        """
        Check that each file of C{--plugin-config-file} is in use.

        @raise StartError: No plugin has read a file.
        """
        unused = sorted(self.options["plugin-config-file"].keys() - self._configured)
        if unused:
            raise StartError(f"{_CONFIG_FLAG}: no authenticator or enabled authorizer reads {', '.join(unused)}")

    def authenticate_token(
        self, token: str, audiences: Sequence[str] = ()
    ) -> TokenAuthentication | Deferred[TokenAuthentication]:
        """
        Authenticate a bearer token.

        @param audiences: The token must be meant for one of these; without any, the audience is not checked.
        """
        assert self.authenticator is not None, "the authenticators are not made"
        authentication: TokenAuthentication | Deferred[TokenAuthentication] = self.authenticator.authenticate_token(
            token, audiences
        )
        return authentication

    async def close(self) -> None:
        """Call the closers, and close all outgoing connections."""
        self.files.stop()
        for close in self.closers:
            close()
        await self.outgoing.close()
