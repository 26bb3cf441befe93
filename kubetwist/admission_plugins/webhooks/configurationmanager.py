"""Compiled webhooks of all configurations, updated when the configurations change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from zope.interface import implementer

from ...api.admission import AdmissionAttributes
from ...interfaces import IWatchSink
from ...storage.errors import StorageUnavailable

if TYPE_CHECKING:
    from ...admission.matching.equivalents import EquivalentResource
    from ...api.record import Record
    from ...registry.admissioncontext import ServerAdmissionContext
    from .credentials import AuthenticationInfoResolver
    from .webhook import Webhook

GROUP: Final = "admissionregistration.k8s.io"
#: Maximum number of kinds of requests whose webhooks are cached.
_MAX_CACHE_ENTRIES: Final = 4096

#: Webhooks whose rules match a request, each with the resource and kind to send.
RuleMatches = tuple[tuple["Webhook", "EquivalentResource"], ...]


@implementer(IWatchSink)
class WebhookConfigurationManager:
    """
    All webhooks of one type, in the order of their calls.

    When a configuration changes, only its webhooks are compiled again.
    """

    def __init__(
        self, server: ServerAdmissionContext, resource: str, credentials: AuthenticationInfoResolver | None
    ) -> None:
        """
        @param resource: C{"mutatingwebhookconfigurations"} or the other one.
        """
        self._server = server
        self._resource = resource
        self._credentials = credentials
        self._watch: Any = None
        self._stale = True
        self._compiled: dict[str, tuple[int, tuple[Webhook, ...]]] = {}
        self.webhooks: tuple[Webhook, ...] = ()
        self._matched_webhooks: dict[Any, RuleMatches] = {}

    # The watch cache's side.

    def send(self, kind: str, record: object, event: object) -> None:
        """See L{IWatchSink.send}."""
        self._stale = True

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore bookmarks."""

    def end(self, error: Exception | None) -> None:
        """Forget the watch; it is started again with the next request."""
        self._watch = None

    # The chain's side.

    def matching_webhooks(self, attributes: AdmissionAttributes) -> RuleMatches:
        """
        Return the webhooks whose rules match a request, each with the resource and kind to send.

        Selectors and match conditions are evaluated later.

        @raise StorageUnavailable: The cache is not synced yet.
        """
        if self._watch is None or self._stale:
            self._refresh()
        if not self.webhooks:
            return ()
        key = (
            attributes.operation,
            attributes.request_resource,
            attributes.subresource,
            attributes.kind,
            bool(attributes.namespace),
            # The equivalent resources of custom resources change with their definitions.
            self._server.versions.definition(attributes.group, attributes.resource),
        )
        matched = self._matched_webhooks.get(key)
        if matched is None:
            if len(self._matched_webhooks) >= _MAX_CACHE_ENTRIES:
                self._matched_webhooks.clear()
            matched = self._matched_webhooks[key] = self._find(attributes)
        return matched

    def _find(self, attributes: AdmissionAttributes) -> RuleMatches:
        equivalents = self._server.versions.forms(
            attributes.group, attributes.resource, attributes.subresource, attributes.request_kind
        )
        found = []
        for webhook in self.webhooks:
            equivalent = webhook.matcher.match_rules(attributes, equivalents)
            if equivalent is not None:
                found.append((webhook, equivalent))
        return tuple(found)

    def _refresh(self) -> None:
        store = self._server.stores.find(GROUP, self._resource)
        if store is None:
            # Switched off by --runtime-config.
            self._watch, self._stale = True, False
            return
        cache = store.cache
        if self._watch is None:
            if cache.ready:
                self._watch = cache.watch("", sink=self)
            elif not cache.revision:
                raise StorageUnavailable("not yet ready to handle request")
            # Otherwise the cache is being refilled, and its old content stays in use.
        self._stale = False
        before, self._compiled = self._compiled, {}
        for record in cache.list().records:
            known = before.get(record.name)
            if known is None or known[0] != record.revision:
                known = (record.revision, tuple(self._compile(record)))
            # Calls that use the previous webhooks continue.
            self._compiled[record.name] = known
        self.webhooks = tuple(one for _, webhooks in self._compiled.values() for one in webhooks)
        self._matched_webhooks.clear()

    def _compile(self, record: Record) -> list[Webhook]:
        from .webhook import Webhook

        outgoing = self._server.outgoing
        assert outgoing is not None, "a server that has webhooks can call them"
        numbers: dict[str, int] = {}
        webhooks = []
        obj = self._server.lookup(GROUP, self._resource, "", record.name) or {}
        for webhook in obj.get("webhooks") or ():
            name = webhook.get("name") or ""
            number = numbers[name] = numbers.get(name, -1) + 1
            webhooks.append(Webhook(record.name, webhook, number, outgoing, self._credentials))
        return webhooks
