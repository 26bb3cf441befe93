"""
Metrics of requests, written once per request at its end.

Observations of most requests are buffered, and added to the histograms in batches, or before a scrape. Labels contain
served resources only, no arbitrary values of clients.

@see: kubernetes/apiserver, C{pkg/endpoints/metrics/metrics.go}, C{pkg/endpoints/filters/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from .impersonation import ImpersonationMetrics
from .registry import Counter, HighWatermark, Histogram, MetricSnapshot, Registry, exponential, linear

if TYPE_CHECKING:
    from .requesttypes import MeasuredInfo, MeasuredRequest

_DURATIONS: Final = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0),
    *(4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
_SIZES: Final = exponential(1000.0, 10.0, 7)
_BODIES: Final = linear(50000.0, 100000.0, 31)
_FILTERS: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0)
_SHORT: Final = exponential(0.001, 2.0, 15)
_VERBS: Final = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
#: Values of the label verb of body sizes.
_WRITTEN: Final = {
    "create": "create",
    "update": "update",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete_collection",
}
_READ_ONLY_VERBS: Final = frozenset(("get", "list", "watch"))
#: System components, by the first part of their user agent (Go: cleanUserAgent).
_CLIENTS: Final = {
    name.encode(): name
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "cluster-policy-controller")
}
_VALIDATIONS: Final = frozenset(("", "Ignore", "Warn", "Strict"))
_CONNECTED: Final = frozenset(("log", "exec", "portforward", "attach", "proxy"))
#: Non-resource paths that are label values.
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_APPLY: Final = b"application/apply-patch"
_NAMES: Final = frozenset(("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"))
_LABELS: Final = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_COMPONENT: Final = "apiserver"

#: Prefixes of the user agents of system components.
_SYSTEM: Final = tuple(_CLIENTS)
#: Maximum number of buffered observations per series.
_MAX_PENDING: Final = 64
#: Maximum number of cached user names.
_MAX_CACHED_NAMES: Final = 1024

#: Returns whether a resource or subresource is deprecated in a group and version.
Deprecated = Callable[[tuple[str, str, str]], bool]
#: Returns whether a resource or subresource (C{"pods"}, C{"pods/status"}) is served in a group and version.
Known = Callable[[tuple[str, str, str]], bool]


#: Buffered observation: total seconds, seconds outside the SLI, response bytes, seconds of authentication and of
#: authorization.
_Observation = tuple[float, float, float, float, float]


class _Series:
    """
    Counters, histograms and buffered observations of requests with the same labels.

    @ivar codes: Counters by status code, or by status code and system component.
    """

    __slots__ = ("bodies", "codes", "durations", "pending", "sizes", "sli_durations", "validated")

    def __init__(
        self,
        durations: Histogram,
        sli_durations: Histogram | None,
        sizes: Histogram | None,
        bodies: Histogram | None,
        validated: bool,
    ) -> None:
        self.durations = durations
        self.sli_durations = sli_durations
        self.sizes = sizes
        self.bodies = bodies
        self.validated = validated
        self.codes: dict[int | tuple[int, str], Counter] = {}
        self.pending: list[_Observation] = []


class RequestMetrics:
    """
    Counts the requests of one server.

    @ivar impersonations: Counts impersonations.
    """

    def __init__(
        self,
        registry: Registry,
        known: Known,
        requests: Callable[[], Iterable[MeasuredRequest]],
        deprecated: Deprecated = lambda resource: False,
    ) -> None:
        """
        @param registry: The registry of the metrics.
        @param known: Returns whether a resource is served.
        @param requests: Returns the open requests, L{kubetwist.http.request.KubeRequest}s.
        @param deprecated: Returns whether a resource is deprecated.
        """
        self._is_served = known
        self._deprecated = deprecated
        self._requests = requests
        self._series: dict[tuple[object, ...], _Series] = {}
        self._long_running: dict[tuple[str, ...], float] = {}
        self._total = registry.counter(
            "apiserver_request_total",
            "Number of requests by verb, dry run, group, version, resource, scope and status code.",
            (*_LABELS, "system_client", "dry_run", "code"),
        )
        self._durations = registry.histogram(
            "apiserver_request_duration_seconds",
            "Response latency distribution in seconds.",
            _DURATIONS,
            (*_LABELS, "dry_run"),
        )
        self._sli_durations = registry.histogram(
            "apiserver_request_sli_duration_seconds",
            "Response latency in seconds, without webhook duration and queue wait times.",
            _DURATIONS[2:],
            _LABELS,
        )
        self._sizes = registry.histogram(
            "apiserver_response_sizes", "Response size distribution in bytes.", _SIZES, _LABELS
        )
        aborted = registry.counter(
            "apiserver_request_aborts_total",
            "Number of requests that were aborted, possibly due to a timeout.",
            _LABELS[:-1],
        )
        self._aborted = aborted
        self._users = registry.counter(
            "authenticated_user_requests", "Number of authenticated requests by username.", ("username",)
        )
        attempts = registry.counter("authentication_attempts", "Number of authentication attempts.", ("result",))
        took = registry.histogram(
            "authentication_duration_seconds", "Authentication duration in seconds by result.", _SHORT, ("result",)
        )
        self._authenticated, self._authenticated_duration = (
            attempts.with_label_values("success"),
            took.with_label_values("success"),
        )
        self._unauthenticated, self._unauthenticated_duration = (
            attempts.with_label_values("failure"),
            took.with_label_values("failure"),
        )
        allowed = registry.counter(
            "authorization_attempts_total", "Number of authorization attempts by result.", ("result",)
        )
        took = registry.histogram(
            "authorization_duration_seconds", "Authorization duration in seconds by result.", _SHORT, ("result",)
        )
        self._allowed, self._allowed_duration = allowed.with_label_values("allowed"), took.with_label_values("allowed")
        self._denied, self._denied_duration = (
            allowed.with_label_values("no-opinion"),
            took.with_label_values("no-opinion"),
        )
        self._authorization_errors, self._authorization_error_duration = (
            allowed.with_label_values("error"),
            took.with_label_values("error"),
        )
        self._names: dict[str, Counter] = {}
        self._user_names: dict[str, Counter] = {}
        self._bodies = registry.histogram(
            "apiserver_request_body_size_bytes",
            "Request body size in bytes by resource and verb.",
            _BODIES,
            ("group", "resource", "verb"),
        )
        self._terminated = registry.counter(
            "apiserver_request_terminations_total",
            "Number of requests which apiserver terminated in self-defense.",
            (*_LABELS, "code"),
        )
        self._post_timeout = registry.counter(
            "apiserver_request_post_timeout_total",
            "Number of requests whose handler finished after the request had timed out.",
            ("source", "status"),
        )
        validated = registry.histogram(
            "field_validation_request_duration_seconds",
            "Response latency distribution in seconds for each field validation value.",
            _DURATIONS[2:],
            ("field_validation",),
        )
        self._validated = {name: validated.with_label_values(name) for name in (*sorted(_VALIDATIONS), "invalid")}
        self._requested_deprecated = registry.gauge(
            "apiserver_requested_deprecated_apis",
            "Gauge of deprecated APIs that have been requested.",
            ("group", "version", "resource", "subresource", "removed_release"),
        )
        filters = registry.histogram(
            "apiserver_request_filter_duration_seconds",
            "Request filter latency distribution in seconds, for each filter type.",
            _FILTERS,
            ("filter",),
        )
        self._authentication_filter, self._authorization_filter = (
            filters.with_label_values("authentication"),
            filters.with_label_values("authorization"),
        )
        self.impersonations = ImpersonationMetrics(registry)
        self._read_only, self._mutating = HighWatermark(perf_counter), HighWatermark(perf_counter)
        registry.register_collector(self._collect)
        registry.add_flush_hook(self._flush_pending)

    # --- during a request

    def after_authorization(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a handler that records the authorization of a request and calls C{handler}."""
        increment_read_only, increment_mutating = self._read_only.up, self._mutating.up

        def authorized(request: MeasuredRequest) -> None:
            now = request.authorized_at = perf_counter()
            info = request.info
            if info.long_running:
                self._record_admitted(request)
            elif info.verb in _READ_ONLY_VERBS:
                increment_read_only(now)
            else:
                increment_mutating(now)
            handler(request)

        return authorized

    def ended(self, request: MeasuredRequest, now: float) -> None:
        """
        Record a request that was answered or whose client has disconnected.

        @param request: The request.
        @param now: Seconds of L{perf_counter}.
        """
        info = getattr(request, "info", None)
        # Requests with incomplete paths have no request info.
        if info is None:
            return
        authorized = request.authorized_at
        if not authorized:
            self._record_rejected(request, now)
        elif not info.long_running:
            (self._read_only if info.verb in _READ_ONLY_VERBS else self._mutating).down(now)
        series = info.counted
        if series is None:
            series = self._series_of(request, info)
            if series is None:
                if authorized and not info.long_running:
                    self._record_admitted(request)
                return
        code = request.code if request.startedWriting else 0
        agent = request.fields.get(b"user-agent")
        key: int | tuple[int, str] = code
        if agent is not None and agent[0].startswith(_SYSTEM):
            client = _CLIENTS.get(agent[0].partition(b"/")[0], "")
            if client:
                key = code, client
        counter = series.codes.get(key)
        if counter is None:
            counter = self._code_counter(series, request, key)
        counter.value += 1
        if not code or request.termination_code:
            self._count_broken(request, info, code)
        took = now - request.started_at
        if not authorized or info.long_running:
            self._observe(series, request, took)
            return
        excluded = request.non_sli_seconds
        authenticated = request.authenticated_at
        pending = series.pending
        pending.append(
            (
                took,
                excluded,
                request.sentLength,
                authenticated - request.started_at,
                authorized - authenticated - request.apf_queue_seconds,
            )
        )
        if len(pending) >= _MAX_PENDING:
            self._flush_series(series)
        user = request.impersonator or request.user
        assert user is not None, "it is authorized"
        user_counter = self._user_names.get(user.name)
        if user_counter is None:
            user_counter = self._user_counter(user.name)
        user_counter.value += 1
        if series.bodies is not None:
            self._observe_body(series, request, took)

    def _record_admitted(self, request: MeasuredRequest) -> None:
        """Record authentication and authorization of a request whose end is not buffered."""
        self._record_authenticated(request)
        self._allowed.value += 1
        took = request.authorized_at - request.authenticated_at - request.apf_queue_seconds
        self._allowed_duration.observe(took)
        self._authorization_filter.observe(took)

    def _record_authenticated(self, request: MeasuredRequest) -> None:
        self._authenticated.value += 1
        took = request.authenticated_at - request.started_at
        self._authenticated_duration.observe(took)
        self._authentication_filter.observe(took)
        user = request.impersonator or request.user
        assert user is not None, "it is authenticated"
        self._user_counter(user.name).value += 1

    def _observe(self, series: _Series, request: MeasuredRequest, took: float) -> None:
        series.durations.observe(took)
        if series.sli_durations is not None:
            series.sli_durations.observe(took - request.non_sli_seconds)
        if series.sizes is not None:
            series.sizes.observe(request.sentLength)
        if series.bodies is not None:
            self._observe_body(series, request, took)

    def _observe_body(self, series: _Series, request: MeasuredRequest, took: float) -> None:
        assert series.bodies is not None, "it is about a write"
        length = request.body_length
        if length:
            series.bodies.observe(length)
        if series.validated:
            validation = self._validation(request) if b"fieldValidation=" in request.uri else ""
            self._validated[validation].observe(took)

    def _count_broken(self, request: MeasuredRequest, info: MeasuredInfo, code: int) -> None:
        """Count a request that was aborted by its client or terminated by the server."""
        labels = self._labels(info, info.verb == "patch" and _applies(request))
        if not code:
            self._aborted.with_label_values(*labels[:-1]).value += 1
        if request.termination_code:
            self._terminated.with_label_values(*labels, str(request.termination_code)).value += 1

    def _flush_pending(self) -> Iterator[None]:
        """Add the buffered observations of one series at each step."""
        for series in list(self._series.values()):
            if series.pending:
                self._flush_series(series)
                yield

    def _flush_series(self, series: _Series) -> None:
        """Add buffered observations to the histograms."""
        took, excluded, sizes, authenticated, allowed = zip(*series.pending, strict=True)
        series.pending.clear()
        ordered, total = sorted(took), sum(took)
        series.durations.observe_all(ordered, total)
        if series.sli_durations is not None:
            total_excluded = sum(excluded)
            if total_excluded:
                ordered = sorted(
                    duration - excluded_part for duration, excluded_part in zip(took, excluded, strict=True)
                )
            series.sli_durations.observe_all(ordered, total - total_excluded)
        if series.sizes is not None:
            series.sizes.observe_all(sorted(sizes), sum(sizes))
        self._authenticated.value += len(took)
        ordered, total = sorted(authenticated), sum(authenticated)
        self._authenticated_duration.observe_all(ordered, total)
        self._authentication_filter.observe_all(ordered, total)
        self._allowed.value += len(took)
        ordered, total = sorted(allowed), sum(allowed)
        self._allowed_duration.observe_all(ordered, total)
        self._authorization_filter.observe_all(ordered, total)

    def _user_counter(self, user: str) -> Counter:
        label = user if user in _NAMES else "email_id" if "@" in user else "other"
        child = self._names.get(label)
        if child is None:
            child = self._names[label] = self._users.with_label_values(label)
        if len(self._user_names) >= _MAX_CACHED_NAMES:
            self._user_names.clear()
        self._user_names[user] = child
        return child

    def in_flight(self) -> tuple[int, int]:
        """Return the numbers of open read-only and mutating requests, without long-running ones."""
        return self._read_only.count, self._mutating.count

    def clear_cached_children(self) -> None:
        """Drop cached children after a reset of the metrics."""
        for series in self._series.values():
            series.codes.clear()

    def post_timeout(self, code: int) -> None:
        """
        Count a response that was completed after the timeout response.

        @param code: The status code of the late response.
        """
        self._post_timeout.with_label_values("timeout-handler", "ok" if code < 500 else "error").value += 1

    def _series_of(self, request: MeasuredRequest, info: MeasuredInfo) -> _Series | None:
        """Return the series of a request, or L{None} if its resource is not served."""
        apply, dry_run = self._apply_and_dry_run(request)
        key: tuple[object, ...]
        if info.is_resource_request:
            named, spaced = len(info.parts) > 1, bool(info.namespace)
            key = (info.verb, info.group, info.version, info.resource, info.subresource, named, spaced, apply, dry_run)
        else:
            key = (info.path,)
        series = self._series.get(key) or self._create_series(key, info, apply, dry_run)
        if series is not None and info.verb != "patch":
            # The rest of the key depends on method and URL only, which all requests with this information share.
            info.counted = series
        return series

    def _apply_and_dry_run(self, request: MeasuredRequest) -> tuple[bool, str]:
        """Return whether a request is an apply patch, and its dry-run label."""
        apply = request.info.verb == "patch" and _applies(request)
        return apply, self._dry_run(request) if b"dryRun" in request.uri else ""

    def _code_counter(self, series: _Series, request: MeasuredRequest, key: int | tuple[int, str]) -> Counter:
        info = request.info
        code, client = key if isinstance(key, tuple) else (key, "")
        apply, dry_run = self._apply_and_dry_run(request)
        labels = self._labels(info, apply)
        counter = series.codes[key] = self._total.with_label_values(*labels, client, dry_run, str(code))
        resource = (info.group, info.version, _resource(info))
        if info.is_resource_request and code not in (401, 403, 429) and self._deprecated(resource):
            # No removal release is known for the deprecated resources.
            self._requested_deprecated.with_label_values(*labels[1:5], "").value = 1.0
        return counter

    @staticmethod
    def _validation(request: MeasuredRequest) -> str:
        requested = (request.query.get("fieldValidation") or ("",))[0]
        return requested if requested in _VALIDATIONS else "invalid"

    def _record_rejected(self, request: MeasuredRequest, now: float) -> None:
        if request.user is None:
            if request.code == 401:
                self._unauthenticated.value += 1
                self._unauthenticated_duration.observe(now - request.started_at)
            return
        self._record_authenticated(request)
        if request.code == 403:
            self._denied.value += 1
            self._denied_duration.observe(now - request.authenticated_at)
        elif request.code == 500:
            self._authorization_errors.value += 1
            self._authorization_error_duration.observe(now - request.authenticated_at)

    def _create_series(self, key: tuple[object, ...], info: MeasuredInfo, apply: bool, dry_run: str) -> _Series | None:
        if info.is_resource_request:
            if info.verb not in _VERBS or not self._is_served((info.group, info.version, _resource(info))):
                return None
        elif info.path not in _HEALTH:
            return None
        labels = self._labels(info, apply)
        reads = labels[0] in ("GET", "LIST")
        series = self._series[key] = _Series(
            self._durations.with_label_values(*labels, dry_run),
            None if dry_run else self._sli_durations.with_label_values(*labels),
            self._sizes.with_label_values(*labels) if reads else None,
            self._bodies.with_label_values(info.group, info.resource, _WRITTEN[info.verb])
            if info.verb in _WRITTEN
            else None,
            info.verb in ("create", "update", "patch"),
        )
        return series

    @staticmethod
    def _labels(info: MeasuredInfo, apply: bool) -> tuple[str, ...]:
        if not info.is_resource_request:
            return ("GET", "", "", "", info.path, "", _COMPONENT)
        verb = _verb(info, apply)
        if len(info.parts) > 1 or info.verb == "create":
            scope = "resource"
        else:
            scope = "namespace" if info.namespace else "cluster"
        return (verb, info.group, info.version, info.resource, info.subresource, scope, _COMPONENT)

    @staticmethod
    def _dry_run(request: MeasuredRequest) -> str:
        requested = request.query.get("dryRun") or ()
        return "" if not requested else "All" if set(requested) == {"All"} else "invalid"

    # --- collection

    def _collect(self) -> Iterator[MetricSnapshot]:
        # Series of the past remain, with the value 0.
        long_running = self._long_running
        for labels in long_running:
            long_running[labels] = 0.0
        for request in self._requests():
            info = getattr(request, "info", None)
            if info is None:
                continue
            if (
                info.long_running
                and info.is_resource_request
                and self._is_served((info.group, info.version, _resource(info)))
            ):
                labels = self._labels(info, False)
                long_running[labels] = long_running.get(labels, 0.0) + 1
        yield MetricSnapshot(
            "apiserver_longrunning_requests",
            "gauge",
            "Number of active long-running requests.",
            _LABELS,
            list(long_running.items()),
        )
        yield MetricSnapshot(
            "apiserver_current_inflight_requests",
            "gauge",
            "Maximum number of open requests in the last second, without long-running ones, by request kind.",
            ("request_kind",),
            [(("readOnly",), float(self._read_only.maximum())), (("mutating",), float(self._mutating.maximum()))],
        )


def verb_of(request: MeasuredRequest) -> str:
    """Return the label verb of a request; the HTTP method for non-resource requests."""
    info = getattr(request, "info", None)
    if info is None or not info.is_resource_request:
        method: str = request.method.decode("latin-1")
        return method
    return _verb(info, info.verb == "patch" and _applies(request))


def _verb(info: MeasuredInfo, apply: bool) -> str:
    return "APPLY" if apply else "CONNECT" if info.subresource in _CONNECTED else _VERBS.get(info.verb, "other")


def _applies(request: MeasuredRequest) -> bool:
    kind: bytes | None = request.header(b"content-type")
    return kind is not None and kind.startswith(_APPLY)


def _resource(info: MeasuredInfo) -> str:
    return f"{info.resource}/{info.subresource}" if info.subresource else str(info.resource)
