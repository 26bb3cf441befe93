"""
The lines about requests: one for each where that is wanted, and one for each that took long.

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
from .redaction import LONGEST_AGENT, LONGEST_ID, cut, safe_uri
from .structured import tell
from .verbosity import ACCESS, Verbosity

if TYPE_CHECKING:
    from ..metrics.requesttypes import MeasuredInfo, MeasuredRequest

#: Seconds from which on a request took long.
SLOW: Final = 0.5

#: Where time goes, by the names in a line.
_PLACES: Final = {
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
        A request is answered, or its client has gone.

        @param now: In the time of L{KubeRequest.begun<kubetwist.http.request.KubeRequest>}.
        """
        took = now - request.begun
        if self._verbosity.requests:
            tell(_log, ACCESS, "HTTP", access_values(request, took))
        if took > SLOW:
            info = getattr(request, "info", None)
            if info is not None and not info.long_running and self._limiter.allow(now):
                _log.info("{trace}", trace=trace_of(request, took))


def access_values(request: MeasuredRequest, took: float) -> dict[str, object]:
    """What the line about a request says."""
    info = getattr(request, "info", None)
    values: dict[str, object] = {
        "verb": verb_of(request),
        "URI": _uri(request, info),
        "latency": duration(took),
        "userAgent": cut(request.user_agent, LONGEST_AGENT),
        "audit-ID": cut(request.audit_id, LONGEST_ID),
        "srcIP": _peer(request),
    }
    for name, seconds in spent(request):
        values[name] = duration(seconds)
    assigned = request.assigned
    if assigned is not None:
        values["apf_pl"] = assigned.level.name
        values["apf_fs"] = assigned.schema.name
    if request.switched:
        values["hijacked"] = True
    else:
        values["resp"] = request.code if request.startedWriting else 0
    return values


def spent(request: MeasuredRequest) -> list[tuple[str, float]]:
    """Where the time of a request went, as far as it is known."""
    found = []
    if request.authenticated_at:
        found.append(("authentication", request.authenticated_at - request.begun))
    times = request.times or {}
    if request.authorized_at:
        queued = times.get(QUEUE, 0.0)
        found.append(("authorization", request.authorized_at - request.authenticated_at - queued))
    if times:
        found += [(name, times[place]) for name, place in _PLACES.items() if place in times]
    return found


def about_request(request: MeasuredRequest, client: str) -> dict[str, str]:
    """What the reference tells of a request where it tells what took long."""
    info = request.info
    return {
        "accept": cut((request.header(b"accept") or b"").decode("utf-8", "replace"), LONGEST_AGENT),
        "audit-id": cut(request.audit_id, LONGEST_ID),
        "client": client,
        "api-group": info.group,
        "api-version": info.version,
        "name": info.name,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "protocol": request.clientproto.decode("latin-1"),
        "resource": info.resource,
        "url": safe_uri(request.path),
        "user-agent": cut(request.user_agent, LONGEST_AGENT),
        "verb": verb_of(request),
    }


def trace_of(request: MeasuredRequest, took: float) -> str:
    """What the log says of a request that took long."""
    info = request.info
    number = randrange(2**31)
    about = about_request(request, _peer(request).rpartition(":")[0])
    about["resp"] = str(request.code if request.startedWriting else 0)
    begun = time() - took
    fields = ",".join(f"{key}:{_one_line(value)}" for key, value in about.items())
    title = _one_line(info.verb.capitalize())
    lines = [f'Trace[{number}]: "{title}" {fields} ({_clock(begun, date=True)}) (total time: {_milliseconds(took)}):']
    lines += [f'Trace[{number}]: ---"{name}" {_milliseconds(seconds)}' for name, seconds in spent(request)]
    lines.append(f"Trace[{number}]: [{_milliseconds(took)}] [{_milliseconds(took)}] END")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """As Go prints one, to the microsecond."""
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
    return safe_uri(request.uri, opaque=info is not None and info.subresource == "proxy")


def peer_of(request: MeasuredRequest) -> tuple[str, int] | None:
    """The address and port at the other end of the connection."""
    peer: Any = request.client
    host = getattr(peer, "host", None)
    return None if host is None else (host, peer.port)


def _peer(request: MeasuredRequest) -> str:
    peer = peer_of(request)
    if peer is None:
        return ""
    host, port = peer
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
