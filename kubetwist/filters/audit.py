"""What is told of requests to the audit; in front of everything that knows who sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..api.latency import times
from ..http.request import Handler, KubeRequest
from .requestinfo import sanitized

if TYPE_CHECKING:
    from ..audit.auditedrequest import AuditedRequest
    from ..audit.auditor import Auditor
    from ..audit.trail import AuditContext


def with_audit(handler: Handler, auditor: Auditor) -> Handler:
    """
    Have the requests that the policy means leave a trail; what is known later is added to it, see
    L{kubetwist.audit.auditedrequest}.

    A request goes on once its first event is written, where somebody insists on that, and fails when it can not be.
    """
    strict = auditor.strict

    def audit(request: KubeRequest) -> None:
        audited = cast("AuditedRequest", request)
        trail = auditor.begin_audit(audited, request.user)
        audited.attach_audit(trail)
        if trail is None:
            handler(request)
            return
        waiting = trail.request_received()
        if waiting is None or not strict:
            _go_on(request, trail)
            return
        waiting.addCallback(_written, audited, trail).addErrback(request.crashed)

    def _go_on(request: KubeRequest, trail: AuditContext) -> None:
        token = times.set(trail.times)
        try:
            handler(request)
        finally:
            times.reset(token)

    def _written(fine: bool, request: AuditedRequest, trail: AuditContext) -> None:
        if request.over:
            return
        if fine:
            _go_on(request, trail)
        else:
            auditor.counts.rejected += 1
            request.audit = None
            uri = request.uri.decode("utf-8", "replace")
            text = f'Internal Server Error: "{uri}": failed to store audit event'
            request.respond_text(500, f"{sanitized(text)}\n")

    return audit
