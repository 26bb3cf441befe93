"""Answer and log requests that fail with an exception."""

from __future__ import annotations

from typing import Final

from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.errors import APIStatusError, ReportedError
from .connection.memorylimit import MemoryGuard
from .request import KubeRequest

_log: Final = Logger()


def answer_failure(request: KubeRequest, reason: Failure, guard: MemoryGuard | None = None) -> None:
    """
    Log the reason of a failed request, and answer 500 without it.

    Failures of the store are answered with their text, as in the reference. A response that has begun is aborted.

    @param guard: Frees its reserve after a failed allocation.
    """
    if reason.check(MemoryError):
        _out_of_memory(request, reason, guard)
        return
    status_error = APIStatusError.internal("the server met an unexpected condition")
    if isinstance(reason.value, ReportedError):
        status_error = APIStatusError.unknown(reason.value.client_message)
        _log.warn(
            "{method} {path} failed (audit id {audit_id}): {error}",
            error=reason.value,
            method=request.method.decode("latin-1"),
            path=request.path.decode("latin-1"),
            audit_id=request.audit_id,
        )
    else:
        _log.failure(
            "{method} {path} failed (audit id {audit_id})",
            reason,
            method=request.method.decode("latin-1"),
            path=request.path.decode("latin-1"),
            audit_id=request.audit_id,
        )
    if request.switched:
        request.abort()
    elif request.startedWriting and not request.finished:
        request.loseConnection()
    else:
        request.fail(status_error)


def _out_of_memory(request: KubeRequest, reason: Failure, guard: MemoryGuard | None) -> None:
    """Answer 503 after a failed allocation with as little memory as possible, or abort a response that has begun."""
    # The frames reference the objects under construction.
    reason.cleanFailure()
    if guard is not None:
        guard.exhausted()
    _log.error("out of memory: {path} failed", path=request.path[:200].decode("latin-1"))
    request.termination_code = 503
    if request.switched:
        request.abort()
    elif request.startedWriting and not request.finished:
        request.truncate_response()
    else:
        request.setHeader(b"Retry-After", b"1")
        request.respond_text(503, "The server is out of memory, please try again later.\n")
