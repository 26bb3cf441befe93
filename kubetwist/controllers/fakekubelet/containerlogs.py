"""
Logs of simulated containers, computed from the script of an image and the times of a run. Nothing is stored.

@see: kubernetes, C{pkg/kubelet/kuberuntime/logs}: options and timestamps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor
from typing import Final

from attrs import frozen

from ...api.resource import JSONObject
from ...api.times import format_time, seconds_since_epoch
from ..fakeimages import LogScript

#: Maximum number of lines of a log; older lines are removed, as by the rotation of a kubelet's log files.
MAX_LINES: Final = 100_000


class NoLog(Exception):
    """A container has no log; the text is the kubelet's."""


@frozen
class Run:
    """
    A run of a container.

    @ivar number: Number of restarts before it.
    @ivar started: Time of its start in POSIX seconds.
    @ivar finished: Time of its end; L{None} while it runs.
    """

    number: int
    started: float
    finished: float | None


@frozen
class LogRequest:
    """
    The options of a request for a log.

    @ivar since: Time of the first line, in POSIX seconds.
    @ivar tail: Maximum number of lines from the end; L{None} for all.
    @ivar limit: Maximum number of bytes; L{None} for all.
    """

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float = 0.0
    tail: int | None = None
    limit: int | None = None

    @classmethod
    def parse(cls, query: Mapping[str, Sequence[str]], now: float) -> LogRequest:
        """
        Parse the query of a request to the kubelet.

        @raise ValueError: A number or time is invalid.
        """
        values = {name: texts[0] for name, texts in query.items() if texts}
        since = 0.0
        if "sinceSeconds" in values:
            since = now - int(values["sinceSeconds"])
        elif "sinceTime" in values:
            since = seconds_since_epoch(values["sinceTime"])
        return cls(
            values.get("follow") == "true",
            values.get("previous") == "true",
            values.get("timestamps") == "true",
            since,
            int(values["tailLines"]) if "tailLines" in values else None,
            int(values["limitBytes"]) if "limitBytes" in values else None,
        )


def find_run(pod: JSONObject, container: str, *, previous: bool) -> Run:
    """
    Return the run of a container whose log is requested.

    @param pod: The pod.
    @param container: The name of the container.
    @param previous: Whether the run before the last restart is requested.
    @raise NoLog: There is no such run.
    """
    name = pod["metadata"]["name"]
    status = container_status(pod, container)
    state: JSONObject = status.get("state") or {}
    last: JSONObject = (status.get("lastState") or {}).get("terminated") or {}
    restarts: int = status.get("restartCount") or 0
    if previous:
        if not last:
            raise NoLog(f'previous terminated container "{container}" in pod "{name}" not found')
        return _terminated(last, restarts if "waiting" in state else restarts - 1)
    if "running" in state:
        return Run(restarts, seconds_since_epoch(state["running"]["startedAt"]), None)
    if "terminated" in state:
        return _terminated(state["terminated"], restarts)
    if last:
        return _terminated(last, restarts)
    reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
    if reason in ("ImagePullBackOff", "ErrImagePull"):
        raise NoLog(f'container "{container}" in pod "{name}" is waiting to start: trying and failing to pull image')
    raise NoLog(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


def container_status(pod: JSONObject, container: str) -> JSONObject:
    """Return the status of a container of any kind; empty if it has none."""
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for one in status.get(field) or ():
            if one["name"] == container:
                return one  # type: ignore[no-any-return] # decoded JSON
    return {}


def _terminated(state: JSONObject, restarts: int) -> Run:
    finished = seconds_since_epoch(state["finishedAt"])
    started = state.get("startedAt")
    return Run(restarts, seconds_since_epoch(started) if started else finished, finished)


class ContainerLog:
    """The log of a run as a sequence of lines, each with its time."""

    def __init__(self, script: LogScript, run: Run) -> None:
        self._script = script
        self._run = run

    def count(self, now: float) -> int:
        """Return the number of lines that are written at a time."""
        script, run = self._script, self._run
        end = now if run.finished is None else run.finished
        if end < run.started:
            return 0
        repeated = floor((end - run.started) / script.every + 1e-9) if script.every else 0
        return len(script.lines) + repeated

    def time(self, index: int) -> float:
        """Return the time of a line."""
        repeated = index + 1 - len(self._script.lines)
        return self._run.started + max(0, repeated) * self._script.every

    def text(self, index: int) -> str:
        """Return a line, without line end."""
        lines = self._script.lines
        if index < len(lines):
            return lines[index]
        return self._script.line.replace("{n}", str(index + 1 - len(lines)))

    def first(self, request: LogRequest, now: float) -> int:
        """Return the index of the first line that a request selects."""
        count = self.count(now)
        first = max(0, count - MAX_LINES)
        since = request.since - self._run.started
        if since > 0:
            # The lines of the start are older.
            every = self._script.every
            repeated = max(1, ceil(since / every - 1e-9)) if every else 0
            first = max(first, len(self._script.lines) + repeated - 1 if every else count)
        if request.tail is not None:
            first = max(first, count - request.tail)
        return first

    def encoded(self, first: int, end: int, *, timestamps: bool) -> Iterator[bytes]:
        """Yield lines as they are sent."""
        for index in range(first, end):
            prefix = f"{_timestamp(self.time(index))} " if timestamps else ""
            yield f"{prefix}{self.text(index)}\n".encode()

    def next_wait(self, index: int, now: float) -> float | None:
        """Return the seconds until a line is written; L{None} if it never is."""
        if self._run.finished is not None or (index >= len(self._script.lines) and not self._script.every):
            return None
        return max(0.0, self.time(index) - now)


def _timestamp(seconds: float) -> str:
    whole = floor(seconds)
    return f"{format_time(whole).removesuffix('Z')}.{round((seconds - whole) * 1e6):06d}000Z"
