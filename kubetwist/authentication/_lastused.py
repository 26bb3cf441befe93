"""Records the day of the last use of legacy tokens in a label of their Secret."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import time
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ..api.errors import APIStatusError
from ..api.options import UpdateOptions
from ..api.requestscope import RequestScope
from ..api.resource import JSONObject
from ..registry.generic.bootstrap import SERVER

if TYPE_CHECKING:
    from ..registry.stores import Stores

LABEL: Final = "kubernetes.io/legacy-token-last-used"
#: Maximum number of concurrent writes; further Secrets are updated at the next use of their token.
_MAX_CONCURRENT_WRITES: Final = 64


class LastUsed:
    """Writes the label at most once a day and token. Requests do not wait for the write."""

    _log = Logger()

    def __init__(self, stores: Stores, now: Callable[[], float] = time) -> None:
        """
        @param stores: The stores of the server, which are read at each request.
        @param now: Returns the time in seconds since the epoch.
        """
        self._stores = stores
        self._now = now
        self._writing: set[str] = set()

    def record_use(self, secret: JSONObject) -> None:
        """Record that the token of a Secret was used."""
        today = datetime.fromtimestamp(self._now(), UTC)
        days = [(today + timedelta(days=days)).strftime("%Y-%m-%d") for days in (0, 1)]
        meta = secret["metadata"]
        uid = meta["uid"]
        # Clocks differ: another server may have written the next day already.
        if (
            (meta.get("labels") or {}).get(LABEL) in days
            or uid in self._writing
            or len(self._writing) >= _MAX_CONCURRENT_WRITES
        ):
            return
        self._writing.add(uid)
        writing = Deferred.fromCoroutine(self._write(meta["namespace"], meta["name"], uid, days[0]))
        writing.addErrback(lambda failure: self._log.failure("recording the use of a legacy token failed", failure))
        writing.addBoth(lambda _: self._writing.discard(uid))

    async def _write(self, namespace: str, name: str, uid: str, day: str) -> None:
        store = self._stores.get("", "secrets")

        def change(obj: JSONObject | None) -> JSONObject:
            assert obj is not None, "a patch does not create objects"
            meta = obj["metadata"]
            if meta["uid"] != uid:
                # Another Secret with this name.
                return obj
            new = {**obj, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), LABEL: day}}}
            store.update_managed_fields(obj, new, "", SERVER)
            return new

        try:
            await store.update(RequestScope(namespace), name, change, UpdateOptions(), patching=True)
        except APIStatusError as error:
            if error.code != 404:
                self._log.warn(
                    "recording the use of the token in secret {namespace}/{name} failed: {reason}",
                    namespace=namespace,
                    name=name,
                    reason=error.message,
                )
