"""The part of the server that authenticator factories use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from ..api.filewatcher import FileWatcher

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from ..client.factory import ClientFactory
    from ..registry.core.serviceaccount.tokenkeys import TokenKey
    from ..registry.core.serviceaccount.tokens import TokenIssuer
    from ..registry.stores import Stores
    from .certificates import ClientCAProvider
    from .configuration import AuthenticationConfiguration
    from .sessions import SessionAuthenticator
    from .union import TokenAuthentication

T = TypeVar("T")


class KubeletCertificates(Protocol):
    """The client certificates that the server uses for the API of kubelets."""

    def is_client_certificate(self, certificate: Certificate) -> bool:
        """Return whether a certificate is one of these client certificates."""


class AuthenticationContext(Protocol):
    """
    The part of the server that authenticator factories use.

    @ivar sessions: The sessions of the web UI; set by the session authenticator.
    @ivar authentication_configuration: The content of C{--authentication-config} and of the flags C{--oidc-...}; set by
        the first authenticator that reads it.
    @see: L{kubetwist.server.context.PluginContext}, which implements it.
    """

    sessions: SessionAuthenticator | None
    authentication_configuration: AuthenticationConfiguration | None

    @property
    def reactor(self) -> IReactorTime:
        """The clock."""

    @property
    def address(self) -> str:
        """The host and port at which clients reach the server: C{"127.0.0.1:6443"}."""

    @property
    def stores(self) -> Stores:
        """The stores of the server, which are filled before the first request."""

    @property
    def outgoing(self) -> ClientFactory:
        """The factory of clients of webhooks and issuers."""

    @property
    def files(self) -> FileWatcher:
        """Reads files, and reads them again when they change."""

    @property
    def kubelet_credentials(self) -> KubeletCertificates | None:
        """The client certificates for kubelets; L{None} in a server that does not call kubelets."""

    @property
    def token_issuer(self) -> TokenIssuer | None:
        """The issuer of service account tokens; L{None} in a server without such tokens."""

    @property
    def token_keys(self) -> Sequence[TokenKey]:
        """The keys that verify service account tokens."""

    @property
    def client_authorities(self) -> list[ClientCAProvider]:
        """The CAs of client certificates; their names are in the CertificateRequest of TLS handshakes."""

    @property
    def token_key_listeners(self) -> list[Callable[[Sequence[TokenKey]], object]]:
        """Functions that are called with the new keys when C{--service-account-key-file} has changed."""

    @property
    def authentication_config_listeners(self) -> list[Callable[[AuthenticationConfiguration], object]]:
        """Functions that are called with the new content of C{--authentication-config}."""

    @property
    def closers(self) -> list[Callable[[], object]]:
        """Functions that are called after the last request."""

    def watch_config(self, name: str, load: Callable[[bytes], T], use: Callable[[T], object]) -> T | None:
        """
        Read the file that C{--plugin-config-file} gives for a plugin, and reload it when it changes.

        @param name: The name of the plugin in the flag.
        @param load: Parses the content; raises L{ValueError} if it is invalid.
        @param use: Called with the result of C{load} after a change.
        @return: The result of C{load}; L{None} if the flag has no file for the plugin.
        """

    def authenticate_token(
        self, token: str, audiences: Sequence[str] = ()
    ) -> TokenAuthentication | Deferred[TokenAuthentication]:
        """Authenticate a bearer token."""
