"""The auditor of a server: applies the audit policy and passes events to the backends."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from ..api.resource import UserInfo
from ..interfaces import IAuditBackend
from .errors import Counts
from .event import Event, RequestMetadata, peer_ip
from .policy import NONE, Policy
from .trail import AuditContext

if TYPE_CHECKING:
    from ..http.request import KubeRequest
    from .auditedrequest import AuditedRequest

_PEER = "audit peer"


class Auditor:
    """
    Applies the audit policy to requests and passes their events to the backends.

    @ivar strict: Whether a backend rejects requests whose first event it cannot write.
    @ivar counts: Numbers of events, errors and rejected requests.
    """

    _log = Logger()

    def __init__(self, policy: Policy, backends: Sequence[IAuditBackend], strict: bool, counts: Counts) -> None:
        self._policy = policy
        self._backends = backends
        self._process = [backend.process for backend in backends]
        self.strict = strict
        self.counts = counts

    def set_policy(self, policy: Policy) -> None:
        """Replace the policy; it applies to later requests."""
        self._policy = policy

    def start(self) -> None:
        """Start the backends."""
        for backend in self._backends:
            backend.start()

    async def stop(self) -> None:
        """Write all pending events and stop the backends. There must be no more requests."""
        for backend in self._backends:
            try:
                await backend.stop()
            except Exception:
                self._log.failure("stopping an audit backend failed")

    def begin_audit(self, request: AuditedRequest, user: UserInfo | None) -> AuditContext | None:
        """
        Return the audit context of a request; L{None} if the policy has level C{None} for it.

        @param request: A request whose C{info} is set.
        @param user: The authenticated user; L{None} if authentication failed.
        """
        info = request.info
        config = self._policy.evaluate_policy_rule(info, user)
        self.counts.levels[config.level] += 1
        if config.level == NONE:
            return None
        fields = request.fields
        agent = fields.get(b"user-agent")
        metadata = RequestMetadata(
            config.level,
            request.audit_id,
            request.uri,
            info.verb,
            user,
            (_first(fields.get(b"x-forwarded-for")), _first(fields.get(b"x-real-ip"))),
            _peer(request),
            b"" if agent is None else agent[0],
            request.received or time(),
        )
        return AuditContext(metadata, info, config, self.emit)

    def emit(self, event: Event) -> Deferred[bool] | None:
        """
        Pass an event to all backends.

        @return: Fires with whether all blocking backends have written the event; L{None} without blocking backends.
        """
        self.counts.events += 1
        waiting = [one for one in (process(event) for process in self._process) if one is not None]
        if len(waiting) < 2:
            return waiting[0] if waiting else None
        return gatherResults(waiting).addCallback(all)


def _first(values: Sequence[bytes] | None) -> bytes | None:
    return None if values is None else values[0]


def _peer(request: KubeRequest) -> str:
    remembered = request.connection.remembered
    peer: str | None = remembered.get(_PEER)
    if peer is None:
        peer = remembered[_PEER] = peer_ip(getattr(request.client, "host", ""))
    return peer
