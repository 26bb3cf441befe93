"""
The request class of servers with an audit policy: it records the stages of a request in its audit context.

In blocking modes the response is sent after the event was written. Servers without an audit policy do not use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import time
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol
from twisted.python.failure import Failure

from ..http.request import KubeRequest

if TYPE_CHECKING:
    from ..api.resource import JSONObject
    from .auditor import Auditor
    from .trail import AuditContext

#: Seconds after which the event of a write is completed if the client has disconnected and the handler still runs.
DISCONNECTED_WRITE_TIMEOUT: Final = 60.0

_JSON: Final = b"application/json"
_YAML: Final = b"application/yaml"


def audited_request(auditor: Auditor) -> type[KubeRequest]:
    """
    Return the request class of a server.

    @param auditor: Creates the audit contexts of the requests.
    """
    return type("AuditedRequest", (AuditedRequest,), {"auditor": auditor})


class AuditedRequest(KubeRequest):
    """
    A request that is audited.

    @cvar auditor: The auditor of the server.
    @ivar received: The time when the body was complete, in seconds since the epoch.
    """

    auditor: Auditor
    audit: AuditContext | None = None
    received = 0.0
    _error_status: JSONObject | None = None
    _early_annotations: tuple[tuple[str, str, str], ...] = ()

    def serve(self, body: bytes) -> None:
        """Record the time and handle the request; called when the body is complete."""
        self.received = time()
        super().serve(body)

    def annotate(self, key: str, value: str, level: str) -> None:
        """Add an audit annotation; annotations before authentication are kept until the audit context exists."""
        if self.audit is not None:
            self.audit.annotate(key, value, level)
        elif self.user is None:
            self._early_annotations = (*self._early_annotations, (key, value, level))

    def attach_audit(self, context: AuditContext | None) -> None:
        """
        Set the audit context and add the annotations that were made before authentication.

        @param context: The context; L{None} if the policy has level C{None} for the request.
        """
        self.audit = context
        early, self._early_annotations = self._early_annotations, ()
        if context is not None:
            for key, value, level in early:
                context.annotate(key, value, level)

    def audit_response_status(self, status: JSONObject) -> None:
        """Record the Status that is sent as the response."""
        if self.audit is not None:
            self.audit.set_response_status(status)
        elif status.get("kind") == "Status":
            self._error_status = status

    def respond(self, code: int, body: bytes, content_type: bytes) -> None:
        """As L{KubeRequest.respond}; in blocking modes after the event was written."""
        if self.response_held:
            return
        context = self.audit
        if context is None:
            self._audit_rejected(code)
        elif not (context.completed or self.startedWriting):
            if context.wants_response_object and self._is_object():
                if content_type.startswith(_JSON):
                    context.log_response_object(body)
                elif content_type.startswith(_YAML):
                    context.log_response_object(body, yaml=True)
            context.response_started(code)
            waiting = self._complete()
            if waiting is not None and not self.disconnected:
                self.response_held = True
                waiting.addBoth(lambda _: KubeRequest.respond(self, code, body, content_type))
                waiting.addErrback(self.handle_failure)
                return
        super().respond(code, body, content_type)

    def write(self, data: bytes) -> None:
        """As L{KubeRequest.write}."""
        self._begin_response()
        super().write(data)

    def write_parts(self, parts: Sequence[bytes | memoryview], size: int) -> None:
        """As L{KubeRequest.write_parts}."""
        self._begin_response()
        super().write_parts(parts, size)

    def _begin_response(self) -> None:
        context = self.audit
        if context is not None and not (context.started or self.finished or self.disconnected):
            self._note_user()
            context.response_started(self.code)

    def finish(self) -> None:
        """As L{KubeRequest.finish}; in blocking modes after the event was written."""
        if self.response_held:
            return
        context = self.audit
        if context is not None and not (context.completed or self.finished or self.disconnected):
            context.response_started(self.code)
            waiting = self._complete()
            if waiting is not None:
                self.response_held = True
                waiting.addBoth(lambda _: KubeRequest.finish(self))
                waiting.addErrback(self.handle_failure)
                return
        super().finish()

    def switch_protocols(
        self, fields: Iterable[tuple[bytes, bytes]], protocol: IProtocol, end: Callable[[], object] | None = None
    ) -> bool:
        """As L{KubeRequest.switch_protocols}; the event is completed when the connection ends."""
        context = self.audit
        if context is not None and not (context.started or self.finished or self.disconnected or self.response_held):
            self._note_user()
            context.response_started(101)
        return super().switch_protocols(fields, protocol, end)

    def processingFailed(self, reason: Failure) -> Failure:
        """As L{KubeRequest.processingFailed}."""
        self.panic(reason)
        return super().processingFailed(reason)

    def panic(self, reason: Failure) -> None:
        """Record that an unexpected exception ended the request (stage C{Panic})."""
        if self.audit is not None:
            self._note_user()
            self.audit.panic(reason.getErrorMessage())

    def connectionLost(self, reason: Failure) -> None:
        """Complete the event of a request whose client disconnected before the end of the response."""
        super().connectionLost(reason)
        context = self.audit
        if context is None or context.completed:
            return
        if context.started or context.long_running or self.method in (b"GET", b"HEAD"):
            self._complete()
        else:
            # The write continues without the client, and its result belongs in the event.
            self.site.reactor.callLater(DISCONNECTED_WRITE_TIMEOUT, self._complete)

    def _complete(self) -> Deferred[bool] | None:
        self._note_user()
        assert self.audit is not None, "only requests with an audit context are completed"
        return self.audit.response_complete()

    def _note_user(self) -> None:
        context = self.audit
        assert context is not None, "only requests with an audit event are completed"
        if self.user is not context.metadata.user and context.impersonated is None:
            context.impersonated = self.user
            context.constraint = self.impersonation_constraint

    def _audit_rejected(self, code: int) -> None:
        """Emit the event of a request that failed before or during authentication."""
        status = self._error_status
        if status is None or code not in (400, 401) or self.user is not None or self.finished or self.disconnected:
            return
        self._error_status = None
        if not hasattr(self, "info"):
            # A handler in front of the filters has responded: this is not an API request.
            return
        context = self.auditor.begin_audit(self, None)
        if context is not None:
            for key, value, level in self._early_annotations:
                context.annotate(key, value, level)
            context.set_response_status(status)
            context.log_response_object(orjson.dumps(status))
            context.authentication_failed(code)

    def _is_object(self) -> bool:
        """Return whether the response is an API object: true below /api and /apis, false for example for /openapi."""
        path = self.path
        return path.startswith(b"/api") and path[4:5] in (b"", b"/", b"s")
