"""The authorizers of --authorization-config, reloaded when the file changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Verdict,
)
from ..api.filewatcher import FileWatcher
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..client.factory import ClientFactory
from ..client.httpclient import WebhookClient
from ..interfaces import (
    IAuthorizer,
    IAuthorizerUnion,
    IRuleResolver,
)
from ._configuration import (
    WEBHOOK,
    AuthorizationConfiguration,
    AuthorizerConfiguration,
    load_configuration,
)
from .union import (
    AuthorizerUnion,
    PrivilegedGroup,
)
from .webhook import WebhookAuthorizer
from .webhookmetrics import WebhookMetrics

#: Creates an authorizer of a type other than webhook.
MakeAuthorizer = Callable[[str], IAuthorizer]


@implementer(IAuthorizerUnion, IRuleResolver)
class ReloadableAuthorizer:
    """
    Calls the authorizers of the file, in its order (Go: reloadableAuthorizerResolver).

    Authorizers other than webhooks are created once; the file must keep them.
    """

    name = "union"

    def __init__(
        self,
        reactor: IReactorTime,
        outgoing: ClientFactory,
        known_types: Collection[str],
        make: MakeAuthorizer,
        metrics: WebhookMetrics | None = None,
    ) -> None:
        """
        @param reactor: The clock.
        @param outgoing: The factory of clients of webhooks.
        @param known_types: The known types of authorizers.
        @param make: Creates an authorizer of a type other than webhook.
        @param metrics: The metrics of webhooks.
        """
        self._metrics = metrics or WebhookMetrics()
        self._reactor = reactor
        self._outgoing = outgoing
        self._known_types = known_types
        self._make = make
        self._instances: dict[str, IAuthorizer] = {}
        self._clients: list[WebhookClient] = []
        self._current = AuthorizerUnion([PrivilegedGroup()])
        #: Counts of decisions before the last reload.
        self._previous_counts: dict[tuple[str, str, str], int] = {}
        self._started = False

    def decisions(self) -> Iterable[tuple[tuple[str, str, str], int]]:
        """See L{IAuthorizerUnion.decisions}."""
        counts = dict(self._previous_counts)
        for labels, count in self._current.decisions():
            counts[labels] = counts.get(labels, 0) + count
        return counts.items()

    @property
    def authorizers(self) -> Sequence[IAuthorizer]:
        """The current authorizers, in order."""
        return self._current.authorizers

    def read(self, files: FileWatcher, path: str) -> None:
        """
        Read the file and watch it.

        @param files: L{kubetwist.server.watchedfiles.FileReloader}.
        @param path: The path of the file.
        @raise ValueError: The file cannot be read or is invalid.
        """
        try:
            configuration = files.watch(
                [path], self._load, self._configure, "--authorization-config", also=lambda loaded: loaded.files
            )
        except OSError as error:
            raise ValueError(f"open {path}: {(error.strerror or str(error)).lower()}") from error
        self._configure(configuration)
        self._started = True

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """See L{IAuthorizer.authorize}."""
        return self._current.authorize(attributes)

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}."""
        return self._current.rules_for(user, namespace)

    def _load(self, contents: Sequence[bytes]) -> AuthorizationConfiguration:
        return load_configuration(contents[0], self._known_types, tuple(self._instances))

    def _configure(self, configuration: AuthorizationConfiguration) -> None:
        clients: list[WebhookClient] = []
        authorizers = [PrivilegedGroup(), *(self._authorizer(one, clients) for one in configuration.authorizers)]
        old_clients, self._clients = self._clients, clients
        for labels, count in self._current.decisions():
            self._previous_counts[labels] = self._previous_counts.get(labels, 0) + count
        self._current = AuthorizerUnion(authorizers, [(one.kind, one.name) for one in configuration.authorizers])
        for client in old_clients:
            client.retire()

    def _authorizer(self, one: AuthorizerConfiguration, clients: list[WebhookClient]) -> IAuthorizer:
        if one.kind == WEBHOOK:
            assert one.settings is not None and one.rules is not None, "a webhook has settings and rules"
            client = self._outgoing.client(one.settings)
            clients.append(client)
            return WebhookAuthorizer(self._reactor, client, one.rules, metrics_name=one.name, metrics=self._metrics)
        authorizer = self._instances.get(one.kind)
        if authorizer is None:
            if self._started and one.kind not in _STATELESS:
                raise ValueError(
                    f"authorizer type {one.kind} is not allowed if it was not enabled at initial server startup"
                )
            authorizer = self._make(one.kind)
            if not self._started:
                self._instances[one.kind] = authorizer
        return authorizer


#: Authorizers that can be added by a reload.
_STATELESS = ("AlwaysAllow", "AlwaysDeny")
