"""The server's components for storage without objects, such as reviews and connect subresources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

from ...api.resource import UserInfo
from ...interfaces import IAuthorizer
from ..generic.environment import StoreEnvironment
from ..stores import Stores
from .node.kubelets import ConnectionRules

if TYPE_CHECKING:
    from ...client.factory import ClientFactory
    from .serviceaccount.tokens import TokenIssuer


class ReviewedToken(Protocol):
    """The result of a token authentication: L{kubetwist.authentication.union.TokenAuthentication}."""

    @property
    def user(self) -> UserInfo | None:
        """Return the user of the token; L{None} if it is invalid."""

    @property
    def audiences(self) -> Sequence[str] | None:
        """Return the requested audiences for which the token is valid; L{None} for all of them."""

    @property
    def error(self) -> str:
        """Return the reason why the token is invalid; C{""} without one."""


@frozen(eq=False)
class ServerContext:
    """
    The components of the server that storage without objects uses.

    @ivar stores: All stores.
    @ivar environment: The admission chain and its context.
    @ivar authorizer: The authorizer for access reviews.
    @ivar authenticate_token: Authenticates a token for audiences, for token reviews:
        L{kubetwist.server.config.ServerConfig.authenticate_token}.
    @ivar token_issuer: The issuer of service account tokens; L{None} without one.
    @ivar outgoing: The factory of clients for other servers; L{None} if no server is called.
    @ivar connection_rules: The options of connections to kubelets and other servers.
    """

    stores: Stores
    environment: StoreEnvironment
    authorizer: IAuthorizer
    authenticate_token: Callable[[str, Sequence[str]], ReviewedToken | Awaitable[ReviewedToken]]
    token_issuer: TokenIssuer | None = None
    outgoing: ClientFactory | None = None
    connection_rules: ConnectionRules = field(factory=ConnectionRules)
