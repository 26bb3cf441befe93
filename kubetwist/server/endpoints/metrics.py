"""C{/metrics}: metrics in the Prometheus format."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from ...api.resource import GroupVersion
from ...http.request import KubeRequest
from ...http.responses import GZIP_LEVEL, accepts_gzip
from ...metrics.baseline import Baseline
from ...metrics.exposition import CONTENT_TYPE, collect_process_metrics, merge, render
from ...metrics.options import MetricsOptions
from ...metrics.registry import MetricSnapshot, Registry
from ...metrics.summing import encode_snapshots, sum_snapshots
from ...registry.generic.deprecations import deprecation_warning
from ...resources.mux import DelegatingMux
from ...resources.routing import RoutedApp, add_route, new_app

if TYPE_CHECKING:
    from ...interfaces import IServerReactor
    from ...resources.servedresources import IServedResources
    from ..config import ServerConfig
    from ..peers import Peers


T = TypeVar("T")


class MetricsEndpoint:
    """Returns all metrics of a registry to any method, as in the reference."""

    def __init__(
        self,
        path: str,
        registry: Registry,
        reactor: IServerReactor,
        options: MetricsOptions,
        *,
        process: bool = False,
        resets: bool = True,
        after_reset: Callable[[], object] = lambda: None,
        peers: Peers | None = None,
        worker: str = "",
    ) -> None:
        """
        @param options: Selects the metrics that are shown.
        @param process: Whether to include metrics of the process.
        @param resets: Whether DELETE resets the metrics.
        @param after_reset: Called after a reset.
        @param peers: The other processes of the server, whose metrics are added; L{None} if there are none.
        @param worker: The name of this process among them.
        """
        self._peers = peers
        self._worker = worker
        if peers is not None:
            peers.register(f"metrics of {path}", self._encode)
            peers.register(f"reset of {path}", self._reset_process)
        self._path = path
        self._registry = registry
        self._reactor = reactor
        self._options = options
        self._process = process
        self._resets = resets
        self._baseline = Baseline()
        self._after_reset = after_reset

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        if self._resets:
            add_route(app, "DELETE", self._path, self._reset, slashes=False)
        add_route(app, None, self._path, self._respond, slashes=False)
        return app

    async def _reset(self, request: KubeRequest) -> None:
        await self._reset_process()
        if self._peers is not None:
            await self._peers.call(f"reset of {self._path}")
        request.respond_text(200, "metrics reset\n")

    async def _reset_process(self) -> None:
        """Reset the metrics of this process."""
        written = self._in_thread(self._baseline.take(self._registry))
        self._after_reset()
        await written

    def _collect(self) -> Callable[[], Iterable[MetricSnapshot]]:
        """Return a function that returns the metrics of this process, and may run in any thread."""
        families, snapshots = self._registry.families(), list(self._registry.collect())

        def collected() -> Iterable[MetricSnapshot]:
            of_process = collect_process_metrics() if self._process else ()
            return self._baseline.since(merge(families, [*snapshots, *of_process]))

        return collected

    def _encode(self) -> Deferred[str]:
        """Return the metrics of this process, for another process that adds them."""
        collected = self._collect()
        return self._in_thread(lambda: encode_snapshots(collected(), self._worker))

    async def _respond(self, request: KubeRequest) -> None:
        gzipped = accepts_gzip(request)
        of_peers = None
        if self._peers is not None:
            of_peers = [str(one) for one in await self._peers.call(f"metrics of {self._path}")]
        collected = self._collect()

        def text() -> bytes:
            snapshots = collected()
            if of_peers is not None:
                snapshots = sum_snapshots([encode_snapshots(snapshots, self._worker), *of_peers])
            body = render((), snapshots, self._options.apply)
            return gzip.compress(body, GZIP_LEVEL, mtime=0) if gzipped else body

        # Thousands of lines: encode them outside of the reactor's thread.
        body = await self._in_thread(text)
        if gzipped:
            request.setHeader(b"content-encoding", b"gzip")
        request.respond(200, body, CONTENT_TYPE)

    def _in_thread(self, work: Callable[[], T]) -> Deferred[T]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work)


class ServedResourceNames:
    """The set of served resources, cached by group and version."""

    def __init__(self, served_resources: IServedResources | None, kubernetes_version: str) -> None:
        """
        @param served_resources: The served resources; L{None} for a server with other paths only.
        @param kubernetes_version: The release that is served: C{"1.36"}.
        """
        self._served_resources = served_resources
        self._minor = int(kubernetes_version.partition(".")[2])
        self._generation = -1
        self._names: dict[tuple[str, str], frozenset[str]] = {}

    def __contains__(self, gvr: tuple[str, str, str]) -> bool:
        group, version, name = gvr
        served_resources = self._served_resources
        if served_resources is None:
            return False
        if served_resources.generation != self._generation:
            self._generation = served_resources.generation
            self._names.clear()
        names = self._names.get((group, version))
        if names is None:
            lines = served_resources.resources(GroupVersion(group, version))
            if not lines:
                return False
            names = self._names[group, version] = frozenset(line.name for line in lines)
        return name in names

    def is_deprecated(self, gvr: tuple[str, str, str]) -> bool:
        """Return whether a resource is deprecated."""
        group, version, name = gvr
        if self._served_resources is None or gvr not in self:
            return False
        lines = self._served_resources.resources(GroupVersion(group, version))
        return any(line.name == name and deprecation_warning(line.kind, self._minor) for line in lines)


def install_metrics(mux: DelegatingMux, config: ServerConfig, after_reset: Callable[[], object]) -> None:
    """
    Register the path of the metrics.

    @param after_reset: Called when gauges are reset: references to them must be looked up again.
    """
    reactor, metrics_options, resets = config.reactor, config.options.metrics_options, config.options["profiling"]
    peers, worker = config.peers, config.workers.name
    slis = MetricsEndpoint(
        "/metrics/slis",
        config.health_metrics,
        reactor,
        metrics_options,
        resets=resets,
        peers=peers,
        worker=worker,
    )
    mux.handle("/metrics/slis", RoutedApp(slis.make_app))
    metrics = MetricsEndpoint(
        "/metrics",
        config.metrics,
        reactor,
        metrics_options,
        process=True,
        resets=resets,
        after_reset=after_reset,
        peers=peers,
        worker=worker,
    )
    mux.handle("/metrics", RoutedApp(metrics.make_app))
