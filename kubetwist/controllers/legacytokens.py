"""
Since when the use of tokens that stand in secrets is tracked: a config map tells it, to those who clean them up.

@see: kubernetes, C{pkg/controlplane/controller/legacytokentracking}.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..api.options import UpdateOptions
from ..api.resource import JSONObject
from ..interfaces import IWatchSink
from ..registry.bootstrap import SERVER, ensure
from ..registry.scope import RequestScope

if TYPE_CHECKING:
    from ..registry.store import Store

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-apiserver-legacy-service-account-token-tracking"
_SINCE: Final = "since"
#: Seconds between two that are made: servers that want it and servers that do not are not to fight.
CREATION: Final = 30 * 60.0
#: Seconds until something that failed is tried again.
RETRY: Final = 5.0
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


@implementer(IWatchSink)
class TokenTracking:
    """Keeps the config map there, with a date in it."""

    _log = Logger()

    def __init__(self, store: Store, reactor: IReactorTime) -> None:
        """
        @param store: Of config maps.
        """
        self._store = store
        self._reactor = reactor
        self._watch: Any = None
        self._planned: IDelayedCall | None = None
        self._created: float | None = None
        self._stopped = False

    async def start(self) -> None:
        """Make it, if it is missing; and look after it from now on."""
        self._follow()
        await self._check()

    def stop(self) -> None:
        """Look no longer."""
        self._stopped = True
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None
        if self._watch is not None:
            self._watch.stop()

    def send(self, kind: str, record: Any, event: Any) -> None:
        """See L{IWatchSink.send}."""
        self._plan(0)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Nothing changed."""

    def end(self, error: Any) -> None:
        """The cache starts over: so do we."""
        self._watch = None
        self._plan(RETRY)

    def _follow(self) -> None:
        self._watch = self._store.cache.watch(f"{NAMESPACE}/{NAME}", sink=self)

    def _plan(self, delay: float) -> None:
        if self._planned is None and not self._stopped:
            self._planned = self._reactor.callLater(delay, self._look)

    def _look(self) -> None:
        self._planned = None
        if self._watch is None:
            if not self._store.cache.ready:
                self._plan(RETRY)
                return
            self._follow()
        Deferred.fromCoroutine(self._check()).addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        self._log.failure("the tracking of tokens in secrets could not be noted", failure)
        self._plan(RETRY)

    async def _check(self) -> None:
        store = self._store
        known = store.lookup(NAMESPACE, NAME)
        if known is None:
            now = self._reactor.seconds()
            if self._created is not None and now < self._created + CREATION:
                self._plan(self._created + CREATION - now)
                return
            await ensure(store, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {_SINCE: _today()}})
            self._created = now
        elif not _is_date((known.get("data") or {}).get(_SINCE)):
            try:
                await store.update(RequestScope(NAMESPACE), NAME, self._mended, UpdateOptions(), patching=True)
            except APIStatusError as error:
                if error.code != 404:
                    raise

    def _mended(self, obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "a patch makes nothing"
        data = obj.get("data") or {}
        if _is_date(data.get(_SINCE)):
            return obj
        new = {**obj, "metadata": {**obj["metadata"]}, "data": {**data, _SINCE: _today()}}
        self._store.own(obj, new, "", SERVER)
        return new


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _is_date(text: Any) -> bool:
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return False
    try:
        datetime.strptime(text, "%Y-%m-%d")
    except ValueError:
        return False
    return True
