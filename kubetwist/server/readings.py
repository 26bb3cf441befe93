"""
What C{/metrics} tells of the parts of a server that count for themselves: caches, controllers, audit, other servers.

Nothing here costs anything before somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..metrics.registry import Reading
from .version import git_version, version_document

_RESOURCE = ("group", "resource")


def tell_of(config: Any) -> None:
    """
    Have a server's registry tell of it.

    @param config: L{kubetwist.server.config.ServerConfig}.
    """
    registry = config.metrics
    registry.read(lambda: _caches(config))
    registry.read(lambda: _controllers(config))
    registry.read(lambda: _version(config))
    registry.read(lambda: _others(config))
    registry.read(lambda: _audit(config))


def _gauge(name: str, text: str, labels: Iterable[str], values: Iterable[tuple[tuple[str, ...], float]]) -> Reading:
    return Reading(name, "gauge", text, tuple(labels), list(values))


def _counter(name: str, text: str, labels: Iterable[str], values: Iterable[tuple[tuple[str, ...], float]]) -> Reading:
    return Reading(name, "counter", text, tuple(labels), list(values))


def _caches(config: Any) -> Iterator[Reading]:
    caches = {(one.info.group, one.info.resource): one.cache for one in config.stores}
    custom = getattr(config.apis, "custom", None)
    for served in custom.all_served() if custom is not None else ():
        if served.ready:
            caches[served.definition.group, served.definition.plural] = served.cache
    sizes = {labels: cache.sizes() for labels, cache in caches.items()}
    counts = [(labels, float(count)) for labels, (count, _) in sizes.items()]
    yield _gauge("apiserver_resource_objects", "Objects, by resource.", _RESOURCE, counts)
    plain = [((f"{resource}.{group}" if group else resource,), count) for (group, resource), count in counts]
    yield _gauge("apiserver_storage_objects", "Objects, by resource as errors name it.", ("resource",), plain)
    yield _gauge(
        "apiserver_resource_size_estimate_bytes",
        "About how many bytes they have.",
        _RESOURCE,
        [(labels, float(count * size)) for labels, (count, size) in sizes.items()],
    )
    yield _gauge(
        "apiserver_watch_cache_resource_version",
        "How far caches have come.",
        _RESOURCE,
        [(labels, float(cache.revision)) for labels, cache in caches.items()],
    )
    for name, text, what in (
        ("events_received_total", "Changes that caches were told of.", "received"),
        ("initializations_total", "How often caches were filled.", "fills"),
    ):
        values = [(labels, float(getattr(cache, what))) for labels, cache in caches.items()]
        yield _counter(f"apiserver_watch_cache_{name}", text, _RESOURCE, values)


def _controllers(config: Any) -> Iterator[Reading]:
    running = config.running_controllers
    controllers = getattr(running, "controllers", None) or {}
    queues = {(name,): one.queue for name, one in controllers.items() if getattr(one, "queue", None) is not None}
    yield _gauge(
        "workqueue_depth", "Keys that wait.", ("name",), [(name, float(len(queue))) for name, queue in queues.items()]
    )
    for name, text, what in (
        ("adds_total", "Keys that were added.", "adds"),
        ("retries_total", "Keys that are tried again after a failure.", "retries"),
    ):
        values = [(labels, float(getattr(queue.metrics, what))) for labels, queue in queues.items()]
        yield _counter(f"workqueue_{name}", text, ("name",), values)
    for name, text, what in (
        ("queue_duration_seconds", "How long keys waited.", "waited"),
        ("work_duration_seconds", "How long they were worked on.", "worked"),
    ):
        found = [(labels, getattr(queue.metrics, what)) for labels, queue in queues.items()]
        yield Reading(f"workqueue_{name}", "histogram", text, ("name",), found)


def _version(config: Any) -> Iterator[Reading]:
    document = version_document(config.kubernetes_version)
    labels = {
        "build_date": document["buildDate"],
        "compiler": document["compiler"],
        "git_commit": document["gitCommit"],
        "git_tree_state": document["gitTreeState"],
        "git_version": git_version(config.kubernetes_version),
        "go_version": document["goVersion"],
        "major": document["major"],
        "minor": document["minor"],
        "platform": document["platform"],
    }
    yield _gauge("kubernetes_build_info", "What this is.", labels, [(tuple(labels.values()), 1.0)])


def _others(config: Any) -> Iterator[Reading]:
    aggregation = config.aggregation
    if aggregation is not None:
        values = [((one.name,), 0.0 if one.available else 1.0) for one in aggregation.remotes.values()]
        yield _gauge(
            "aggregator_unavailable_apiservice",
            "Whether another server can not be reached: 1, or 0.",
            ("name",),
            values,
        )


def _audit(config: Any) -> Iterator[Reading]:
    counts = config.audit_counts
    if counts is None:
        return
    yield _counter("apiserver_audit_event_total", "Audit events.", (), [((), float(counts.events))])
    text = "Requests that failed because their audit event could not be written."
    yield _counter("apiserver_audit_requests_rejected_total", text, (), [((), float(counts.rejected))])
    lost = [((plugin,), float(number)) for plugin, number in counts.errors.items()]
    yield _counter("apiserver_audit_error_total", "Audit events that were lost.", ("plugin",), lost)
