"""Request timeout: requests that are not long-running are answered with 504 after it."""

from __future__ import annotations

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ..api.errors import APIStatusError
from ..api.go.durations import parse_duration
from ..http.request import Handler, KubeRequest


def with_deadline(handler: Handler, reactor: IReactorTime, limit: float) -> Handler:
    """
    Answer 504 to requests that take longer than the timeout.

    @param handler: The next handler.
    @param reactor: Schedules timeouts that clients have shortened.
    @param limit: Seconds of the timeout; the query parameter C{timeout} can shorten it.
    """

    def deadline(request: KubeRequest) -> None:
        if request.info.long_running:
            handler(request)
            return
        timeout = limit
        if b"timeout=" in request.uri:
            requested = request.query.get("timeout")
            if requested is not None and requested[0]:
                try:
                    seconds = parse_duration(requested[0])
                except ValueError as error:
                    request.fail(APIStatusError.bad_request(f"invalid timeout specified in the request URL - {error}"))
                    return
                if 0 < seconds < limit:
                    timeout = seconds
        request.deadline = reactor.seconds() + timeout
        handler(request)
        if not (request.finished or request.response_held or request.disconnected):
            if timeout is limit:
                # The site checks the deadlines of all requests once a second, which costs less than a timer for each.
                request.on_deadline = _expired
            else:
                call = reactor.callLater(timeout, _expired, request)
                request.notifyFinish().addBoth(_cancel, call)

    return deadline


def _expired(request: KubeRequest) -> None:
    if request.switched:
        # The connection has another protocol, without requests.
        return
    request.termination_code = 504
    if request.startedWriting:
        # The client reads a large response too slowly: abort it, as the reference does.
        request.abort()
    else:
        request.fail(APIStatusError.timeout("request did not complete within the allotted timeout"))


def _cancel(_: object, call: IDelayedCall) -> None:
    if call.active():
        call.cancel()
