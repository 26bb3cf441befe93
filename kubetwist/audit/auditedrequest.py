"""
Requests as they are where there is an audit: what is answered leaves a trail, and may have to wait until it does.

Without an audit no request is one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

#: Seconds that the outcome of a write is waited for whose client has gone.
DISCONNECTED_WRITE_TIMEOUT: Final = 60.0

_JSON: Final = b"application/json"
_YAML: Final = b"application/yaml"


def audited_request(auditor: Auditor) -> type[KubeRequest]:
    """
    The class of the requests of a server.

    @param auditor: Creates the trails of the requests.
    """
    return type("AuditedRequest", (AuditedRequest,), {"auditor": auditor})


class AuditedRequest(KubeRequest):
    """
    One request.

    @cvar auditor: Of the server.
    @ivar received: When it came, a POSIX time.
    """

    auditor: Auditor
    audit: AuditContext | None = None
    received = 0.0
    _error_status: JSONObject | None = None
    _early_annotations: tuple[tuple[str, str, str], ...] = ()

    def serve(self, body: bytes) -> None:
        """The body has arrived: answer, now or later."""
        self.received = time()
        super().serve(body)

    def annotate(self, key: str, value: str, level: str) -> None:
        """Have the audit event say something; what is said before it is known whose request this is waits for that."""
        if self.audit is not None:
            self.audit.annotate(key, value, level)
        elif self.user is None:
            self._early_annotations = (*self._early_annotations, (key, value, level))

    def attach_audit(self, trail: AuditContext | None) -> None:
        """It is known now whose request this is, and whether it is told of."""
        self.audit = trail
        early, self._early_annotations = self._early_annotations, ()
        if trail is not None:
            for key, value, level in early:
                trail.annotate(key, value, level)

    def audit_response_status(self, status: JSONObject) -> None:
        """What is answered is this Status."""
        if self.audit is not None:
            self.audit.set_response_status(status)
        elif status.get("kind") == "Status":
            self._error_status = status

    def respond(self, code: int, body: bytes, content_type: bytes) -> None:
        """As L{KubeRequest.respond}, once the event is written."""
        if self.held:
            return
        trail = self.audit
        if trail is None:
            self._audit_rejected(code)
        elif not (trail.completed or self.startedWriting):
            if trail.wants_response_object and self._is_object():
                if content_type.startswith(_JSON):
                    trail.log_response_object(body)
                elif content_type.startswith(_YAML):
                    trail.log_response_object(body, yaml=True)
            trail.response_started(code)
            waiting = self._complete()
            if waiting is not None and not self.disconnected:
                self.held = True
                waiting.addBoth(lambda _: KubeRequest.respond(self, code, body, content_type))
                waiting.addErrback(self.crashed)
                return
        super().respond(code, body, content_type)

    def write(self, data: bytes) -> None:
        """As L{KubeRequest.write}."""
        trail = self.audit
        if trail is not None and not (trail.started or self.finished or self.disconnected):
            self._note_user()
            trail.response_started(self.code)
        super().write(data)

    def finish(self) -> None:
        """As L{KubeRequest.finish}, once the event is written."""
        if self.held:
            return
        trail = self.audit
        if trail is not None and not (trail.completed or self.finished or self.disconnected):
            trail.response_started(self.code)
            waiting = self._complete()
            if waiting is not None:
                self.held = True
                waiting.addBoth(lambda _: KubeRequest.finish(self))
                waiting.addErrback(self.crashed)
                return
        super().finish()

    def switch_protocols(
        self, fields: Iterable[tuple[bytes, bytes]], protocol: IProtocol, end: Callable[[], object] | None = None
    ) -> bool:
        """As L{KubeRequest.switch_protocols}; the event is completed when the connection ends."""
        trail = self.audit
        if trail is not None and not (trail.started or self.finished or self.disconnected or self.held):
            self._note_user()
            trail.response_started(101)
        return super().switch_protocols(fields, protocol, end)

    def processingFailed(self, reason: Failure) -> Failure:
        """As L{KubeRequest.processingFailed}."""
        self.panic(reason)
        return super().processingFailed(reason)

    def panic(self, reason: Failure) -> None:
        """A bug ends this request."""
        if self.audit is not None:
            self._note_user()
            self.audit.panic(reason.getErrorMessage())

    def connectionLost(self, reason: Failure) -> None:
        """The client has gone before the answer was finished."""
        super().connectionLost(reason)
        trail = self.audit
        if trail is None or trail.completed:
            return
        if trail.started or trail.long_running or self.method in (b"GET", b"HEAD"):
            self._complete()
        else:
            # What was begun goes on, and what came of it is worth telling.
            self.site.reactor.callLater(DISCONNECTED_WRITE_TIMEOUT, self._complete)

    def _complete(self) -> Deferred[bool] | None:
        self._note_user()
        assert self.audit is not None, "only what is told of is completed"
        return self.audit.response_complete()

    def _note_user(self) -> None:
        trail = self.audit
        assert trail is not None, "only requests with an audit event are completed"
        if self.user is not trail.metadata.user and trail.impersonated is None:
            trail.impersonated = self.user
            trail.constraint = self.impersonation_constraint

    def _audit_rejected(self, code: int) -> None:
        """Tell of a request that was answered before it was known whose it is."""
        refusal = self._error_status
        if refusal is None or code not in (400, 401) or self.user is not None or self.finished or self.disconnected:
            return
        self._error_status = None
        if not hasattr(self, "info"):
            # It is none of the API's: somebody in front of the filters has answered.
            return
        trail = self.auditor.begin_audit(self, None)
        if trail is not None:
            for key, value, level in self._early_annotations:
                trail.annotate(key, value, level)
            trail.set_response_status(refusal)
            trail.log_response_object(orjson.dumps(refusal))
            trail.authentication_failed(code)

    def _is_object(self) -> bool:
        """Whether what is answered has a kind: it does below the paths of the API, but for OpenAPI and the like."""
        path = self.path
        return path.startswith(b"/api") and path[4:5] in (b"", b"/", b"s")
