"""
Collect metrics from components of a server that have counters: caches, controllers, audit, other servers.

The values are read only when C{/metrics} is requested.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..api.featuregates import format_release
from ..authentication.metrics import token_metrics
from ..cel import durations
from ..interfaces import IAuthenticatorUnion, IAuthorizerUnion
from ..metrics.lazyvalues import LazyValues
from ..metrics.options import merge_histograms
from ..metrics.registry import Histogram, MetricSnapshot, Registry
from ..registry.generic.updates import TIMESTAMP_COMPARISONS
from ..storage.encryption.metrics import EncryptionMetrics
from ..storage.wrappers import unwrap_backend
from .processmetrics import collect_watch_caches
from .version import version_document

if TYPE_CHECKING:
    from ..controllers.machinery.queue import WorkQueue
    from ..http.site import KubeSite
    from ..registry.core.service.allocator import ServiceAllocator
    from ..storage.cache.metrics import CacheMetrics
    from ..storage.cache.watchcache import WatchCache
    from .apis import InstalledAPIs
    from .config import ServerConfig

_RESOURCE = ("group", "resource")
_PORTS = "kube_apiserver_nodeport_allocator_"


def register_collectors(config: ServerConfig, apis: InstalledAPIs | None) -> None:
    """
    Add the metrics of a server, of its plugins and of its APIs to its registry.

    @param apis: The APIs of the server; L{None} for a server without any.
    """
    registry = config.metrics
    registry.register_collector(lambda: _version(config))
    registry.register_collector(lambda: _threads(config))
    registry.register_collector(config.outgoing.collect)
    if config.encryption is None:
        registry.register_collector(EncryptionMetrics().collect_data_keys)
    registry.register_collector(lambda: _audit(config))
    registry.register_collector(lambda: _storage(config))
    registry.register_collector(lambda: _credentials(config))
    registry.register_collector(_expressions)
    registry.register_collector(_timestamp_comparisons)
    registry.register_collector(config.authorization_webhooks.collect)
    registry.register_collector(lambda: _reloads(config))
    registry.register_collector(lambda: _features(config))
    registry.register_collector(lambda: _decisions(config))
    if apis is not None:
        counted: bool = config.options["etcd-count-metric-poll-period"] != 0
        registry.register_collector(lambda: _caches(apis, counted))
        registry.register_collector(lambda: collect_watch_caches(lambda: _all_caches(apis)))
        registry.register_collector(lambda: _controllers(apis))
        registry.register_collector(lambda: _cache_usage(apis))
        registry.register_collector(lambda: apis.registry.admission.collect())
        registry.register_collector(apis.flusher.collect)
        registry.register_collector(lambda: _services(apis.registry.allocators.services))


def register_connection_collectors(registry: Registry, site: KubeSite) -> None:
    """Register the metrics of accepted and rejected connections of a L{kubetwist.http.site.KubeSite}."""

    def collect() -> Iterator[MetricSnapshot]:
        text = "Number of connections that failed in the TLS handshake."
        yield _counter(
            "apiserver_tls_handshake_errors_total", text, (), [((), float(site.connections.failed_handshakes))]
        )

    registry.register_collector(collect)


def _gauge(
    name: str, text: str, labels: Iterable[str], values: Iterable[tuple[tuple[str, ...], float]]
) -> MetricSnapshot:
    return MetricSnapshot(name, "gauge", text, tuple(labels), list(values))


def _counter(
    name: str, text: str, labels: Iterable[str], values: Iterable[tuple[tuple[str, ...], float]]
) -> MetricSnapshot:
    return MetricSnapshot(name, "counter", text, tuple(labels), list(values))


def _all_caches(apis: InstalledAPIs) -> dict[tuple[str, str], WatchCache]:
    caches = {(one.info.group, one.info.resource): one.cache for one in apis.registry.stores}
    custom = apis.custom
    for served in custom.all_served() if custom is not None else ():
        if served.ready:
            caches[served.definition.group, served.definition.plural] = served.cache
    return caches


def _caches(apis: InstalledAPIs, counted: bool) -> Iterator[MetricSnapshot]:
    caches = _all_caches(apis)
    filled = {labels: cache for labels, cache in caches.items() if not cache.on_demand.pending}
    sizes = {labels: cache.sizes() for labels, cache in filled.items()} if counted else {}
    counts = [(labels, float(count)) for labels, (count, _) in sizes.items()]
    yield _gauge("apiserver_resource_objects", "Number of stored objects, by group and resource.", _RESOURCE, counts)
    plain = [((f"{resource}.{group}" if group else resource,), count) for (group, resource), count in counts]
    yield _gauge("apiserver_storage_objects", "Number of stored objects, by resource.group.", ("resource",), plain)
    yield _gauge(
        "apiserver_resource_size_estimate_bytes",
        "Estimated size of the stored objects in bytes, by group and resource.",
        _RESOURCE,
        [(labels, float(count * size)) for labels, (count, size) in sizes.items()],
    )
    for name, kind, text, attribute in (
        ("resource_version", "gauge", "Resource version of the watch cache.", "revision"),
        ("events_received_total", "counter", "Number of events received by the watch cache.", "received"),
        ("initializations_total", "counter", "Number of watch cache initializations.", "fills"),
    ):
        values = LazyValues(partial(_numbers, caches, attribute))
        yield MetricSnapshot(f"apiserver_watch_cache_{name}", kind, text, _RESOURCE, values)


def _numbers(caches: Mapping[tuple[str, str], WatchCache], attribute: str) -> list[tuple[tuple[str, str], float]]:
    return [(labels, float(getattr(cache, attribute))) for labels, cache in caches.items()]


def _cache_usage(apis: InstalledAPIs) -> Iterator[MetricSnapshot]:
    unique: dict[int, tuple[tuple[str, str], WatchCache]] = {}
    for labels, cache in _all_caches(apis).items():
        # Resources that are stored at one place share a cache, which counts for the first of them.
        unique.setdefault(id(cache), (labels, cache))
    caches = [(labels, cache, cache.metrics) for labels, cache in unique.values()]
    # As in the reference, a list of no objects also creates the counters of objects.
    gates = {"fetched": "lists", "returned": "lists"}
    gates.update((name, "stored_lists") for name in ("stored_fetched", "stored_evaluated", "stored_returned"))
    for name, text, more, attribute in (
        ("cache_list_total", "Number of LIST requests served from watch cache.", ("index",), "lists"),
        (
            "cache_list_fetched_objects_total",
            "Number of objects read from watch cache for LIST requests.",
            ("index",),
            "fetched",
        ),
        (
            "cache_list_returned_objects_total",
            "Number of objects returned for LIST requests from watch cache.",
            (),
            "returned",
        ),
        ("storage_list_total", "Number of LIST requests served from storage.", (), "stored_lists"),
        (
            "storage_list_fetched_objects_total",
            "Number of objects read from storage for LIST requests.",
            (),
            "stored_fetched",
        ),
        (
            "storage_list_evaluated_objects_total",
            "Number of objects tested for LIST requests served from storage.",
            (),
            "stored_evaluated",
        ),
        (
            "storage_list_returned_objects_total",
            "Number of objects returned for LIST requests from storage.",
            (),
            "stored_returned",
        ),
        ("watch_cache_events_dispatched_total", "Number of events dispatched by the watch cache.", (), "dispatched"),
        ("storage_decode_errors_total", "Number of stored object decode errors.", (), "unreadable"),
    ):
        labels = (*_RESOURCE, *more)
        yield MetricSnapshot(
            f"apiserver_{name}",
            "counter",
            text,
            labels,
            LazyValues(partial(_used_values, caches, attribute, len(more), gates.get(attribute, attribute))),
        )
    for name, text, attribute in (
        ("objects", "Number of encoded forms (protobuf, CBOR) that are kept beside the JSON of objects.", "encodings"),
        ("bytes", "Size of these forms in bytes.", "encoded_bytes"),
    ):
        values = LazyValues(partial(_used_values, caches, attribute, 0, attribute))
        yield MetricSnapshot(f"kubetwist_watch_cache_encoded_{name}", "gauge", text, _RESOURCE, values)
    received = LazyValues(lambda: [(labels, float(cache.received)) for labels, cache, _ in caches])
    text = "Number of events received from storage."
    yield MetricSnapshot("apiserver_storage_events_received_total", "counter", text, _RESOURCE, received)
    waits = LazyValues(lambda: [(labels, metrics.waits) for labels, _, metrics in caches if metrics.waits.count])
    text = "Duration in seconds of waiting for the watch cache to become fresh."
    yield MetricSnapshot("apiserver_watch_cache_read_wait_seconds", "histogram", text, _RESOURCE, waits)
    capacities = LazyValues(lambda: [(labels, float(cache.capacity)) for labels, cache, _ in caches])
    text = "Maximum number of events in the watch cache."
    yield MetricSnapshot("watch_cache_capacity", "gauge", text, _RESOURCE, capacities)
    # Dashboards expect this name for the size of the storage, for any backend.
    for name, kind, text, convert in (
        ("request_duration_seconds", "histogram", "Duration of storage requests in seconds, by operation.", _histogram),
        ("requests_total", "counter", "Number of storage requests, by operation.", _counted),
    ):
        requests = LazyValues(partial(_storage_requests, caches, convert))
        yield MetricSnapshot(f"etcd_{name}", kind, text, ("operation", *_RESOURCE), requests)
    failures = LazyValues(lambda: _failures(caches))
    text = "Number of failed storage requests, by operation."
    yield MetricSnapshot("etcd_request_errors_total", "counter", text, ("operation", *_RESOURCE), failures)


#: By group and resource: a cache and its usage counters.
_Caches = list[tuple[tuple[str, str], "WatchCache", "CacheMetrics"]]


def _used_values(caches: _Caches, attribute: str, more: int, gate: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """
    Return one value of each cache, with some empty labels added.

    @param attribute: The name of the value.
    @param more: The number of further labels.
    @param gate: The name of another value; caches for which it is zero are left out.
    """
    for labels, _, metrics in caches:
        if getattr(metrics, gate):
            yield (*labels, *("",) * more), float(getattr(metrics, attribute))


def _histogram(seconds: Histogram) -> Histogram:
    return seconds


def _counted(seconds: Histogram) -> float:
    return float(seconds.count)


def _storage_requests(
    caches: _Caches, attribute: Callable[[Histogram], float | Histogram]
) -> Iterator[tuple[tuple[str, ...], float | Histogram]]:
    for labels, _, metrics in caches:
        for operation, seconds in list(metrics.requests.items()):
            yield (operation, *labels), attribute(seconds)


def _failures(caches: _Caches) -> Iterator[tuple[tuple[str, ...], float]]:
    for labels, _, metrics in caches:
        for operation, count in list(metrics.failures.items()):
            yield (operation, *labels), float(count)


def storage_size(config: ServerConfig) -> float | None:
    """Return the size of the files of the embedded store in bytes; L{None} without such a store."""
    path = getattr(unwrap_backend(config.backend), "path", None)
    if path is None:
        return None
    size = 0.0
    for one in (path, f"{path}-wal"):
        with suppress(OSError):
            size += os.stat(one).st_size
    return size


def _storage(config: ServerConfig) -> Iterator[MetricSnapshot]:
    size = storage_size(config)
    if size is not None:
        text = "Size of the storage database files in bytes."
        yield _gauge("apiserver_storage_size_bytes", text, ("storage_cluster_id",), [(("sqlite-0",), size)])


def _decisions(config: ServerConfig) -> Iterator[MetricSnapshot]:
    authorizer = config.authorizer
    if IAuthorizerUnion.providedBy(authorizer):
        values = [(labels, float(count)) for labels, count in authorizer.decisions()]
        text = "Number of terminal decisions by authorizers, by authorizer and decision."
        yield _counter("apiserver_authorization_decisions_total", text, ("type", "name", "decision"), values)


def _controllers(apis: InstalledAPIs) -> Iterator[MetricSnapshot]:
    manager = apis.controllers
    running = None if manager is None else manager.running
    if manager is not None and manager.lease_name:
        values = [((manager.lease_name,), 0.0 if running is None else 1.0)]
        text = "Gauge of whether this server is the leader and runs the controllers: 1 or 0."
        yield _gauge("leader_election_master_status", text, ("name",), values)
    controllers = {} if running is None else running.controllers
    queues = {}
    for name, controller in controllers.items():
        # Controllers of plugins may have none.
        queue: WorkQueue[Any] | None = getattr(controller, "queue", None)
        if queue is not None:
            queues[name,] = queue
    yield _gauge(
        "workqueue_depth",
        "Current depth of workqueue.",
        ("name",),
        [(name, float(len(queue))) for name, queue in queues.items()],
    )
    unfinished = {name: queue.unfinished_work() for name, queue in queues.items()}
    for name, text, which in (
        ("unfinished_work_seconds", "Total duration in seconds of the work in progress.", 0),
        ("longest_running_processor_seconds", "Duration in seconds of the longest running work in progress.", 1),
    ):
        seconds_by_queue = [(labels, seconds[which]) for labels, seconds in unfinished.items()]
        yield _gauge(f"workqueue_{name}", text, ("name",), seconds_by_queue)
    for name, text, attribute in (
        ("adds_total", "Total number of adds handled by workqueue.", "adds"),
        ("retries_total", "Total number of retries handled by workqueue.", "retries"),
    ):
        values = [(labels, float(getattr(queue.metrics, attribute))) for labels, queue in queues.items()]
        yield _counter(f"workqueue_{name}", text, ("name",), values)
    for name, text, attribute in (
        (
            "queue_duration_seconds",
            "Duration in seconds an item stays in workqueue before being requested.",
            "queue_duration",
        ),
        ("work_duration_seconds", "Duration in seconds of processing an item from workqueue.", "work_duration"),
    ):
        histograms = [(labels, getattr(queue.metrics, attribute)) for labels, queue in queues.items()]
        yield MetricSnapshot(f"workqueue_{name}", "histogram", text, ("name",), histograms)


def _version(config: ServerConfig) -> Iterator[MetricSnapshot]:
    features = config.features
    document = version_document(features)
    labels = {
        "build_date": document["buildDate"],
        "compiler": document["compiler"],
        "git_commit": document["gitCommit"],
        "git_tree_state": document["gitTreeState"],
        "git_version": document["gitVersion"],
        "go_version": document["goVersion"],
        "major": document["major"],
        "minor": document["minor"],
        "platform": document["platform"],
    }
    yield _gauge(
        "kubernetes_build_info",
        "Constant 1, labeled by the version and build of the server.",
        labels,
        [(tuple(labels.values()), 1.0)],
    )

    labels = {
        "binary": document["gitVersion"][1:],
        "component": "kube",
        "emulation": format_release(features.emulated),
        "min_compat": format_release(features.minimum),
    }
    yield _gauge(
        "version_info",
        "Constant 1, labeled by the compatibility versions of the component.",
        labels,
        [(tuple(labels.values()), 1.0)],
    )


def _features(config: ServerConfig) -> Iterator[MetricSnapshot]:
    features = config.features
    values = [
        ((name, "" if state.stage == "GA" else state.stage), 1.0 if features.enabled(name) else 0.0)
        for name, state in features.existing()
    ]
    yield _gauge(
        "kubernetes_feature_enabled",
        "Whether a feature is enabled: 1 or 0, by name and stage.",
        ("name", "stage"),
        values,
    )


def _credentials(config: ServerConfig) -> Iterator[MetricSnapshot]:
    authenticator = config.authenticator
    authenticators = authenticator.authenticators if IAuthenticatorUnion.providedBy(authenticator) else ()
    yield from token_metrics(one.metrics for one in authenticators if hasattr(one, "metrics"))
    for one in authenticators:
        if hasattr(one, "collect"):
            yield from one.collect()
    histograms = [one.expiration_seconds for one in config.client_authorities]
    text = "Remaining lifetime in seconds of the client certificates used for authentication."
    expirations = [((), merge_histograms(histograms))] if histograms else []
    yield MetricSnapshot("apiserver_client_certificate_expiration_seconds", "histogram", text, (), expirations)


def _reloads(config: ServerConfig) -> Iterator[MetricSnapshot]:
    reloads = config.files.reloads.items()
    for flag, kind in (("--authorization-config", "authorization"), ("--authentication-config", "authentication")):
        histograms = [((status, ""), count, at) for (source, status), (count, at) in reloads if source == flag]
        prefix = f"apiserver_{kind}_config_controller_automatic_reload"
        labels = ("status", "apiserver_id_hash")
        counts = [(key, float(count)) for key, count, _ in histograms]
        yield _counter(f"{prefix}s_total", f"Number of automatic reloads of {flag}, by status.", labels, counts)
        times = [(key, at) for key, _, at in histograms]
        yield _gauge(
            f"{prefix}_last_timestamp_seconds",
            f"Time of the last automatic reload of {flag}, by status.",
            labels,
            times,
        )


def _expressions() -> Iterator[MetricSnapshot]:
    for name, text, seconds in (
        ("compilation", "CEL compilation time in seconds.", durations.COMPILATION),
        ("evaluation", "CEL evaluation time in seconds.", durations.EVALUATION),
    ):
        yield MetricSnapshot(f"apiserver_cel_{name}_duration_seconds", "histogram", text, (), [((), seconds)])


def _timestamp_comparisons() -> Iterator[MetricSnapshot]:
    values = [((outcome,), seconds) for outcome, seconds in TIMESTAMP_COMPARISONS.items() if seconds.count]
    text = "Time taken for comparison of old vs new objects in UPDATE or PATCH requests, in seconds."
    name = "apiserver_request_timestamp_comparison_time"
    yield MetricSnapshot(name, "histogram", text, ("code_path",), values)


def _services(allocator: ServiceAllocator) -> Iterator[MetricSnapshot]:
    prefix = "kube_apiserver_clusterip_allocator_"
    ranges = [(str(one.network), one) for one in allocator.ips.values()]
    values = [((cidr,), float(one.max_in_use())) for cidr, one in ranges]
    yield _gauge(f"{prefix}allocated_ips", "Number of allocated IPs for Services.", ("cidr",), values)
    values = [((cidr,), float(one.size - one.max_in_use())) for cidr, one in ranges]
    yield _gauge(f"{prefix}available_ips", "Number of available IPs for Services.", ("cidr",), values)
    text = "Duration in seconds to allocate a cluster IP."
    seconds = [((cidr,), one.allocations.seconds) for cidr, one in ranges]
    yield MetricSnapshot(f"{prefix}allocation_duration_seconds", "histogram", text, ("cidr",), seconds)
    ports = allocator.ports
    count = len(ports.ports_in_use() | ports.pending())
    for name, attribute, text in (
        ("allocation_total", "allocations_total", "Number of {} allocations."),
        ("allocation_errors_total", "allocation_errors_total", "Number of errors trying to allocate {}."),
    ):
        by_range = [
            ((cidr, str(scope)), float(count))
            for cidr, one in ranges
            for scope, count in getattr(one.allocations, attribute).items()
        ]
        yield _counter(f"{prefix}{name}", text.format("cluster IP"), ("cidr", "scope"), by_range)
        values = [((scope,), float(count)) for scope, count in getattr(ports.allocations, attribute).items()]
        yield _counter(f"{_PORTS}{name}", text.format("NodePort"), ("scope",), values)
    yield _gauge(f"{_PORTS}allocated_ports", "Number of allocated NodePorts.", (), [((), float(count))])
    free = float(ports.high - ports.low + 1 - count)
    yield _gauge(f"{_PORTS}available_ports", "Number of available NodePorts.", (), [((), free)])


def _threads(config: ServerConfig) -> Iterator[MetricSnapshot]:
    # Dashboards expect the number of goroutines, which shows whether work piles up.
    delayed_calls = config.reactor.getDelayedCalls()
    count = float(threading.active_count() + len(delayed_calls))
    yield _gauge("go_goroutines", "Number of threads and delayed calls of the reactor.", (), [((), count)])


def _audit(config: ServerConfig) -> Iterator[MetricSnapshot]:
    counts = None if config.auditor is None else config.auditor.counts
    events = 0.0 if counts is None else float(counts.events)
    rejected = 0.0 if counts is None else float(counts.rejected)
    text = "Number of audit events sent to the audit backend."
    yield _counter("apiserver_audit_event_total", text, (), [((), events)])
    text = "Number of requests rejected because their audit event could not be logged."
    yield _counter("apiserver_audit_requests_rejected_total", text, (), [((), rejected)])
    if counts is None:
        return
    # Imported late: a server without audit does not need this module.
    from ..audit.policy import LEVELS

    levels = [((level,), float(count)) for level, count in zip(LEVELS, counts.levels, strict=True) if count]
    yield _counter("apiserver_audit_level_total", "Number of requests, by audit policy level.", ("level",), levels)
    errors = [((plugin,), float(number)) for plugin, number in counts.errors.items()]
    yield _counter(
        "apiserver_audit_error_total", "Number of audit events that were lost, by audit plugin.", ("plugin",), errors
    )
