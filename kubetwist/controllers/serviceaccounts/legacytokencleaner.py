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
UNUSED: Final = timedelta(days=365)
#: Seconds between two scans.
INTERVAL: Final = 24 * 3600.0


def _day(text: object) -> date | None:
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
        if self._tracked_for_long():
            for record in self._secrets.list():
                if is_service_account_token(record) and self._unused(record):
                    self.queue.add(record.key)

    def _before(self) -> datetime:
        return self.context.now() - UNUSED

    def _tracked_for_long(self) -> bool:
        """Return whether uses have been tracked for at least the period of L{UNUSED}."""
        tracking = self._maps.get_decoded(NAMESPACE, TRACKING)
        since = _day(((tracking or {}).get("data") or {}).get("since"))
        if since is None:
            return False
        # The stored date has no time: tracking began at the end of that day at the latest.
        begun = datetime(since.year, since.month, since.day, tzinfo=UTC) + timedelta(days=1)
        return begun <= self._before()

    def _unused(self, record: Record) -> bool:
        secret = decoded_object(record)
        meta = secret["metadata"]
        before = self._before()
        if "deletionTimestamp" in meta or seconds_since_epoch(meta["creationTimestamp"]) >= before.timestamp():
            return False
        if LAST_USED in record.labels:
            used = _day(record.labels[LAST_USED])
            if used is None or used >= before.date():
                return False
        return self._made_for_account(secret) and not self._mounted(record)

    def _made_for_account(self, secret: JSONObject) -> bool:
        meta = secret["metadata"]
        annotations = meta.get("annotations") or {}
        account = self._accounts.get_decoded(meta["namespace"], annotations.get(ACCOUNT_NAME) or "")
        if account is None or annotations.get(ACCOUNT_UID) not in (None, "", account["metadata"]["uid"]):
            return False
        return any(one.get("name") == meta["name"] for one in account.get("secrets") or ())

    def _mounted(self, record: Record) -> bool:
        mark = record.name.encode()
        return any(
            mark in pod.item and record.name in secret_names(decoded_object(pod))
            for pod in self._pods.list(record.namespace)
        )

    async def _clean_token(self, key: str) -> None:
        record = self._secrets.by_key(key)
        if record is None or not is_service_account_token(record) or not self._unused(record):
            return
        since = _day(record.labels.get(INVALID_SINCE))
        if since is None:
            today = self.context.now().strftime("%Y-%m-%d")
            patch = {"metadata": {"labels": {INVALID_SINCE: today}}}
            uid = decoded_object(record)["metadata"]["uid"]
            await self.client.patch("", "secrets", record.namespace, record.name, patch, uid=uid)
        elif since < self._before().date():
            self._log.info("deleting the unused token in {key}", key=key)
            try:
                await self.client.delete("", "secrets", record.namespace, record.name, revision=record.revision)
            except APIStatusError as error:
                if error.code not in (404, 409):
                    raise
