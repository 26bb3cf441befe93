"""
The last requests and log lines of a server in this process, for the reports of failed tests.

Times are of L{time.perf_counter}, which all processes of a machine share, so that a test need not ask the server for
the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from ..server.service import KubeAPIService
    from ._activityrecorder import ActivityRecorder
    from ._inprocess import InProcessServer


@frozen
class ServedRequest:
    """
    A request that was answered.

    @ivar time: Its end, in POSIX seconds.
    @ivar user: The user, with the impersonator; C{""} before authentication.
    @ivar verb: As in L{kubetwist.testing.requests.RecordedRequest}.
    @ivar code: The status; 0 if the client has disconnected before the response.
    @ivar duration: Seconds.
    """

    time: float
    user: str
    verb: str
    path: str
    code: int
    duration: float


@frozen
class RecentActivity:
    """
    What a server did since a moment.

    @ivar lines: Lines of its log.
    @ivar namespaces: The namespaces in which clients wrote.
    """

    requests: tuple[ServedRequest, ...]
    lines: tuple[str, ...]
    namespaces: tuple[str, ...]


class ActivityMixin:
    """Adds a record of the activity to servers on the reactor."""

    _service: KubeAPIService | None
    _activity: ActivityRecorder | None = None

    def record_activity(self) -> None:
        """Keep the last requests and log lines from now on, for the report of a failed test. Idempotent."""
        if self._activity is None:
            assert self._service is not None and self._service.server is not None, "the server does not run"
            from ._activityrecorder import ActivityRecorder

            self._activity = ActivityRecorder(self._service.server.site)

    def activity_since(self, moment: float) -> RecentActivity:
        """
        Return the last requests and log lines since a moment.

        @param moment: A value of L{time.perf_counter}, of any process of this machine.
        """
        return RecentActivity((), (), ()) if self._activity is None else self._activity.since(moment)

    def _stop_activity(self) -> None:
        activity, self._activity = self._activity, None
        if activity is not None:
            activity.stop()


class BlockingActivityMixin:
    """Adds a record of the activity to servers whose reactor runs in another thread."""

    _server: InProcessServer

    if TYPE_CHECKING:

        def _do(self, function: Any, *arguments: Any, **more: Any) -> Any:
            """Call a function in the thread of the reactor."""

    def record_activity(self) -> None:
        """As L{ActivityMixin.record_activity}."""
        self._do(self._server.record_activity)

    def activity_since(self, moment: float) -> RecentActivity:
        """As L{ActivityMixin.activity_since}."""
        found: RecentActivity = self._do(self._server.activity_since, moment)
        return found
