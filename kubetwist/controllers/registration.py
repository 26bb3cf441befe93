"""Keeps an APIService for each group-version of custom resources: they order discovery, and tell who serves what."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ..api.errors import APIStatusError
from ..api.options import DeleteOptions
from ..api.resource import GroupVersion
from ..registry.bootstrap import AUTOMANAGED, api_service, ensure
from ..registry.scope import RequestScope
from ..registry.store import Store

#: Where groups of custom resources stand among groups, and their versions among versions.
GROUP_PRIORITY: Final = 1000
VERSION_PRIORITY: Final = 100
#: Seconds until something that failed is tried again.
RETRY: Final = 5.0


class Registration:
    """Makes and deletes the APIServices that follow from what is served."""

    _log = Logger()

    def __init__(
        self,
        store: Store,
        served: Callable[[], Collection[GroupVersion]],
        subscribe: Callable[[Callable[[], None]], object],
        reactor: IReactorTime,
    ) -> None:
        """
        @param store: Of APIServices.
        @param served: The group-versions of custom resources.
        @param subscribe: Has a function called after every change of these.
        """
        self._store = store
        self._served = served
        self._reactor = reactor
        self._call: IDelayedCall | None = None
        self._working = False
        self._again = False
        self._stopped = True
        subscribe(self._changed)

    def start(self) -> None:
        """Begin; what is there from an earlier run, and is not served any more, goes."""
        self._stopped = False
        self._changed()

    def stop(self) -> None:
        """Do nothing more."""
        self._stopped = True
        if self._call is not None and self._call.active():
            self._call.cancel()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do now."""
        return not self._working and (self._call is None or not self._call.active())

    def _changed(self) -> None:
        if self._stopped:
            return
        if self._working:
            self._again = True
        elif self._call is None or not self._call.active():
            self._call = self._reactor.callLater(0, self._begin)

    def _begin(self) -> None:
        self._working = True
        Deferred.fromCoroutine(self._work()).addErrback(
            lambda failure: self._log.failure("the registration of custom resources failed", failure)
        )

    async def _work(self) -> None:
        try:
            self._again = True
            while self._again and not self._stopped:
                self._again = False
                await self._reconcile()
        except APIStatusError as error:
            self._log.warn("an APIService could not be written: {error}", error=error)
            self._call = self._reactor.callLater(RETRY, self._changed)
        finally:
            self._working = False

    async def _reconcile(self) -> None:
        wanted = {f"{one.version}.{one.group}": one for one in self._served()}
        there = {record.name: record.labels for record in self._store.cache.list().records}
        for name, group_version in wanted.items():
            if name not in there:
                await ensure(self._store, api_service(group_version, GROUP_PRIORITY, VERSION_PRIORITY, "true"))
        for name, labels in there.items():
            if labels.get(AUTOMANAGED) == "true" and name not in wanted:
                try:
                    await self._store.delete(RequestScope(), name, DeleteOptions())
                except APIStatusError as error:
                    if error.code != 404:
                        raise
