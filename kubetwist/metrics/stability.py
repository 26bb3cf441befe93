"""
Stability levels and deprecation of metrics, as in kube-apiserver.

A deprecated metric is exposed for a number of releases that depends on its stability level. Then it is hidden, and
later removed.

@see: kubernetes/component-base, C{metrics/registry.go}.
"""

from __future__ import annotations

from typing import Final

STABLE: Final = "STABLE"
BETA: Final = "BETA"
ALPHA: Final = "ALPHA"

_STABLE: Final = frozenset(
    (
        "apiserver_admission_controller_admission_duration_seconds",
        "apiserver_admission_step_admission_duration_seconds",
        "apiserver_admission_webhook_admission_duration_seconds",
        "apiserver_current_inflight_requests",
        "apiserver_longrunning_requests",
        "apiserver_request_duration_seconds",
        "apiserver_request_total",
        "apiserver_requested_deprecated_apis",
        "apiserver_response_sizes",
        "apiserver_storage_objects",
        "apiserver_storage_size_bytes",
        "kubernetes_healthcheck",
        "kubernetes_healthchecks_total",
    )
)
_BETA: Final = frozenset(
    (
        "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
        "apiserver_authentication_config_controller_automatic_reloads_total",
        "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
        "apiserver_authorization_config_controller_automatic_reloads_total",
        "apiserver_cel_compilation_duration_seconds",
        "apiserver_cel_evaluation_duration_seconds",
        "apiserver_flowcontrol_current_executing_requests",
        "apiserver_flowcontrol_current_executing_seats",
        "apiserver_flowcontrol_current_inqueue_requests",
        "apiserver_flowcontrol_dispatched_requests_total",
        "apiserver_flowcontrol_nominal_limit_seats",
        "apiserver_flowcontrol_rejected_requests_total",
        "apiserver_flowcontrol_request_wait_duration_seconds",
        "apiserver_storage_events_received_total",
        "apiserver_validating_admission_policy_check_duration_seconds",
        "apiserver_validating_admission_policy_check_total",
        "apiserver_watch_list_duration_seconds",
        "disabled_metrics_total",
        "hidden_metrics_total",
        "kubernetes_build_info",
        "kubernetes_feature_enabled",
        "registered_metrics_total",
        "workqueue_adds_total",
        "workqueue_depth",
        "workqueue_longest_running_processor_seconds",
        "workqueue_queue_duration_seconds",
        "workqueue_retries_total",
        "workqueue_unfinished_work_seconds",
        "workqueue_work_duration_seconds",
    )
)
#: Release of the deprecation, by name of the metric.
_DEPRECATED: Final = {
    "apiserver_storage_db_total_size_in_bytes": (1, 28),
    "apiserver_storage_objects": (1, 34),
    "etcd_bookmark_counts": (1, 36),
}
#: Number of releases for which a deprecated metric is exposed, by stability level.
_RELEASES_EXPOSED: Final = {STABLE: 3, BETA: 1, ALPHA: 0}
#: Prefixes of metrics of libraries, which have no stability level.
_LIBRARY_PREFIXES: Final = ("process_", "python_", "go_", "grpc_client_")


def level_of(name: str) -> str:
    """Return the stability level of a metric; C{""} if it has none."""
    if name in _STABLE:
        return STABLE
    if name in _BETA:
        return BETA
    return "" if name.startswith(_LIBRARY_PREFIXES) else ALPHA


def deprecated_in(name: str) -> str:
    """Return the release of the deprecation, C{"1.34.0"}; C{""} if the metric is not deprecated."""
    release = _DEPRECATED.get(name)
    return f"{release[0]}.{release[1]}.0" if release else ""


def is_deprecated(name: str, release: tuple[int, int]) -> bool:
    """Return whether a metric is deprecated in a release."""
    since = _DEPRECATED.get(name)
    return since is not None and since <= release


def is_hidden(name: str, release: tuple[int, int]) -> bool:
    """Return whether a release hides a metric."""
    since = _DEPRECATED.get(name)
    if since is None:
        return False
    major, minor = since
    return (major, minor + _RELEASES_EXPOSED[level_of(name)]) <= release


def described(name: str, text: str, release: tuple[int, int]) -> str:
    """Return the help text with stability level and deprecation."""
    level = level_of(name)
    if not level:
        return text
    if is_deprecated(name, release):
        text = f"(Deprecated since {deprecated_in(name)}) {text}"
    return f"[{level}] {text}"
