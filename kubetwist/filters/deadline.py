"""Requests that are not long-running are answered in time, if only by an error."""

from __future__ import annotations

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ..api.errors import APIStatusError
from ..api.go.durations import parse_duration
from ..http.request import Handler, KubeRequest


def with_deadline(handler: Handler, reactor: IReactorTime, longest: float) -> Handler:
    """
    Answer with a 504 what is not answered in time.

    @param longest: Seconds; clients can ask for less with C{?timeout=}, but not for more.
    """

    def deadline(request: KubeRequest) -> None:
        if request.info.long_running:
            handler(request)
            return
        allowed = longest
        if b"timeout=" in request.uri:
            wanted = request.query.get("timeout")
            if wanted is not None and wanted[0]:
                try:
                    seconds = parse_duration(wanted[0])
                except ValueError as error:
                    request.fail(APIStatusError.bad_request(f"invalid timeout specified in the request URL - {error}"))
                    return
                if 0 < seconds < longest:
                    allowed = seconds
        request.deadline = reactor.seconds() + allowed
        handler(request)
        if not (request.finished or request.held or request.disconnected):
            call = reactor.callLater(allowed, _expired, request)
            request.notifyFinish().addBoth(_cancel, call)

    return deadline


def _expired(request: KubeRequest) -> None:
    if request.switched:
        # What is spoken now knows no requests, and so no end of them.
        return
    request.terminated = 504
    if request.startedWriting:
        # A large answer that the client reads slowly, or not at all: cut off, as in the reference.
        request.abort()
    else:
        request.fail(APIStatusError.timeout("request did not complete within the allotted timeout"))


def _cancel(_: object, call: IDelayedCall) -> None:
    if call.active():
        call.cancel()
