"""
What is counted of requests: once for each, when it is over.

Labels come from what is served, never from what a client sends: requests for anything else are not counted by resource.

@see: kubernetes/apiserver, C{pkg/endpoints/metrics/metrics.go}, C{pkg/endpoints/filters/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any, Final

from .registry import Distribution, Number, Reading, Registry, Watermark, exponential, linear

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
#: What the sizes of bodies are told by.
_WRITTEN: Final = {
    "create": "create",
    "update": "update",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete_collection",
}
_READING: Final = frozenset(("get", "list", "watch"))
#: The clients of a cluster of its own, as the reference tells them apart by how their user agents begin.
_CLIENTS: Final = {
    name.encode(): name
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "cluster-policy-controller")
}
_VALIDATIONS: Final = frozenset(("", "Ignore", "Warn", "Strict"))
_CONNECTED: Final = frozenset(("log", "exec", "portforward", "attach", "proxy"))
#: Paths of no resource that are counted one by one.
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_APPLY: Final = b"application/apply-patch"
_NAMES: Final = frozenset(("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"))
_LABELS: Final = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_COMPONENT: Final = "apiserver"

#: Says whether a resource, or subresource, is deprecated in a group and version.
Deprecated = Callable[[tuple[str, str, str]], bool]
#: Says whether there is such a resource, or subresource (C{"pods"}, C{"pods/status"}), in a group and version.
Known = Callable[[tuple[str, str, str]], bool]


class _Series:
    """What is counted of requests with the same labels."""

    __slots__ = ("bodies", "codes", "durations", "own", "sizes", "validated")

    def __init__(
        self,
        durations: Distribution,
        own: Distribution | None,
        sizes: Distribution | None,
        bodies: Distribution | None,
        validated: bool,
    ) -> None:
        self.durations = durations
        self.own = own
        self.sizes = sizes
        self.bodies = bodies
        self.validated = validated
        self.codes: dict[tuple[int, str], Number] = {}


class RequestMetrics:
    """Counts the requests of one server."""

    def __init__(
        self,
        registry: Registry,
        known: Known,
        requests: Callable[[], Iterable[Any]],
        deprecated: Deprecated = lambda resource: False,
    ) -> None:
        """
        @param requests: Those that are open: L{kubetwist.server.site.KubeRequest}s.
        """
        self._known = known
        self._deprecated = deprecated
        self._requests = requests
        self._series: dict[tuple[Any, ...], _Series] = {}
        self._total = registry.counter(
            "apiserver_request_total",
            "Requests, by what they were about and the code of their answer.",
            (*_LABELS, "system_client", "dry_run", "code"),
        )
        self._durations = registry.histogram(
            "apiserver_request_duration_seconds",
            "How long requests took, to the last byte of their answer.",
            _DURATIONS,
            (*_LABELS, "dry_run"),
        )
        self._own = registry.histogram(
            "apiserver_request_sli_duration_seconds",
            "How long requests took, without the time that webhooks took and that they waited for their turn.",
            _DURATIONS[2:],
            _LABELS,
        )
        self._sizes = registry.histogram(
            "apiserver_response_sizes", "Bytes of the answers of GET and LIST.", _SIZES, _LABELS
        )
        aborted = registry.counter(
            "apiserver_request_aborts_total",
            "Requests whose clients had gone before they were answered.",
            _LABELS[:-1],
        )
        self._aborted = aborted
        self._users = registry.counter(
            "authenticated_user_requests", "Requests of known users, by what kind of name they have.", ("username",)
        )
        attempts = registry.counter("authentication_attempts", "Requests, by whether it was found whose.", ("result",))
        took = registry.histogram(
            "authentication_duration_seconds", "How long it took to find out whose.", _SHORT, ("result",)
        )
        self._known_user, self._known_took = attempts.of("success"), took.of("success")
        self._unknown_user, self._unknown_took = attempts.of("failure"), took.of("failure")
        allowed = registry.counter(
            "authorization_attempts_total", "Requests, by whether they were allowed.", ("result",)
        )
        took = registry.histogram("authorization_duration_seconds", "How long it took to decide.", _SHORT, ("result",))
        self._allowed, self._allowed_took = allowed.of("allowed"), took.of("allowed")
        self._denied, self._denied_took = allowed.of("no-opinion"), took.of("no-opinion")
        self._undecided, self._undecided_took = allowed.of("error"), took.of("error")
        self._names: dict[str, Number] = {}
        self._bodies = registry.histogram(
            "apiserver_request_body_size_bytes",
            "Bytes of the bodies of writes.",
            _BODIES,
            ("group", "resource", "verb"),
        )
        self._terminated = registry.counter(
            "apiserver_request_terminations_total",
            "Requests that the server put an end to, as they took too long or there were too many.",
            (*_LABELS, "code"),
        )
        self._late = registry.counter(
            "apiserver_request_post_timeout_total",
            "Answers that were there after their request had been put an end to.",
            ("source", "status"),
        )
        validated = registry.histogram(
            "field_validation_request_duration_seconds",
            "How long writes took, by what they wanted done about unknown fields.",
            _DURATIONS[2:],
            ("field_validation",),
        )
        self._validated = {name: validated.of(name) for name in (*sorted(_VALIDATIONS), "invalid")}
        self._requested_deprecated = registry.gauge(
            "apiserver_requested_deprecated_apis",
            "Whether there were requests for what is deprecated: 1.",
            ("group", "version", "resource", "subresource", "removed_release"),
        )
        filters = registry.histogram(
            "apiserver_request_filter_duration_seconds", "How long filters took.", _FILTERS, ("filter",)
        )
        self._authenticating, self._authorizing = filters.of("authentication"), filters.of("authorization")
        self._reading, self._changing = Watermark(perf_counter), Watermark(perf_counter)
        registry.read(self._readings)

    # As a request goes by.

    def after_authentication(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        """Note whose a request is, before C{handler} goes on with it."""
        attempts, took, filtered = self._known_user, self._known_took.observe, self._authenticating.observe

        def authenticated(request: Any) -> None:
            now = request.authenticated_at = perf_counter()
            attempts.value += 1
            lasted = now - request.begun
            took(lasted)
            filtered(lasted)
            self._named(request.user.name).value += 1
            handler(request)

        return authenticated

    def after_authorization(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        """Note that a request is allowed, before C{handler} goes on with it."""
        attempts, took, filtered = self._allowed, self._allowed_took.observe, self._authorizing.observe
        reading, changing = self._reading.up, self._changing.up

        def authorized(request: Any) -> None:
            now = request.authorized_at = perf_counter()
            attempts.value += 1
            lasted = now - request.authenticated_at - request.waited
            took(lasted)
            filtered(lasted)
            info = request.info
            if not info.long_running:
                reading(now) if info.verb in _READING else changing(now)
            handler(request)

        return authorized

    def _named(self, user: str) -> Number:
        kind = user if user in _NAMES else "email_id" if "@" in user else "other"
        child = self._names.get(kind)
        if child is None:
            child = self._names[kind] = self._users.of(kind)
        return child

    def ended(self, request: Any) -> None:
        """A request is answered, or its client has gone."""
        now = perf_counter()
        if not request.authorized_at:
            self._refused(request, now)
        # A path that breaks off is answered before it is known what it is about.
        info = getattr(request, "info", None)
        if info is None:
            return
        if request.authorized_at and not info.long_running:
            (self._reading if info.verb in _READING else self._changing).down(now)
        apply = info.verb == "patch" and _applies(request)
        uri = request.uri
        dry_run = self._dry_run(request) if b"dryRun" in uri else ""
        key: tuple[Any, ...]
        if info.is_resource_request:
            named, spaced = len(info.parts) > 1, bool(info.namespace)
            key = (info.verb, info.group, info.version, info.resource, info.subresource, named, spaced, apply, dry_run)
        else:
            key = (info.path,)
        series = self._series.get(key)
        if series is None:
            series = self._make(key, info, apply, dry_run)
            if series is None:
                return
        code = request.code if request.startedWriting else 0
        agent = request.fields.get(b"user-agent")
        client = _CLIENTS.get(agent[0].partition(b"/")[0], "") if agent is not None else ""
        number = series.codes.get((code, client))
        if number is None:
            number = self._number(series, info, apply, dry_run, code, client)
        number.value += 1
        if not code:
            self._aborted.of(*self._labels(info, apply)[:-1]).value += 1
        if request.terminated:
            self._terminated.of(*self._labels(info, apply), str(request.terminated)).value += 1
        took = now - request.begun
        series.durations.observe(took)
        if series.own is not None:
            series.own.observe(took - request.waited)
        if series.sizes is not None:
            series.sizes.observe(request.sentLength)
        if series.bodies is not None:
            length = request.body_length
            if length:
                series.bodies.observe(length)
            if series.validated:
                asked = self._validation(request) if b"fieldValidation=" in uri else ""
                self._validated[asked].observe(took)

    def begin_anew(self) -> None:
        """Look up what is written to when it is written to next: gauges were forgotten."""
        self._series.clear()

    def late(self, code: int) -> None:
        """An answer, with C{code}, is there that nobody waits for: its request was answered as it took too long."""
        self._late.of("timeout-handler", "ok" if code < 500 else "error").value += 1

    def _number(self, series: _Series, info: Any, apply: bool, dry_run: str, code: int, client: str) -> Number:
        labels = self._labels(info, apply)
        number = series.codes[code, client] = self._total.of(*labels, client, dry_run, str(code))
        resource = (info.group, info.version, _resource(info))
        if info.is_resource_request and code not in (401, 403, 429) and self._deprecated(resource):
            # Of what is deprecated by now, nothing is known to be removed in a certain release.
            self._requested_deprecated.of(*labels[1:5], "").value = 1.0
        return number

    @staticmethod
    def _validation(request: Any) -> str:
        wanted = (request.query.get("fieldValidation") or ("",))[0]
        return wanted if wanted in _VALIDATIONS else "invalid"

    def _refused(self, request: Any, now: float) -> None:
        if request.user is None:
            if request.code == 401:
                self._unknown_user.value += 1
                self._unknown_took.observe(now - request.begun)
        elif request.code == 403:
            self._denied.value += 1
            self._denied_took.observe(now - request.authenticated_at)
        elif request.code == 500:
            self._undecided.value += 1
            self._undecided_took.observe(now - request.authenticated_at)

    def _make(self, key: tuple[Any, ...], info: Any, apply: bool, dry_run: str) -> _Series | None:
        if info.is_resource_request:
            if info.verb not in _VERBS or not self._known((info.group, info.version, _resource(info))):
                return None
        elif info.path not in _HEALTH:
            return None
        labels = self._labels(info, apply)
        reads = labels[0] in ("GET", "LIST")
        series = self._series[key] = _Series(
            self._durations.of(*labels, dry_run),
            None if dry_run else self._own.of(*labels),
            self._sizes.of(*labels) if reads else None,
            self._bodies.of(info.group, info.resource, _WRITTEN[info.verb]) if info.verb in _WRITTEN else None,
            info.verb in ("create", "update", "patch"),
        )
        return series

    @staticmethod
    def _labels(info: Any, apply: bool) -> tuple[str, ...]:
        if not info.is_resource_request:
            return ("GET", "", "", "", info.path, "", _COMPONENT)
        verb = _verb(info, apply)
        if len(info.parts) > 1 or info.verb == "create":
            scope = "resource"
        else:
            scope = "namespace" if info.namespace else "cluster"
        return (verb, info.group, info.version, info.resource, info.subresource, scope, _COMPONENT)

    @staticmethod
    def _dry_run(request: Any) -> str:
        wanted = request.query.get("dryRun") or ()
        return "" if not wanted else "All" if set(wanted) == {"All"} else "invalid"

    # What is looked at.

    def _readings(self) -> Iterator[Reading]:
        long_running: dict[tuple[str, ...], float] = {}
        for request in self._requests():
            info = getattr(request, "info", None)
            if info is None:
                continue
            if (
                info.long_running
                and info.is_resource_request
                and self._known((info.group, info.version, _resource(info)))
            ):
                labels = self._labels(info, False)
                long_running[labels] = long_running.get(labels, 0.0) + 1
        yield Reading(
            "apiserver_longrunning_requests",
            "gauge",
            "Open requests that last as long as their clients want.",
            _LABELS,
            list(long_running.items()),
        )
        yield Reading(
            "apiserver_current_inflight_requests",
            "gauge",
            "The most that were open at a time within the last second of those that do not, by whether they change"
            " something.",
            ("request_kind",),
            [(("readOnly",), float(self._reading.most())), (("mutating",), float(self._changing.most()))],
        )


def verb_of(request: Any) -> str:
    """What a request does, as metrics name it; the method where it is about no resource."""
    info = getattr(request, "info", None)
    if info is None or not info.is_resource_request:
        method: str = request.method.decode("latin-1")
        return method
    return _verb(info, info.verb == "patch" and _applies(request))


def _verb(info: Any, apply: bool) -> str:
    return "APPLY" if apply else "CONNECT" if info.subresource in _CONNECTED else _VERBS.get(info.verb, "other")


def _applies(request: Any) -> bool:
    kind: bytes | None = request.header(b"content-type")
    return kind is not None and kind.startswith(_APPLY)


def _resource(info: Any) -> str:
    return f"{info.resource}/{info.subresource}" if info.subresource else str(info.resource)
