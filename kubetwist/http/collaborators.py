"""Interfaces of packages above the HTTP engine that requests use: the scheduler of expensive work, and the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple

from twisted.internet.defer import Deferred

from ..api.authorization import Verdict
from ..api.resource import JSONObject

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class WorkScheduler(Protocol):
    """
    Scheduler of expensive work in small pieces, between which other requests are served.

    @see: L{kubetwist.flowcontrol.scheduler.CooperativeScheduler}, which implements it.
    """

    @property
    def has_cheap_requests(self) -> bool:
        """Return whether other requests wait, so that pieces must be small."""

    def run_or_defer(self, work: Callable[[], object]) -> None:
        """Run C{work} now, or in a later iteration of the reactor if this one's time is spent."""

    def wait_for_slot(self) -> Deferred[None]:
        """Return a Deferred that fires in a later iteration of the reactor, when there is time for work."""


class AuditTrail(Protocol):
    """
    The audit event of one request, as filters and handlers add to it.

    @ivar times: Seconds by what they were spent on, see L{kubetwist.api.latency}.
    @see: L{kubetwist.audit.trail.AuditContext}, which implements it.
    """

    times: dict[str, float]

    @property
    def wants_request_object(self) -> bool:
        """Return whether the event contains the object of the request."""

    @property
    def wants_response_object(self) -> bool:
        """Return whether the event contains the object of the response."""

    def allowed_by(self, verdict: Verdict) -> None:
        """Record that authorization allowed the request."""

    def refused_by(self, verdict: Verdict) -> None:
        """Record that authorization denied the request, or failed."""

    def log_request_object(self, meta: JSONObject, encode: Callable[[], bytes]) -> None:
        """
        Record the object of the request.

        @param meta: Its metadata.
        @param encode: Returns it as JSON; called at once, and only if the event contains it.
        """

    def log_request_patch(self, data: bytes, *, yaml: bool = False) -> None:
        """Record the body of the request if it is not an object, such as a patch."""

    def log_response_object(self, data: bytes, *, yaml: bool = False) -> None:
        """Record the object, list or Status of the response."""


class DeferToThread(Protocol):
    """
    Function that calls another function with arguments in a thread.

    @see: L{kubetwist.flowcontrol.computing.Computing}, which calls one function at a time.
    """

    def __call__(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Deferred[Result]:
        """Return a Deferred that fires with the result of the function."""
