"""Faults that answer requests in place of the server, and logs of requests."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import orjson
from attrs import define, field, frozen

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ..api.errors import APIStatusError
from ..api.jsontypes import JSONValue
from ..api.resource import GroupResource
from ..http.request import Handler, KubeRequest
from ..http.requestinfo import RequestInfo, UnknownRequest, request_info_of
from ..http.site import KubeSite

#: Larger bodies are not recorded.
KEPT_BODY: Final = 256 * 1024

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@define(eq=False)
class SentRequest:
    """
    A recorded request.

    @ivar verb: As Kubernetes calls it: C{create}, C{list}, C{watch}; for non-resource paths, the method in lower case.
    @ivar query: The parameters; the first value of each.
    @ivar body: The body; empty if it was larger than L{KEPT_BODY}.
    @ivar user: The user, or the impersonated user; C{""} before authentication.
    @ivar code: The status of the answer; L{None} before.
    @ivar injected: Whether a fault answered it.
    """

    method: str
    path: str
    query: Mapping[str, str]
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user_agent: str
    content_type: str
    body: bytes = field(repr=False)
    user: str = ""
    code: int | None = None
    injected: bool = False

    def json(self) -> JSONValue:
        """Return the body, decoded from JSON."""
        return json.loads(self.body)

    @classmethod
    def of(cls, request: KubeRequest, info: RequestInfo) -> SentRequest:
        """Return the record of a request."""
        body: bytes = request._body
        path, _, query = request.uri.decode("utf-8", "replace").partition("?")
        return cls(
            request.method.decode("latin-1"),
            path,
            {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()},
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.subresource,
            info.namespace,
            info.name,
            request.user_agent,
            (request.header(b"content-type") or b"").decode("latin-1"),
            body if len(body) <= KEPT_BODY else b"",
        )


@frozen(eq=False)
class Selection:
    """
    Selects requests; L{None} matches any value.

    @ivar where: A further condition on a L{SentRequest}; called in the server's thread.
    """

    verb: str | None = None
    resource: str | None = None
    subresource: str | None = None
    namespace: str | None = None
    name: str | None = None
    group: str | None = None
    path: str | None = None
    where: Callable[[SentRequest], bool] | None = None

    def matches(self, sent: SentRequest) -> bool:
        """Return whether a request is selected."""
        for wanted, is_ in (
            (self.verb, sent.verb),
            (self.resource, sent.resource),
            (self.subresource, sent.subresource),
            (self.namespace, sent.namespace),
            (self.name, sent.name),
            (self.group, sent.group),
            (self.path, sent.path),
        ):
            if wanted is not None and wanted != is_:
                return False
        return self.where is None or bool(self.where(sent))


class Fault:
    """
    A fault that affects requests until it is removed or has affected its number of requests.

    @ivar hits: Number of affected requests.
    """

    def __init__(self, interceptor: Interceptor, selection: Selection, times: int | None) -> None:
        self.hits = 0
        self.selection = selection
        self._interceptor = interceptor
        self._times = times

    def take(self) -> None:
        """Count an affected request."""
        self.hits += 1
        if self._times is not None and self.hits >= self._times:
            self.remove()

    def remove(self) -> None:
        """Remove the fault. Idempotent, and callable from any thread."""
        self._interceptor.remove(self)

    def apply(self, request: KubeRequest, sent: SentRequest, handler: Handler) -> None:
        """Apply the fault to a request: answer it, or call C{handler}."""
        raise NotImplementedError

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class AnswerFault(Fault):
    """Answers instead of the server, or delays the server's answer."""

    def __init__(
        self,
        interceptor: Interceptor,
        selection: Selection,
        times: int | None,
        *,
        code: int | None,
        delay: float,
        retry_after: int | None,
        reason: str | None,
        message: str | None,
        hang_up: bool,
    ) -> None:
        super().__init__(interceptor, selection, times)
        if code is not None and not 400 <= code <= 599:
            raise ValueError(f"{code} is no error")
        self._code = code
        self._delay = delay
        self._retry_after = retry_after
        self._reason = reason
        self._message = message
        self._hang_up = hang_up

    def apply(self, request: KubeRequest, sent: SentRequest, handler: Handler) -> None:
        """See L{Fault.apply}."""
        sent.injected = self._hang_up or self._code is not None
        if self._delay > 0:
            self._interceptor.reactor.callLater(self._delay, self._now, request, sent, handler)
        else:
            self._now(request, sent, handler)

    def _now(self, request: KubeRequest, sent: SentRequest, handler: Handler) -> None:
        if request.disconnected:
            return
        if self._hang_up:
            request.abort()
        elif self._code is None:
            handler(request)
        elif self._code == 410 and sent.verb == "watch":
            # The status is 200 with an ERROR event, as in the server.
            event = {"type": "ERROR", "object": self._error(sent).status()}
            request.respond(200, orjson.dumps(event) + b"\n", b"application/json")
        else:
            request.fail(self._error(sent))

    def _error(self, sent: SentRequest) -> APIStatusError:
        code, retry = self._code or 500, self._retry_after
        if code == 409 and sent.name and self._reason is None and self._message is None:
            return APIStatusError.modified(GroupResource(sent.group, sent.resource), sent.name)
        if code == 429 and retry is None:
            retry = 1
        details = {"retryAfterSeconds": retry} if retry else {}
        reason = self._reason if self._reason is not None else _REASONS.get(code, "")
        return APIStatusError(code, reason, self._message or f"a test has this answered with {code}", details, retry)


class WatchFault(Fault):
    """Delays, repeats or drops events of watches, or breaks their connections."""

    def __init__(
        self,
        interceptor: Interceptor,
        selection: Selection,
        times: int | None,
        *,
        delay: float,
        duplicate: bool,
        drop: int,
        break_after: int | None,
    ) -> None:
        super().__init__(interceptor, selection, times)
        self.delay = delay
        self.duplicate = duplicate
        self.drop = drop
        self.break_after = break_after

    def apply(self, request: KubeRequest, sent: SentRequest, handler: Handler) -> None:
        """See L{Fault.apply}."""
        _DisturbedStream(request, self, self._interceptor.reactor)
        handler(request)


class _DisturbedStream:
    """A proxy between a watch and its connection."""

    def __init__(self, request: KubeRequest, fault: WatchFault, reactor: IReactorTime) -> None:
        self._request = request
        self._fault = fault
        self._reactor = reactor
        self._write, self._finish = request.write, request.finish
        self._left = fault.break_after
        self._drop = fault.drop
        self._late: deque[tuple[IDelayedCall, bytes]] = deque()
        setattr(request, "write", self.write)  # noqa: B010 - mypy refuses assignments to methods
        setattr(request, "finish", self.finish)  # noqa: B010

    def write(self, data: bytes) -> None:
        """Write events of the stream, as the fault requires."""
        if not data:
            self._write(data)
            return
        if self._fault.delay > 0:
            call = self._reactor.callLater(self._fault.delay, self._due)
            self._late.append((call, data))
        else:
            self._disturbed(data)

    def _due(self) -> None:
        self._disturbed(self._late.popleft()[1])

    def _disturbed(self, data: bytes) -> None:
        # Events are lines, except in protobuf, where each write is kept together.
        json_lines = data.startswith(b"{")
        for event in data.splitlines(keepends=True) if json_lines else [data]:
            if self._request.finished or self._request.disconnected:
                return
            if self._left is not None and self._left <= 0:
                self._cut()
                return
            if self._drop > 0:
                self._drop -= 1
                continue
            self._write(event * 2 if self._fault.duplicate else event)
            if self._left is not None:
                self._left -= 1
        if self._left is not None and self._left <= 0:
            self._cut()

    def _cut(self) -> None:
        # Send the written data first.
        self._request.loseConnection()

    def finish(self) -> None:
        """End the watch: delayed events are sent now."""
        late, self._late = self._late, deque()
        for call, data in late:
            if call.active():
                call.cancel()
            self._disturbed(data)
        self._finish()


class RequestLog:
    """
    Records requests since its creation; only the newest above the limit.

    Its methods may be called from any thread.
    """

    def __init__(self, interceptor: Interceptor, limit: int) -> None:
        self._interceptor = interceptor
        self._lock = threading.Lock()
        self._requests: deque[SentRequest] = deque(maxlen=limit)

    def add(self, sent: SentRequest) -> None:
        """Add a request."""
        with self._lock:
            self._requests.append(sent)

    @property
    def requests(self) -> list[SentRequest]:
        """Return all requests in the order of their arrival."""
        with self._lock:
            return list(self._requests)

    def matching(self, code: int | None = None, user: str | None = None, **selection: Any) -> list[SentRequest]:
        """
        Return the selected requests.

        @param selection: As L{Selection}: C{verb}, C{resource}, C{namespace}, C{name}...
        """
        chosen = Selection(**selection)
        return [
            sent
            for sent in self.requests
            if chosen.matches(sent) and (code is None or sent.code == code) and (user is None or sent.user == user)
        ]

    def assert_requested(self, times: int | None = None, **selection: Any) -> list[SentRequest]:
        """
        Return the selected requests; check that there is at least one, or the given number.

        @raise AssertionError: The number differs.
        """
        found = self.matching(**selection)
        if (not found) if times is None else (len(found) != times):
            wanted = "any" if times is None else str(times)
            lines = "\n".join(f"  {sent.method} {sent.path} -> {sent.code}" for sent in self.requests[-50:])
            raise AssertionError(
                f"{len(found)} requests with {selection}, wanted {wanted}; the last that came:\n{lines}"
            )
        return found

    def clear(self) -> None:
        """Drop the recorded requests."""
        with self._lock:
            self._requests.clear()

    def stop(self) -> None:
        """Stop recording. Idempotent."""
        self._interceptor.stop_log(self)

    def __enter__(self) -> RequestLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Interceptor:
    """
    Wraps a site's handler while there is a fault or a log.

    @ivar reactor: The real reactor: injected delays pass in the time of clients.
    """

    def __init__(self, site: KubeSite, reactor: IReactorTime) -> None:
        self.reactor = reactor
        self._site = site
        self._behind: Handler = site.handler
        self._lock = threading.Lock()
        self._faults: tuple[Fault, ...] = ()
        self._logs: tuple[RequestLog, ...] = ()

    def add(self, fault: Fault) -> None:
        """Add a fault; faults are applied in the order of their addition."""
        with self._lock:
            self._faults = (*self._faults, fault)
            self._arrange()

    def remove(self, fault: Fault) -> None:
        """Remove a fault."""
        with self._lock:
            self._faults = tuple(one for one in self._faults if one is not fault)
            self._arrange()

    def log(self, limit: int) -> RequestLog:
        """Add a log, which records requests from now on."""
        log = RequestLog(self, limit)
        with self._lock:
            self._logs = (*self._logs, log)
            self._arrange()
        return log

    def stop_log(self, log: RequestLog) -> None:
        """Stop a log."""
        with self._lock:
            self._logs = tuple(one for one in self._logs if one is not log)
            self._arrange()

    def clear(self) -> None:
        """Remove all faults, and stop all logs."""
        with self._lock:
            self._faults, self._logs = (), ()
            self._arrange()

    def _arrange(self) -> None:
        self._site.handler = self._handle if self._faults or self._logs else self._behind

    def _handle(self, request: KubeRequest) -> None:
        # Faults and logs may use bodies, so bodies are read first.
        request.collect_body(self._take)

    def _take(self, request: KubeRequest) -> None:
        try:
            info = request.info = request_info_of(request.method, request.uri)
        except UnknownRequest:
            self._behind(request)
            return
        sent = SentRequest.of(request, info)
        logs = self._logs
        for log in logs:
            log.add(sent)
        if logs:
            request.notifyFinish().addBoth(_ended, request, sent)
        for fault in self._faults:
            if fault.selection.matches(sent):
                fault.take()
                fault.apply(request, sent, self._behind)
                return
        self._behind(request)

    def open_watches(self, selection: Selection) -> list[tuple[KubeRequest, Callable[..., object]]]:
        """Return the open watches, and the functions that end them."""
        found = []
        for request, end in list(self._site.long_running_requests.items()):
            sent = SentRequest.of(request, request.info)
            if sent.verb == "watch" and selection.matches(sent):
                found.append((request, end))
        return found


def _ended(_: object, request: KubeRequest, sent: SentRequest) -> None:
    if request.startedWriting or request.finished:
        sent.code = request.code
    if request.user is not None:
        sent.user = request.user.name
