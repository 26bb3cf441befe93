"""Audit filter: starts the audit trail of a request after authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..api.latency import latencies
from ..http.request import Handler, KubeRequest
from .requestinfo import escape_html

if TYPE_CHECKING:
    from ..audit.auditedrequest import AuditedRequest
    from ..audit.auditor import Auditor
    from ..audit.trail import AuditContext


def with_audit(handler: Handler, auditor: Auditor) -> Handler:
    """
    Attach an audit trail to each request that the audit policy selects; see L{kubetwist.audit.auditedrequest}.

    With a blocking-strict backend, the request continues after its first event was written, and fails if it cannot be
    written.

    @param handler: The next handler.
    @param auditor: Creates audit trails by the audit policy.
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
            _continue_request(request, trail)
            return
        waiting.addCallback(_written, audited, trail).addErrback(request.handle_failure)

    def _continue_request(request: KubeRequest, trail: AuditContext) -> None:
        token = latencies.set(trail.times)
        try:
            handler(request)
        finally:
            latencies.reset(token)

    def _written(written: bool, request: AuditedRequest, trail: AuditContext) -> None:
        if request.is_done:
            return
        if written:
            _continue_request(request, trail)
        else:
            auditor.counts.rejected += 1
            request.audit = None
            uri = request.uri.decode("utf-8", "replace")
            text = f'Internal Server Error: "{uri}": failed to store audit event'
            request.respond_text(500, f"{escape_html(text)}\n")

    return audit
