"""Faults that are injected into requests, and logs of requests."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import orjson
from attrs import define, field, frozen

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ..api.errors import APIStatusError
from ..api.jsontypes import JSONValue
from ..api.renamed import renamed_names
from ..api.resource import GroupResource
from ..http.request import Handler, KubeRequest
from ..http.requestinfo import RequestInfo, UnknownRequest, request_info_of
from ..http.sharedpieces import SharedWriter
from ..http.site import KubeSite
from ._objectwatch import USER_AGENT

#: Larger bodies are not recorded.
MAX_RECORDED_BODY: Final = 256 * 1024

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
class RecordedRequest:
    """
    A recorded request.

    @ivar verb: As Kubernetes calls it: C{create}, C{list}, C{watch}; for non-resource paths, the method in lower case.
    @ivar query: The parameters; the first value of each.
    @ivar body: The body; empty if it was larger than L{MAX_RECORDED_BODY} bytes.
    @ivar user: The user, or the impersonated user; C{""} before authentication.
    @ivar impersonator: The user who impersonates C{user}; C{""} without impersonation.
    @ivar number: The position in the order of arrival, from 1 on, among all requests that were intercepted.
    @ivar code: The status of the response; L{None} before it.
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
    impersonator: str = ""
    number: int = 0
    code: int | None = None
    injected: bool = False

    def json(self) -> JSONValue:
        """Return the body, decoded from JSON."""
        return json.loads(self.body)

    def update(self, request: KubeRequest) -> None:
        """Take over what became known while the request was served: the user, and the status."""
        if request.user is not None:
            self.user = request.user.name
        if request.impersonator is not None:
            self.impersonator = request.impersonator.name
        if request.startedWriting or request.finished:
            self.code = request.code

    @classmethod
    def of(cls, request: KubeRequest, info: RequestInfo) -> RecordedRequest:
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
            body if len(body) <= MAX_RECORDED_BODY else b"",
        )


@frozen(eq=False)
class RequestMatcher:
    """
    Selects requests; L{None} matches any value.

    @ivar where: A further condition on a L{RecordedRequest}; called in the server's thread.
    """

    verb: str | None = None
    resource: str | None = None
    subresource: str | None = None
    namespace: str | None = None
    name: str | None = None
    group: str | None = None
    path: str | None = None
    where: Callable[[RecordedRequest], bool] | None = None

    def matches(self, recorded: RecordedRequest) -> bool:
        """Return whether a request is selected."""
        for expected, actual in (
            (self.verb, recorded.verb),
            (self.resource, recorded.resource),
            (self.subresource, recorded.subresource),
            (self.namespace, recorded.namespace),
            (self.name, recorded.name),
            (self.group, recorded.group),
            (self.path, recorded.path),
        ):
            if expected is not None and expected != actual:
                return False
        return self.where is None or bool(self.where(recorded))


class Fault:
    """
    A fault that affects requests until it is removed or has affected its number of requests.

    @ivar hits: Number of affected requests.
    """

    def __init__(self, interceptor: Interceptor, selection: RequestMatcher, times: int | None) -> None:
        self.hits = 0
        self.selection = selection
        self._interceptor = interceptor
        self._times = times

    def record_hit(self) -> None:
        """Count an affected request."""
        self.hits += 1
        if self._times is not None and self.hits >= self._times:
            self.remove()

    def remove(self) -> None:
        """Remove the fault. Idempotent, and callable from any thread."""
        self._interceptor.remove(self)

    def apply(self, request: KubeRequest, recorded: RecordedRequest, handler: Handler) -> None:
        """Apply the fault to a request: answer it, or call C{handler}."""
        raise NotImplementedError

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class ResponseFault(Fault):
    """Responds instead of the server, or delays the server's response."""

    def __init__(
        self,
        interceptor: Interceptor,
        selection: RequestMatcher,
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

    def apply(self, request: KubeRequest, recorded: RecordedRequest, handler: Handler) -> None:
        """See L{Fault.apply}."""
        recorded.injected = self._hang_up or self._code is not None
        if self._delay > 0:
            self._interceptor.reactor.callLater(self._delay, self._now, request, recorded, handler)
        else:
            self._now(request, recorded, handler)

    def _now(self, request: KubeRequest, recorded: RecordedRequest, handler: Handler) -> None:
        if request.disconnected:
            return
        if self._hang_up:
            request.abort()
        elif self._code is None:
            handler(request)
        elif self._code == 410 and recorded.verb == "watch":
            # The status is 200 with an ERROR event, as in the server.
            event = {"type": "ERROR", "object": self._error(recorded).status()}
            request.respond(200, orjson.dumps(event) + b"\n", b"application/json")
        else:
            request.fail(self._error(recorded))

    def _error(self, recorded: RecordedRequest) -> APIStatusError:
        code, retry = self._code or 500, self._retry_after
        if code == 409 and recorded.name and self._reason is None and self._message is None:
            return APIStatusError.modified(GroupResource(recorded.group, recorded.resource), recorded.name)
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
        selection: RequestMatcher,
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

    def apply(self, request: KubeRequest, recorded: RecordedRequest, handler: Handler) -> None:
        """See L{Fault.apply}."""
        _FaultyStream(request, self, self._interceptor.reactor)
        handler(request)


class _FaultyStream:
    """A proxy between a watch and its connection."""

    def __init__(self, request: KubeRequest, fault: WatchFault, reactor: IReactorTime) -> None:
        self._request = request
        self._fault = fault
        self._reactor = reactor
        self._write, self._finish = request.write, request.finish
        self._remaining = fault.break_after
        self._drop = fault.drop
        self._delayed: deque[tuple[IDelayedCall, bytes]] = deque()
        setattr(request, "write", self.write)  # noqa: B010 - mypy refuses assignments to methods
        setattr(request, "shared_writer", lambda: SharedWriter(self.write))  # noqa: B010 - likewise
        setattr(request, "finish", self.finish)  # noqa: B010 - likewise

    def write(self, data: bytes) -> None:
        """Write events of the stream, as the fault requires."""
        if not data:
            self._write(data)
            return
        if self._fault.delay > 0:
            call = self._reactor.callLater(self._fault.delay, self._write_delayed)
            self._delayed.append((call, data))
        else:
            self._write_events(data)

    def _write_delayed(self) -> None:
        self._write_events(self._delayed.popleft()[1])

    def _write_events(self, data: bytes) -> None:
        # Events are lines, except in protobuf, where each write is kept together.
        json_lines = data.startswith(b"{")
        for event in data.splitlines(keepends=True) if json_lines else [data]:
            if self._request.finished or self._request.disconnected:
                return
            if self._remaining is not None and self._remaining <= 0:
                self._close()
                return
            if self._drop > 0:
                self._drop -= 1
                continue
            self._write(event * 2 if self._fault.duplicate else event)
            if self._remaining is not None:
                self._remaining -= 1
        if self._remaining is not None and self._remaining <= 0:
            self._close()

    def _close(self) -> None:
        # Send the written data first.
        self._request.loseConnection()

    def finish(self) -> None:
        """End the watch: delayed events are sent now."""
        delayed, self._delayed = self._delayed, deque()
        for call, data in delayed:
            if call.active():
                call.cancel()
            self._write_events(data)
        self._finish()


class RecordedRequests:
    """Base class of logs, and of their selections."""

    @property
    def requests(self) -> list[RecordedRequest]:
        """Return all requests in the order of their arrival."""
        raise NotImplementedError

    def by(
        self, user: str | None = None, *, service_account: str | None = None, impersonator: str | None = None
    ) -> RecordedRequests:
        """
        Select the requests of a user, also later ones.

        @param user: The user name, also of an impersonated user; L{None} for any.
        @param service_account: C{"namespace/name"}.
        @param impersonator: The user who impersonates another one.
        @raise ValueError: Both a user and a service account are given, or the service account has no namespace.
        """
        if service_account is not None:
            namespace, slash, name = service_account.partition("/")
            if not namespace or not slash or not name or user is not None:
                raise ValueError("service_account is 'namespace/name', and cannot be combined with a user")
            user = f"system:serviceaccount:{namespace}:{name}"
        return _SelectedRequests(
            self,
            lambda recorded: (
                (user is None or recorded.user == user)
                and (impersonator is None or recorded.impersonator == impersonator)
            ),
        )

    def mark(self) -> int:
        """Return the current position, for L{since}."""
        return max((recorded.number for recorded in self.requests), default=0)

    def since(self, position: int | RecordedRequest) -> RecordedRequests:
        """
        Select the requests after a position, also later ones.

        @param position: The result of L{mark}, or a request.
        """
        number = position.number if isinstance(position, RecordedRequest) else position
        return _SelectedRequests(self, lambda recorded: recorded.number > number)

    def matching(self, code: int | None = None, user: str | None = None, **selection: Any) -> list[RecordedRequest]:
        """
        Return the selected requests.

        @param code: The status of the response; L{None} for any.
        @param user: The user name; L{None} for any.
        @param selection: See L{RequestMatcher}: C{verb}, C{resource}, C{namespace}, C{name}...
        """
        matcher = RequestMatcher(**selection)
        return [
            recorded
            for recorded in self.requests
            if matcher.matches(recorded)
            and (code is None or recorded.code == code)
            and (user is None or recorded.user == user)
        ]

    def assert_requested(self, times: int | None = None, **selection: Any) -> list[RecordedRequest]:
        """
        Return the selected requests; check that there is at least one, or the given number.

        @raise AssertionError: The number differs.
        """
        found = self.matching(**selection)
        if (not found) if times is None else (len(found) != times):
            expected = "any" if times is None else str(times)
            lines = "\n".join(
                f"  {recorded.method} {recorded.path} -> {recorded.code}" for recorded in self.requests[-50:]
            )
            raise AssertionError(
                f"{len(found)} requests with {selection}, expected {expected}; the last requests:\n{lines}"
            )
        return found


class _SelectedRequests(RecordedRequests):
    """The requests of another log that meet a condition."""

    def __init__(self, source: RecordedRequests, selects: Callable[[RecordedRequest], bool]) -> None:
        self._source = source
        self._selects = selects

    @property
    def requests(self) -> list[RecordedRequest]:
        """See L{RecordedRequests.requests}."""
        return list(filter(self._selects, self._source.requests))


class RequestLog(RecordedRequests):
    """
    Records requests since its creation; above the limit the oldest are dropped.

    Its methods may be called from any thread.
    """

    def __init__(self, interceptor: Interceptor, limit: int) -> None:
        self._interceptor = interceptor
        self._lock = threading.Lock()
        self._requests: deque[RecordedRequest] = deque(maxlen=limit)

    def add(self, recorded: RecordedRequest) -> None:
        """Add a request."""
        with self._lock:
            self._requests.append(recorded)

    @property
    def requests(self) -> list[RecordedRequest]:
        """See L{RecordedRequests.requests}."""
        self._interceptor.update_open()
        with self._lock:
            return list(self._requests)

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
        self._wrapped_handler: Handler = site.handler
        self._lock = threading.Lock()
        self._faults: tuple[Fault, ...] = ()
        self._logs: tuple[RequestLog, ...] = ()
        self._recorded = 0
        #: The recorded requests without a complete response.
        self._open: dict[KubeRequest, RecordedRequest] = {}

    def add(self, fault: Fault) -> None:
        """Add a fault; faults are applied in the order of their addition."""
        with self._lock:
            self._faults = (*self._faults, fault)
            self._install()

    def remove(self, fault: Fault) -> None:
        """Remove a fault."""
        with self._lock:
            self._faults = tuple(one for one in self._faults if one is not fault)
            self._install()

    def log(self, limit: int) -> RequestLog:
        """Add a log, which records requests from now on."""
        log = RequestLog(self, limit)
        with self._lock:
            self._logs = (*self._logs, log)
            self._install()
        return log

    def stop_log(self, log: RequestLog) -> None:
        """Stop a log."""
        with self._lock:
            self._logs = tuple(one for one in self._logs if one is not log)
            self._install()

    def clear(self) -> None:
        """Remove all faults, and stop all logs."""
        with self._lock:
            self._faults, self._logs = (), ()
            self._install()

    def _install(self) -> None:
        self._site.handler = self._handle if self._faults or self._logs else self._wrapped_handler

    def _handle(self, request: KubeRequest) -> None:
        if request.user_agent == USER_AGENT:
            # The requests of wait_for and the like are not the requests of the code under test.
            self._wrapped_handler(request)
            return
        # Faults and logs may use bodies, so bodies are read first.
        request.collect_body(self._apply_faults)

    def _apply_faults(self, request: KubeRequest) -> None:
        try:
            info = request.info = request_info_of(request.method, request.uri)
        except UnknownRequest:
            self._wrapped_handler(request)
            return
        recorded = RecordedRequest.of(request, info)
        self._recorded += 1
        recorded.number = self._recorded
        logs = self._logs
        for log in logs:
            log.add(recorded)
        if logs:
            self._open[request] = recorded
            request.notifyFinish().addBoth(self._record_result, request)
        for fault in self._faults:
            if fault.selection.matches(recorded):
                fault.record_hit()
                fault.apply(request, recorded, self._wrapped_handler)
                return
        self._wrapped_handler(request)

    def _record_result(self, _: object, request: KubeRequest) -> None:
        self._open.pop(request).update(request)

    def update_open(self) -> None:
        """Update the recorded requests that are still open, such as watches. Callable from any thread."""
        for request, recorded in self._open.copy().items():
            recorded.update(request)

    def open_watches(self, selection: RequestMatcher) -> list[tuple[KubeRequest, Callable[..., object]]]:
        """Return the open watches, and the functions that end them."""
        found = []
        for request, end in list(self._site.long_running_requests.items()):
            recorded = RecordedRequest.of(request, request.info)
            if recorded.verb == "watch" and selection.matches(recorded):
                found.append((request, end))
        return found


if not TYPE_CHECKING:
    __getattr__ = renamed_names(
        __name__,
        {"AnswerFault": "ResponseFault", "Selection": "RequestMatcher", "SentRequest": "RecordedRequest"},
    )
