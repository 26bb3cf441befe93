"""Webhook configurations as the server works with them: compiled when they change, and at hand for each request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from zope.interface import implementer

from ...admission.attributes import AdmissionAttributes
from ...api.resource import JSONObject
from ...interfaces import IWatchSink
from ...outgoing.clientconfig import settings_of
from ...outgoing.errors import BadSettings
from ...registry.versions import Form
from ...storage.errors import StorageUnavailable
from .conditions import Conditions
from .credentials import Credentials
from .selecting import Selection

if TYPE_CHECKING:
    from ...outgoing.client import WebhookClient
    from ...outgoing.outgoing import Outgoing
    from ...registry.stores import Stores
    from ...storage.record import Record

GROUP: Final = "admissionregistration.k8s.io"
#: Kinds of requests whose webhooks are remembered.
_REMEMBERED: Final = 4096


class Webhook:
    """
    One webhook of a configuration.

    @ivar uid: Tells it from all others, as names need not.
    @ivar dry: Whether it may be called in a dry run.
    @ivar timeout: In seconds.
    @ivar ignores: Whether the request passes when the call fails.
    @ivar again: Whether it wants to see what others change after it.
    """

    def __init__(
        self, configuration: str, webhook: JSONObject, number: int, outgoing: Outgoing, credentials: Credentials
    ) -> None:
        self.name: str = webhook.get("name") or ""
        self.configuration = configuration
        self.uid = f"{configuration}/{self.name}/{number}"
        self.selection = Selection.make(webhook)
        self.conditions = Conditions.make(webhook.get("matchConditions") or ())
        self.dry = webhook.get("sideEffects") in ("None", "NoneOnDryRun")
        self.timeout = float(webhook.get("timeoutSeconds") or 10)
        self.ignores = webhook.get("failurePolicy") == "Ignore"
        self.again = webhook.get("reinvocationPolicy") == "IfNeeded"
        self.review_versions: Sequence[str] = webhook.get("admissionReviewVersions") or ()
        self._config: JSONObject = webhook.get("clientConfig") or {}
        self._outgoing = outgoing
        self._credentials = credentials
        self._client: WebhookClient | None = None

    def client(self) -> WebhookClient:
        """
        What calls it, made at the first call.

        @raise BadSettings: What the configuration says can not be used.
        """
        if self._client is None:
            settings = settings_of(self._config, self._outgoing.services)
            parts = urlsplit(settings.url)
            try:
                target = f"{parts.hostname}:{parts.port or 443}"
            except ValueError as error:
                raise BadSettings(str(error)) from None
            self._client = self._outgoing.client(self._credentials.added_to(settings, target))
        return self._client


@implementer(IWatchSink)
class Configurations:
    """
    All webhooks of one kind, in the order that they are called in.

    Compiled again when a configuration changes, but only that one.
    """

    def __init__(self, stores: Stores, resource: str, credentials: Credentials) -> None:
        """
        @param resource: C{"mutatingwebhookconfigurations"} or the other one.
        """
        self._stores = stores
        self._resource = resource
        self._credentials = credentials
        self._watch: Any = None
        self._stale = True
        self._compiled: dict[str, tuple[int, tuple[Webhook, ...]]] = {}
        self.webhooks: tuple[Webhook, ...] = ()
        self._meant: dict[Any, tuple[tuple[Webhook, Form], ...]] = {}

    # The watch cache's side.

    def send(self, kind: str, record: Any, event: Any) -> None:
        """See L{IWatchSink.send}."""
        self._stale = True

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Nothing changed."""

    def end(self, error: Any) -> None:
        """The cache starts over: so do we, at the next question."""
        self._watch = None

    # The chain's side.

    def meant_for(self, attributes: AdmissionAttributes) -> tuple[tuple[Webhook, Form], ...]:
        """
        The webhooks whose rules mean a request, each with the form in which it is to see it.

        Whether they are called depends on what else they say.

        @raise StorageUnavailable: They are not known yet.
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
            # What custom resources are equivalent to changes with their definitions.
            self._stores.versions.definition(attributes.group, attributes.resource),
        )
        meant = self._meant.get(key)
        if meant is None:
            if len(self._meant) >= _REMEMBERED:
                self._meant.clear()
            meant = self._meant[key] = self._find(attributes)
        return meant

    def _find(self, attributes: AdmissionAttributes) -> tuple[tuple[Webhook, Form], ...]:
        forms = self._stores.versions.forms(
            attributes.group, attributes.resource, attributes.subresource, attributes.request_kind
        )
        found = []
        for webhook in self.webhooks:
            form = webhook.selection.form(attributes, forms)
            if form is not None:
                found.append((webhook, form))
        return tuple(found)

    def _refresh(self) -> None:
        store = self._stores.find(GROUP, self._resource)
        if store is None:
            # Switched off by --runtime-config.
            self._watch, self._stale = True, False
            return
        cache = store.cache
        if self._watch is None:
            if not cache.ready:
                if self._compiled:
                    # The cache fills anew; what was known goes on to hold.
                    return
                raise StorageUnavailable("not yet ready to handle request")
            self._watch = cache.watch("", sink=self)
        self._stale = False
        before, self._compiled = self._compiled, {}
        for record in cache.list().records:
            known = before.get(record.name)
            if known is None or known[0] != record.revision:
                known = (record.revision, tuple(self._compile(record)))
            # Calls by what was there before go on to their end.
            self._compiled[record.name] = known
        self.webhooks = tuple(one for _, webhooks in self._compiled.values() for one in webhooks)
        self._meant.clear()

    def _compile(self, record: Record) -> list[Webhook]:
        outgoing = self._stores.outgoing
        assert outgoing is not None, "a server that has webhooks can call them"
        numbers: dict[str, int] = {}
        webhooks = []
        obj = self._stores.lookup(GROUP, self._resource, "", record.name) or {}
        for webhook in obj.get("webhooks") or ():
            name = webhook.get("name") or ""
            number = numbers[name] = numbers.get(name, -1) + 1
            webhooks.append(Webhook(record.name, webhook, number, outgoing, self._credentials))
        return webhooks
