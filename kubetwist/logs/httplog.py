"""
The access log, and traces of slow requests.

@see: kubernetes/apiserver, C{pkg/server/httplog/httplog.go}; kubernetes/utils, C{trace/trace.go}.
"""

from __future__ import annotations

from random import randrange
from time import time
from typing import TYPE_CHECKING, Any, Final

from twisted.logger import Logger

from ..api.latency import ADMISSION, ETCD, MUTATING_WEBHOOK, QUEUE, SERIALIZATION, VALIDATING_WEBHOOK
from ..metrics.requests import verb_of
from .ratelimit import RateLimiter
from .redaction import MAX_AUDIT_ID_LENGTH, MAX_USER_AGENT_LENGTH, redact_uri, truncate
from .structured import log_structured
from .verbosity import ACCESS, Verbosity

if TYPE_CHECKING:
    from ..metrics.requesttypes import MeasuredInfo, MeasuredRequest

#: Requests that take longer, in seconds, are logged as slow.
SLOW_REQUEST_SECONDS: Final = 0.5

#: Latency trackers, by their names in the log.
_LATENCY_TRACKERS: Final = {
    "queue": QUEUE,
    "admission": ADMISSION,
    "mutating-webhooks": MUTATING_WEBHOOK,
    "validating-webhooks": VALIDATING_WEBHOOK,
    "storage": ETCD,
    "serialization": SERIALIZATION,
}

_log = Logger()


class RequestLog:
    """Logs finished requests."""

    def __init__(self, verbosity: Verbosity) -> None:
        self._verbosity = verbosity
        self._limiter = RateLimiter(self._report)

    def _report(self, count: int) -> None:
        _log.warn("rate limit: {count} slow requests were not logged", count=count)

    def ended(self, request: MeasuredRequest, now: float) -> None:
        """
        Log a request that was answered or whose client has disconnected.

        @param request: The request.
        @param now: Current time, of the clock of L{KubeRequest.started_at<kubetwist.http.request.KubeRequest>}.
        """
        took = now - request.started_at
        if self._verbosity.requests:
            log_structured(_log, ACCESS, "HTTP", access_values(request, took))
        if took > SLOW_REQUEST_SECONDS:
            info = getattr(request, "info", None)
            if info is not None and not info.long_running and self._limiter.allow(now):
                _log.info("{trace}", trace=format_slow_request(request, took))


def access_values(request: MeasuredRequest, took: float) -> dict[str, object]:
    """Return keys and values of the access log line of a request."""
    info = getattr(request, "info", None)
    values: dict[str, object] = {
        "verb": verb_of(request),
        "URI": _uri(request, info),
        "latency": duration(took),
        "userAgent": truncate(request.user_agent, MAX_USER_AGENT_LENGTH),
        "audit-ID": truncate(request.audit_id, MAX_AUDIT_ID_LENGTH),
        "srcIP": _peer(request),
    }
    for name, seconds in latency_breakdown(request):
        values[name] = duration(seconds)
    classification = request.apf_classification
    if classification is not None:
        values["apf_pl"] = classification.level.name
        values["apf_fs"] = classification.schema.name
    if request.switched:
        values["hijacked"] = True
    else:
        values["resp"] = request.code if request.startedWriting else 0
    return values


def latency_breakdown(request: MeasuredRequest) -> list[tuple[str, float]]:
    """Return the known durations of the phases of a request, in seconds."""
    durations = []
    if request.authenticated_at:
        durations.append(("authentication", request.authenticated_at - request.started_at))
    times = request.times or {}
    if request.authorized_at:
        queued = times.get(QUEUE, 0.0)
        durations.append(("authorization", request.authorized_at - request.authenticated_at - queued))
    if times:
        durations += [(name, times[tracker]) for name, tracker in _LATENCY_TRACKERS.items() if tracker in times]
    return durations


def trace_fields(request: MeasuredRequest, client: str) -> dict[str, str]:
    """Return the fields of a slow-request trace, as in kube-apiserver."""
    info = request.info
    return {
        "accept": truncate((request.header(b"accept") or b"").decode("utf-8", "replace"), MAX_USER_AGENT_LENGTH),
        "audit-id": truncate(request.audit_id, MAX_AUDIT_ID_LENGTH),
        "client": client,
        "api-group": info.group,
        "api-version": info.version,
        "name": info.name,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "protocol": request.clientproto.decode("latin-1"),
        "resource": info.resource,
        "url": redact_uri(request.path),
        "user-agent": truncate(request.user_agent, MAX_USER_AGENT_LENGTH),
        "verb": verb_of(request),
    }


def format_slow_request(request: MeasuredRequest, took: float) -> str:
    """
    Return the trace of a slow request, in the format of kube-apiserver.

    @param took: The duration of the request in seconds.
    """
    info = request.info
    number = randrange(2**31)
    trace = trace_fields(request, _peer(request).rpartition(":")[0])
    trace["resp"] = str(request.code if request.startedWriting else 0)
    started = time() - took
    fields = ",".join(f"{key}:{_one_line(value)}" for key, value in trace.items())
    title = _one_line(info.verb.capitalize())
    lines = [f'Trace[{number}]: "{title}" {fields} ({_clock(started, date=True)}) (total time: {_milliseconds(took)}):']
    lines += [f'Trace[{number}]: ---"{name}" {_milliseconds(seconds)}' for name, seconds in latency_breakdown(request)]
    lines.append(f"Trace[{number}]: [{_milliseconds(took)}] [{_milliseconds(took)}] END")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Format a duration as Go does, rounded to microseconds."""
    if seconds < 0.001:
        return f"{max(seconds, 0) * 1e6:.0f}µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3f}".rstrip("0").rstrip(".") + "ms"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms"


def _clock(seconds: float, *, date: bool) -> str:
    from time import gmtime, strftime

    text = strftime("%d-%b-%Y %H:%M:%S" if date else "%H:%M:%S", gmtime(seconds))
    return f"{text}.{int(seconds % 1 * 1000):03d}"


def _one_line(text: str) -> str:
    return text if text.isprintable() else "".join(one if one.isprintable() else "?" for one in text)


def _uri(request: MeasuredRequest, info: MeasuredInfo | None) -> str:
    return redact_uri(request.uri, opaque=info is not None and info.subresource == "proxy")


def peer_address(request: MeasuredRequest) -> tuple[str, int] | None:
    """Return the address and port of the peer, or L{None} for a connection without them."""
    peer: Any = request.client
    host = getattr(peer, "host", None)
    return None if host is None else (host, peer.port)


def _peer(request: MeasuredRequest) -> str:
    peer = peer_address(request)
    if peer is None:
        return ""
    host, port = peer
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
