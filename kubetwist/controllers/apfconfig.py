"""
Applies flow schemas and priority levels, and sets the condition Dangling of flow schemas (Go: apf_controller.go).

Part of the server, even if all controllers are disabled. It applies the stored objects before the server listens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ..api import times
from ..api.errors import APIStatusError
from ..api.requestscope import RequestScope
from ..api.resource import JSONObject
from ..flowcontrol.controller import (
    FlowControl,
    dangling_condition,
)
from ..registry.flowcontrol.bootstrap import APF_CONFIG_CONSUMER
from ..registry.generic.bootstrap import apply_status
from ..storage.errors import StorageError
from .machinery.informer import Informer, StoreSource

if TYPE_CHECKING:
    from ..registry.generic.store import Store

GROUP: Final = "flowcontrol.apiserver.k8s.io"
#: Seconds until a failed status update is retried.
_RETRY: Final = 5.0


class APFConfigController:
    """Configures L{FlowControl} with the stored flow schemas and priority levels."""

    _log = Logger()

    def __init__(self, flow: FlowControl, levels: Store, schemas: Store, reactor: IReactorTime) -> None:
        self._flow = flow
        self._store = schemas
        self._reactor = reactor
        self._levels = Informer(StoreSource(levels), reactor)
        self._schemas = Informer(StoreSource(schemas), reactor)
        self._scheduled: IDelayedCall | None = None
        self._writing: Deferred[None] | None = None
        self._stopped = False

    def start(self) -> None:
        """Apply the stored objects, and start watching them. The caches must be filled."""
        for informer in (self._levels, self._schemas):
            informer.add_event_handler(lambda event_type, record, old: self._schedule())
            informer.start()
        self._flow.start()
        self._configure()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped = True
        self._flow.stop()
        for informer in (self._levels, self._schemas):
            informer.stop()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        if self._writing is not None:
            self._writing.cancel()

    def _schedule(self, delay: float = 0.0) -> None:
        if self._scheduled is None and not self._stopped:
            self._scheduled = self._reactor.callLater(delay, self._configure)

    def _configure(self) -> None:
        self._scheduled = None
        self._flow.configure(self._levels.list_decoded(), self._schemas.list_decoded())
        if self._writing is None:
            self._writing = Deferred.fromCoroutine(self._update_status())
            self._writing.addErrback(
                lambda failure: self._log.failure("cannot update conditions of flow schemas", failure)
            )
            self._writing.addBoth(self._status_written)

    def _status_written(self, result: object) -> None:
        self._writing = None

    async def _update_status(self) -> None:
        for schema in self._schemas.list_decoded():
            desired = dangling_condition(schema, self._flow.levels)
            if any(desired.items() <= one.items() for one in (schema.get("status") or {}).get("conditions") or ()):
                continue
            try:
                await self._set(schema["metadata"]["name"], desired)
            except APIStatusError as error:
                if error.code != 404:
                    self._schedule(_RETRY)
            except StorageError:
                self._schedule(_RETRY)

    async def _set(self, name: str, condition: JSONObject) -> None:
        status = {"conditions": [{**condition, "lastTransitionTime": times.now()}]}
        await apply_status(self._store, RequestScope(""), name, status, APF_CONFIG_CONSUMER)
