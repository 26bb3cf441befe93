"""
Metrics of a server that kube-apiserver does not have: the reactor, the memory limit, certificates, watch caches.

Alerts use them (F{deploy/prometheus/}). The embedded store and the workers have further ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography import x509

from ..metrics.registry import Histogram, MetricSnapshot
from ..storage.wrappers import unwrap_backend
from .reactordelay import ReactorDelaySampler

if TYPE_CHECKING:
    from ..http.connection.memorylimit import MemoryGuard
    from ..storage.cache.watchcache import WatchCache
    from .config import ServerConfig
    from .datadir import Credentials
    from .generic import GenericServer

#: Returns the watch caches by group and resource.
Caches = Callable[[], "dict[tuple[str, str], WatchCache]"]


def register_process_metrics(config: ServerConfig, server: GenericServer, guard: MemoryGuard | None) -> Histogram:
    """
    Register the metrics of a process, and start to measure the delays of its reactor when it is ready.

    @param server: The server whose hooks start and stop the measurement.
    @param guard: The memory limit; L{None} if there is none.
    @return: The delays of the reactor.
    """
    registry = config.metrics
    delays = ReactorDelaySampler(config.reactor)
    server.add_ready_hook("delays of the reactor", delays.start)
    server.register_destroy_func("delays of the reactor", delays.stop)
    registry.register_collector(delays.collect)
    registry.register_collector(lambda: collect_certificates(config.credentials))
    if guard is not None:
        registry.register_collector(lambda: collect_memory(guard))
    collect = getattr(unwrap_backend(config.backend), "collect", None)
    if collect is not None:
        registry.register_collector(collect)
    return delays.delays


def collect_memory(guard: MemoryGuard) -> Iterator[MetricSnapshot]:
    """Return the memory limit, and the number of requests that it has refused."""
    text = "Memory limit of the server in bytes: --memory-limit, or the limit of its control group; 0 for none."
    yield MetricSnapshot("kubetwist_memory_limit_bytes", "gauge", text, (), [((), float(guard.limit))])
    text = "Number of requests that were refused because of the memory limit."
    refused = [((), float(guard.refused))]
    yield MetricSnapshot("kubetwist_memory_rejected_requests_total", "counter", text, (), refused)


def collect_watch_caches(caches: Caches) -> Iterator[MetricSnapshot]:
    """
    Return the watch caches that do not follow the storage.

    A cache that is filled at the first request counts only after that.
    """
    values = [(labels, float(not cache.ready and not cache.on_demand.pending)) for labels, cache in caches().items()]
    text = "Number of processes of the server whose watch cache is not filled, or does not follow the storage."
    labels = ("group", "resource")
    yield MetricSnapshot("kubetwist_watch_cache_unready", "gauge", text, labels, values)


def collect_certificates(credentials: Credentials) -> Iterator[MetricSnapshot]:
    """Return the time at which each certificate of the server expires."""
    pems = {
        "serving": credentials.serving.certificate,
        "ca": credentials.authority_certificate,
        "front-proxy-client": credentials.front_proxy.certificate,
        "front-proxy-ca": credentials.front_proxy_authority,
    }
    values = [((name,), _expiration(pem)) for name, pem in pems.items()]
    text = "Time at which a certificate of the server expires, in seconds since 1970-01-01."
    name = "kubetwist_certificate_expiration_timestamp_seconds"
    yield MetricSnapshot(name, "gauge", text, ("certificate",), values)


@lru_cache(maxsize=16)
def _expiration(pem: bytes) -> float:
    """Return the expiration of the first certificate of a PEM file, in seconds since 1970-01-01."""
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
