"""Compiled webhooks of all configurations, updated when the configurations change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...api.admission import AdmissionAttributes
from ...api.resource import JSONObject
from ..compiledobjects import CompiledObjectCache

if TYPE_CHECKING:
    from ...admission.matching.equivalents import EquivalentResource
    from ...registry.admissioncontext import ServerAdmissionContext
    from .credentials import AuthenticationInfoResolver
    from .webhook import Webhook

#: Maximum number of kinds of requests whose webhooks are cached.
_MAX_CACHE_ENTRIES: Final = 4096

#: Webhooks whose rules match a request, each with the resource and kind to send.
RuleMatches = tuple[tuple["Webhook", "EquivalentResource"], ...]


class WebhookConfigurationManager:
    """
    All webhooks of one type, in the order of their calls.

    When a configuration changes, only its webhooks are compiled again.
    """

    def __init__(
        self, server: ServerAdmissionContext, resource: str, credentials: AuthenticationInfoResolver | None
    ) -> None:
        """
        @param server: The server.
        @param resource: C{"mutatingwebhookconfigurations"} or C{"validatingwebhookconfigurations"}.
        @param credentials: The client credentials of webhooks; L{None} for none.
        """
        self._server = server
        self._credentials = credentials
        self._configurations = CompiledObjectCache(server, resource, self._compile)
        self.webhooks: tuple[Webhook, ...] = ()
        self._matched_webhooks: dict[Any, RuleMatches] = {}

    def matching_webhooks(self, attributes: AdmissionAttributes) -> RuleMatches:
        """
        Return the webhooks whose rules match a request, each with the resource and kind to send.

        Selectors and match conditions are evaluated later.

        @raise StorageUnavailable: The cache is not synced yet.
        """
        if not self._configurations.is_current:
            self._configurations.refresh()
            self.webhooks = tuple(one for webhooks in self._configurations.objects for one in webhooks)
            self._matched_webhooks.clear()
        if not self.webhooks:
            return ()
        key = (
            attributes.operation,
            attributes.request_resource,
            attributes.subresource,
            attributes.kind,
            bool(attributes.namespace),
            # The equivalent resources of custom resources change with their definitions.
            self._server.versions.equivalents_key(attributes.group, attributes.resource),
        )
        matched = self._matched_webhooks.get(key)
        if matched is None:
            if len(self._matched_webhooks) >= _MAX_CACHE_ENTRIES:
                self._matched_webhooks.clear()
            matched = self._matched_webhooks[key] = self._find(attributes)
        return matched

    def _find(self, attributes: AdmissionAttributes) -> RuleMatches:
        equivalents = self._server.versions.equivalents_for(
            attributes.group, attributes.resource, attributes.subresource, attributes.request_kind
        )
        matches = []
        for webhook in self.webhooks:
            equivalent = webhook.matcher.match_rules(attributes, equivalents)
            if equivalent is not None:
                matches.append((webhook, equivalent))
        return tuple(matches)

    def _compile(self, configuration: JSONObject) -> list[Webhook]:
        from .webhook import Webhook

        outgoing = self._server.outgoing
        assert outgoing is not None, "a server with webhooks can make outgoing calls"
        numbers: dict[str, int] = {}
        webhooks = []
        for webhook in configuration.get("webhooks") or ():
            name = webhook.get("name") or ""
            number = numbers[name] = numbers.get(name, -1) + 1
            webhooks.append(Webhook(configuration["metadata"]["name"], webhook, number, outgoing, self._credentials))
        return webhooks
