"""C{/ui/history}: the metrics of the last hour, for users who may read C{/metrics}."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Final

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from ...api.errors import APIStatusError
from ...filters.authorization import HISTORY
from ...http.request import KubeRequest
from ...http.responses import GZIP_LEVEL, JSON, accepts_gzip
from ...metrics.history.recorder import INTERVAL, HistoryRecorder
from ...resources.routing import RoutedApp, add_route, new_app
from .recording import SAMPLE, Recording
from .sources import ProcessSource, history_bounds

if TYPE_CHECKING:
    from ...registry.stores import Stores
    from ..config import ServerConfig
    from ..generic import GenericServer

#: The function of the recording process that returns the history.
DOCUMENT: Final = "history"
#: Responses of one sample are not worth it.
_GZIP_FROM: Final = 1024


class HistoryEndpoint:
    """Returns the samples after a time."""

    def __init__(self, config: ServerConfig, recorder: HistoryRecorder | None) -> None:
        """
        @param recorder: The samples; L{None} in a process that does not record.
        """
        self._config = config
        self._recorder = recorder
        if config.peers is not None:
            config.peers.register(DOCUMENT, self._document)

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        add_route(app, "GET", HISTORY, self._respond, slashes=False)
        return app

    async def _respond(self, request: KubeRequest) -> None:
        since = _since(request)
        gzipped = accepts_gzip(request)
        document = await self._find_document(since)
        if gzipped and len(document) >= _GZIP_FROM:
            document = await self._in_thread(partial(gzip.compress, document, GZIP_LEVEL, mtime=0))
            request.setHeader(b"content-encoding", b"gzip")
        request.setHeader(b"cache-control", b"no-store")
        request.setHeader(b"vary", b"accept-encoding")
        request.respond(200, document, JSON)

    async def _find_document(self, since: float) -> bytes:
        if self._recorder is not None or self._config.peers is None:
            return (await self._document(since) or "").encode()
        for document in await self._config.peers.call(DOCUMENT, since):
            if isinstance(document, str):
                return document.encode()
        raise APIStatusError.service_unavailable("the process that records the metrics does not answer")

    async def _document(self, since: float) -> str | None:
        """Return the JSON of the samples after a time; L{None} in a process that does not record."""
        if self._recorder is None:
            return None
        return (await self._in_thread(self._recorder.snapshot(since))).decode()

    def _in_thread(self, work: Callable[[], bytes]) -> Deferred[bytes]:
        reactor = self._config.reactor
        return deferToThreadPool(reactor, reactor.getThreadPool(), work)


def _since(request: KubeRequest) -> float:
    text = (request.query.get("since") or ("0",))[0]
    try:
        since = float(text)
    except ValueError:
        since = float("nan")
    if not isfinite(since):
        raise APIStatusError.bad_request("since must be a time in seconds since 1970-01-01")
    return since


def _count_restarts(config: ServerConfig) -> int:
    """Return how often a worker was started again."""
    count: int = getattr(getattr(config.peers, "fronts", None), "restarts", 0)
    return count


def install_history(config: ServerConfig, server: GenericServer, source: ProcessSource, stores: Stores | None) -> None:
    """
    Record the metrics of the last hour while the server runs, and serve them.

    @param server: The server whose hooks start and stop it.
    @param source: The samples of this process.
    @param stores: The stores; L{None} for a server without APIs.
    """
    if config.peers is not None:
        config.peers.register(SAMPLE, source.take_encoded)
    recorder = None
    if not config.is_front:
        recorder = HistoryRecorder(history_bounds(config.metrics), INTERVAL)
        recording = Recording(config, source, recorder, stores, partial(_count_restarts, config))
        server.add_ready_hook("history of metrics", recording.start)
        server.register_destroy_func("history of metrics", recording.stop)
    endpoint = HistoryEndpoint(config, recorder)
    server.mux.handle(HISTORY, RoutedApp(endpoint.make_app), exposed=False)
