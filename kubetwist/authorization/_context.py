"""The context of authorizer factories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from twisted.internet.interfaces import IReactorTime

from ..api.filewatcher import FileWatcher

if TYPE_CHECKING:
    from ..client.factory import ClientFactory
    from ..registry.rbac.ruleresolver import RuleResolver
    from ..registry.stores import Stores
    from .webhookmetrics import WebhookMetrics


class AuthorizationContext(Protocol):
    """
    The parts of the server that authorizers use.

    @see: L{kubetwist.server.context.PluginContext}, which implements it.
    """

    @property
    def reactor(self) -> IReactorTime:
        """The clock."""

    @property
    def stores(self) -> Stores:
        """The stores of the server, which are filled before the first request."""

    @property
    def grants(self) -> RuleResolver:
        """The roles and bindings of the server."""

    @property
    def outgoing(self) -> ClientFactory:
        """The factory of clients of webhooks."""

    @property
    def files(self) -> FileWatcher:
        """Reads files, and reads them again when they change."""

    @property
    def authorization_webhooks(self) -> WebhookMetrics:
        """The metrics of authorization webhooks."""
