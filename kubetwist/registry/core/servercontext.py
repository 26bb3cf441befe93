"""What storage objects without objects of their own, such as reviews and connections, use of the server."""

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
    """What is found out about a token: L{kubetwist.authentication.union.TokenAuthentication}."""

    @property
    def user(self) -> UserInfo | None:
        """Whose token it is; L{None} for no valid one."""

    @property
    def audiences(self) -> Sequence[str] | None:
        """The audiences that it is meant for, of those that were asked about; L{None} for all of them."""

    @property
    def error(self) -> str:
        """Why it is not valid; C{""} without a reason."""


@frozen(eq=False)
class ServerContext:
    """
    What such storage objects use of the server.

    @ivar stores: All stores.
    @ivar environment: The admission chain, and what its plugins see of the server.
    @ivar authorizer: Decides what access reviews ask.
    @ivar authenticate_token: Given a token and audiences, returns whose it is, for token reviews:
        L{kubetwist.server.config.ServerConfig.authenticate_token}.
    @ivar token_issuer: Issues service account tokens; L{None} without one.
    @ivar outgoing: Calls other servers; L{None} where no server is called.
    @ivar connection_rules: Which addresses may be connected to, and how kubelets are found.
    """

    stores: Stores
    environment: StoreEnvironment
    authorizer: IAuthorizer
    authenticate_token: Callable[[str, Sequence[str]], ReviewedToken | Awaitable[ReviewedToken]]
    token_issuer: TokenIssuer | None = None
    outgoing: ClientFactory | None = None
    connection_rules: ConnectionRules = field(factory=ConnectionRules)
