"""The compiled form of one webhook of a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...admission.matching.matcher import Matcher
from ...api.resource import JSONObject
from ...client.clientconfig import rest_config_for
from ...client.restconfig import split_url
from .conditions import MatchConditions

if TYPE_CHECKING:
    from ...client.factory import ClientFactory
    from ...client.httpclient import WebhookClient
    from .credentials import AuthenticationInfoResolver


class Webhook:
    """
    One webhook of a configuration.

    @ivar uid: A unique identifier; names need not be unique.
    @ivar supports_dry_run: Whether the webhook may be called in a dry run.
    @ivar timeout: The timeout of a call, in seconds.
    @ivar ignore_failures: Whether the request continues when the call fails.
    @ivar reinvocable: Whether the webhook is called again after later changes.
    """

    def __init__(
        self,
        configuration: str,
        webhook: JSONObject,
        number: int,
        outgoing: ClientFactory,
        credentials: AuthenticationInfoResolver | None,
    ) -> None:
        """
        @param configuration: The name of the configuration.
        @param webhook: An item of C{webhooks}.
        @param number: The number of preceding webhooks with the same name.
        @param outgoing: The factory of clients.
        @param credentials: The client credentials of webhooks; L{None} for none.
        """
        self.name: str = webhook.get("name") or ""
        self.configuration = configuration
        self.uid = f"{configuration}/{self.name}/{number}"
        self.matcher = Matcher.make(webhook)
        self.conditions = MatchConditions.make(webhook.get("matchConditions") or ())
        self.supports_dry_run = webhook.get("sideEffects") in ("None", "NoneOnDryRun")
        self.timeout = float(webhook.get("timeoutSeconds") or 10)
        self.ignore_failures = webhook.get("failurePolicy") == "Ignore"
        self.reinvocable = webhook.get("reinvocationPolicy") == "IfNeeded"
        self.review_versions: Sequence[str] = webhook.get("admissionReviewVersions") or ()
        self._config: JSONObject = webhook.get("clientConfig") or {}
        self._outgoing = outgoing
        self._credentials = credentials
        self._client: WebhookClient | None = None

    def client(self) -> WebhookClient:
        """
        Return the client of the webhook, created at the first call.

        @raise InvalidRESTConfig: The client configuration cannot be used.
        """
        if self._client is None:
            settings = rest_config_for(self._config, self._outgoing)
            if self._credentials is not None:
                _, host, port = split_url(settings.url)
                settings = self._credentials.client_config_for(settings, f"{host}:{port}")
            self._client = self._outgoing.client(settings)
        return self._client
