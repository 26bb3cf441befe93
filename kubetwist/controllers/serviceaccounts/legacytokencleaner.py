"""
Marks unused auto-generated token Secrets of service accounts as invalid, and deletes them a year later.

@see: kubernetes, C{pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go}.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import ClassVar, Final

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import JSONObject
from ...api.times import seconds_since_epoch
from ...registry.core.pod.references import secret_names
from ...registry.stores import decoded_object
from ..machinery.controller import Controller
from .legacytokentracking import NAME as TRACKING
from .legacytokentracking import NAMESPACE
from .serviceaccounttokens import (
    ACCOUNT_NAME,
    ACCOUNT_UID,
    is_service_account_token,
)

LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
#: Time without use until a token is marked as invalid, and time from then until it is deleted.
CLEANUP_PERIOD: Final = timedelta(days=365)
#: Seconds between two scans.
INTERVAL: Final = 24 * 3600.0


def _parse_date(text: object) -> date | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date() if isinstance(text, str) and len(text) == 10 else None
    except ValueError:
        return None


class LegacyTokenCleaner(Controller[str]):
    """Scans the Secrets once a day. The key is C{""} for the scan, or the key of a Secret to mark or delete."""

    name: ClassVar[str] = "legacy-serviceaccount-token-cleaner-controller"
    service_account: ClassVar[str] = "legacy-service-account-token-cleaner"

    def register_handlers(self) -> None:
        """Start the informers. No handler is needed, since tokens expire without any change."""
        self._secrets = self.context.informer("", "secrets")
        self._accounts = self.context.informer("", "serviceaccounts")
        self._pods = self.context.informer("", "pods")
        self._maps = self.context.informer("", "configmaps")
        self.queue.add("")

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        if key:
            await self._clean_token(key)
            return
        self.queue.add_after("", INTERVAL)
        if self._is_tracked_long_enough():
            for record in self._secrets.list():
                if is_service_account_token(record) and self._is_unused(record):
                    self.queue.add(record.key)

    def _cutoff(self) -> datetime:
        return self.context.now() - CLEANUP_PERIOD

    def _is_tracked_long_enough(self) -> bool:
        """Return whether uses have been tracked for at least the period of L{CLEANUP_PERIOD}."""
        tracking = self._maps.get_decoded(NAMESPACE, TRACKING)
        since = _parse_date(((tracking or {}).get("data") or {}).get("since"))
        if since is None:
            return False
        # The stored date has no time: tracking began at the end of that day at the latest.
        tracked_since = datetime(since.year, since.month, since.day, tzinfo=UTC) + timedelta(days=1)
        return tracked_since <= self._cutoff()

    def _is_unused(self, record: Record) -> bool:
        secret = decoded_object(record)
        meta = secret["metadata"]
        cutoff = self._cutoff()
        if "deletionTimestamp" in meta or seconds_since_epoch(meta["creationTimestamp"]) >= cutoff.timestamp():
            return False
        if LAST_USED in record.labels:
            last_used = _parse_date(record.labels[LAST_USED])
            if last_used is None or last_used >= cutoff.date():
                return False
        return self._is_auto_generated(secret) and not self._is_mounted(record)

    def _is_auto_generated(self, secret: JSONObject) -> bool:
        meta = secret["metadata"]
        annotations = meta.get("annotations") or {}
        account = self._accounts.get_decoded(meta["namespace"], annotations.get(ACCOUNT_NAME) or "")
        if account is None or annotations.get(ACCOUNT_UID) not in (None, "", account["metadata"]["uid"]):
            return False
        return any(one.get("name") == meta["name"] for one in account.get("secrets") or ())

    def _is_mounted(self, record: Record) -> bool:
        name = record.name.encode()
        return any(
            name in pod.item and record.name in secret_names(decoded_object(pod))
            for pod in self._pods.list(record.namespace)
        )

    async def _clean_token(self, key: str) -> None:
        record = self._secrets.by_key(key)
        if record is None or not is_service_account_token(record) or not self._is_unused(record):
            return
        since = _parse_date(record.labels.get(INVALID_SINCE))
        if since is None:
            today = self.context.now().strftime("%Y-%m-%d")
            patch = {"metadata": {"labels": {INVALID_SINCE: today}}}
            uid = decoded_object(record)["metadata"]["uid"]
            await self.client.patch("", "secrets", record.namespace, record.name, patch, uid=uid)
        elif since < self._cutoff().date():
            self._log.info("deleting unused service account token: secret={key}", key=key)
            try:
                await self.client.delete("", "secrets", record.namespace, record.name, revision=record.revision)
            except APIStatusError as error:
                if error.code not in (404, 409):
                    raise
