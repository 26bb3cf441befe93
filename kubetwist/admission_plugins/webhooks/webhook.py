"""One webhook of a configuration, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...admission.matching.matcher import Selection
from ...api.resource import JSONObject
from ...client.clientconfig import settings_of
from ...client.restconfig import split_url
from .conditions import Conditions

if TYPE_CHECKING:
    from ...client.factory import Outgoing
    from ...client.httpclient import WebhookClient
    from .credentials import Credentials


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
        self, configuration: str, webhook: JSONObject, number: int, outgoing: Outgoing, credentials: Credentials | None
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
            settings = settings_of(self._config, self._outgoing)
            if self._credentials is not None:
                _, host, port = split_url(settings.url)
                settings = self._credentials.added_to(settings, f"{host}:{port}")
            self._client = self._outgoing.client(settings)
        return self._client
