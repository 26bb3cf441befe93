"""The audit context of a request: collects its facts and emits an event at each stage."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ..api.go.durations import format_duration
from ..api.latency import ADMISSION
from .event import Event, Payload, RequestMetadata
from .policy import (
    LEVELS,
    PANIC,
    REQUEST,
    REQUEST_RECEIVED,
    REQUEST_RESPONSE,
    RESPONSE_COMPLETE,
    RESPONSE_STARTED,
    RequestAuditConfig,
)

if TYPE_CHECKING:
    from ..api.authorization import Verdict
    from ..api.resource import JSONObject, UserInfo
    from ..http.requestinfo import RequestInfo

#: Requests that take longer, in seconds, have latency annotations.
LATENCY_ANNOTATION_THRESHOLD: Final = 0.5

_DECISION: Final = "authorization.k8s.io/decision"
_REASON: Final = "authorization.k8s.io/reason"
_LATENCY: Final = "apiserver.latency.k8s.io/"
#: The fields of a Status that events contain.
_STATUS_FIELDS: Final = ("status", "message", "reason", "details", "code")

#: Passes an event to the backends; returns a Deferred of whether it was written, or L{None} if requests do not wait.
Emit = Callable[[Event], "Deferred[bool] | None"]


class AuditContext:
    """
    The audit state of one request (C{audit.AuditContext}).

    @ivar level: The audit level, an index of L{LEVELS}.
    @ivar started: Whether the response has begun.
    @ivar times: Durations by component in seconds, see L{kubetwist.api.latency.latencies}.
    @ivar completed: Whether the last event was emitted.
    """

    __slots__ = (
        "_annotations",
        "_config",
        "_emit",
        "_reference",
        "_request",
        "_response",
        "_status",
        "_timed",
        "_unwritten",
        "authenticated",
        "completed",
        "constraint",
        "impersonated",
        "level",
        "long_running",
        "metadata",
        "started",
        "times",
    )
    _log = Logger()

    def __init__(self, metadata: RequestMetadata, info: RequestInfo, config: RequestAuditConfig, emit: Emit) -> None:
        """
        @param metadata: The facts that are the same in all events of the request.
        @param info: L{kubetwist.http.requestinfo.RequestInfo}.
        @param config: The audit settings of the request.
        @param emit: Passes events to the backends.
        """
        self.metadata = metadata
        self.level = config.level
        self.long_running = info.long_running
        self.authenticated = time()
        self.started = self.completed = False
        self.impersonated: UserInfo | None = None
        self.constraint = ""
        self.times: dict[str, float] = {}
        # The duration of a watch is not a latency.
        self._timed = info.verb not in ("watch", "watchlist")
        self._config = config
        self._emit = emit
        self._reference: JSONObject | None = None
        if info.is_resource_request:
            self._reference = {
                "resource": info.resource,
                "namespace": info.namespace,
                "name": info.name,
                "uid": "",
                "apiGroup": info.group,
                "apiVersion": info.version,
                "resourceVersion": "",
                "subresource": info.subresource,
            }
        self._status: JSONObject | None = None
        self._request: Payload | None = None
        self._response: Payload | None = None
        self._annotations: dict[str, str] = {}
        self._unwritten: Deferred[bool] | None = None

    # Facts.

    @property
    def wants_request_object(self) -> bool:
        """Return whether events contain the object of the request."""
        return self.level >= REQUEST

    @property
    def wants_response_object(self) -> bool:
        """Return whether events contain the object of the response."""
        return self.level >= REQUEST_RESPONSE

    def annotate(self, key: str, value: str, level: str = LEVELS[1]) -> None:
        """
        Add an annotation; the first value of a key is kept.

        @param level: The lowest audit level of events with the annotation.
        """
        if self.level < LEVELS.index(level):
            return
        existing = self._annotations.setdefault(key, value)
        if existing != value:
            self._log.warn(
                "Failed to set annotations[{key!r}] to {value!r} for audit:{audit_id!r}, it has already been set to"
                " {existing!r}",
                key=key,
                value=value,
                audit_id=self.metadata.audit_id,
                existing=existing,
            )

    def allowed_by(self, verdict: Verdict) -> None:
        """Record that authorization allows the request."""
        self._decided("allow", verdict.reason)

    def refused_by(self, verdict: Verdict) -> None:
        """Record that authorization forbids the request, or that it failed, which is not a decision."""
        if verdict.error:
            self._decided("", "internal error")
        else:
            self._decided("forbid", verdict.reason)

    def _decided(self, decision: str, reason: str) -> None:
        if decision:
            self._annotations.setdefault(_DECISION, decision)
        self._annotations.setdefault(_REASON, reason)
        if self._timed and time() - self.metadata.received > LATENCY_ANNOTATION_THRESHOLD:
            self.annotate_latency("authorization", time() - self.authenticated)

    def annotate_latency(self, component: str, seconds: float) -> None:
        """Add a latency annotation: the duration of a component in seconds."""
        self._annotations.setdefault(f"{_LATENCY}{component}", _duration(seconds))

    def log_request_object(self, meta: JSONObject, encode: Callable[[], bytes]) -> None:
        """
        Record the object of the request (C{audit.LogRequestObject}).

        @param meta: The metadata of the object.
        @param encode: Returns the object as JSON; called immediately if events contain it.
        """
        reference = self._reference
        if reference is not None:
            for name in ("namespace", "name", "uid", "resourceVersion"):
                if not reference[name] and isinstance(meta.get(name), str):
                    reference = {**reference, name: meta[name]}
            self._reference = reference
        if self.level >= REQUEST:
            self._request = Payload(encode(), self._config.omit_managed_fields)

    def log_request_patch(self, data: bytes, *, yaml: bool = False) -> None:
        """Record a request body that is not an object, such as a patch (C{audit.LogRequestPatch})."""
        if self.level >= REQUEST:
            self._request = Payload(data, yaml=yaml)

    def set_response_status(self, status: JSONObject) -> None:
        """Record the Status of the response."""
        # Empty details are kept, as in the reference.
        self._status = {name: status[name] for name in _STATUS_FIELDS if status.get(name) or status.get(name) == {}}

    def log_response_object(self, data: bytes, *, yaml: bool = False) -> None:
        """Record the object of the response (C{audit.LogResponseObject}): an object, a list or a Status."""
        if self.level >= REQUEST_RESPONSE:
            self._response = Payload(data, self._config.omit_managed_fields, yaml)

    # Stages.

    def request_received(self) -> Deferred[bool] | None:
        """Emit the event of the stage C{RequestReceived}."""
        waiting = self._unwritten = self._emit_stage(REQUEST_RECEIVED, self.metadata.received)
        return waiting

    def response_started(self, code: int) -> None:
        """Record the status code, and emit the event of the stage C{ResponseStarted} for long-running requests."""
        if self.started:
            return
        self.started = True
        self._status = {**(self._status or {}), "code": code}
        if self.long_running:
            self._emit_stage(RESPONSE_STARTED, time())

    def response_complete(self) -> Deferred[bool] | None:
        """Emit the event of the stage C{ResponseComplete}; also called when the client has disconnected."""
        if self.completed:
            return None
        self.completed = True
        now = time()
        if not self.started:
            self._status = {"status": "Success", "message": "Connection closed early", "code": 200}
            if self.long_running:
                self._emit_stage(RESPONSE_STARTED, now)
        total = now - self.metadata.received
        if self._timed and total > LATENCY_ANNOTATION_THRESHOLD:
            self.annotate_latency("authentication", self.authenticated - self.metadata.received)
            for component, seconds in self.times.items():
                if component != ADMISSION:
                    self.annotate_latency(component, seconds)
            self.annotate_latency("total", total)
        if RESPONSE_COMPLETE in self._config.omit_stages:
            return self._unwritten
        return self._emit_stage(RESPONSE_COMPLETE, now)

    def authentication_failed(self, code: int) -> None:
        """Emit the only event of an unauthenticated request (C{WithFailedAuthenticationAudit})."""
        self.completed = True
        self._status = {**(self._status or {}), "code": code}
        self._emit_stage(RESPONSE_STARTED, time())

    def panic(self, reason: str) -> None:
        """Emit the event of the stage C{Panic}: an unexpected exception ended the request."""
        if self.completed:
            return
        self.completed = True
        self._status = {
            "status": "Failure",
            "message": f"APIServer panic'd: {reason}",
            "reason": "InternalError",
            "code": 500,
        }
        self._emit_stage(PANIC, time())

    def _emit_stage(self, stage: str, staged: float) -> Deferred[bool] | None:
        if stage in self._config.omit_stages:
            return None
        return self._emit(
            Event(
                self.metadata,
                stage,
                staged,
                self.impersonated,
                self.constraint,
                self._reference,
                self._status,
                self._request,
                self._response,
                self._annotations.copy(),
            )
        )


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * 1_000_000) * 1000)
