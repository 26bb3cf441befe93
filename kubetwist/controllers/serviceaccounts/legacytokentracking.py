"""
Keeps the ConfigMap with the date since which the use of Secret-based tokens is tracked.

@see: kubernetes, C{pkg/controlplane/controller/legacytokentracking}.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Final

from twisted.internet.interfaces import IReactorTime

from ...api import times
from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.options import UpdateOptions
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...registry.generic.bootstrap import SERVER, ensure
from ..machinery.singleton import SingletonReconciler

if TYPE_CHECKING:
    from ...registry.generic.store import Store

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-apiserver-legacy-service-account-token-tracking"
_SINCE: Final = "since"
#: Minimum seconds between two creations, in case another server deletes the ConfigMap.
CREATE_INTERVAL: Final = 30 * 60.0
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


class LegacyTokenTracking(SingletonReconciler):
    """Creates the ConfigMap and corrects its date."""

    namespace = NAMESPACE
    name = NAME

    def __init__(self, store: Store, reactor: IReactorTime) -> None:
        """
        @param store: The store of ConfigMaps.
        """
        super().__init__(store, reactor)
        self._created: float | None = None

    async def check(self) -> None:
        """Create the ConfigMap, or correct its date."""
        existing = await self.read()
        if existing is None:
            now = self.reactor.seconds()
            if self._created is not None and now < self._created + CREATE_INTERVAL:
                self.schedule(self._created + CREATE_INTERVAL - now)
                return
            await ensure(self.store, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {_SINCE: _today()}})
            self._created = now
        elif not _is_date((existing.get("data") or {}).get(_SINCE)):
            await self.store.cache.on_demand.ensure()
            try:
                await self.store.update(
                    RequestScope(NAMESPACE), NAME, self._with_valid_date, UpdateOptions(), patching=True
                )
            except APIStatusError as error:
                if error.code != 404:
                    raise

    def _with_valid_date(self, obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "an update creates no objects"
        data = obj.get("data") or {}
        if _is_date(data.get(_SINCE)):
            return obj
        new = {**obj, "metadata": {**obj["metadata"]}, "data": {**data, _SINCE: _today()}}
        self.store.update_managed_fields(obj, new, "", SERVER)
        return new


def _today() -> str:
    return times.utc_now().strftime("%Y-%m-%d")


def _is_date(text: JSONValue) -> bool:
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
