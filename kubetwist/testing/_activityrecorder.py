"""Records the last requests and log lines of one server in this process: see L{kubetwist.testing._activity}."""

from __future__ import annotations

from collections import deque
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Final, cast

from twisted.logger import ILogObserver, LogEvent, LogLevel, globalLogPublisher

from ..logs.redaction import redact_uri
from ..logs.structured import as_text
from ._activity import RecentActivity, ServedRequest
from ._objectwatch import USER_AGENT
from .expectations import WRITE_VERBS

if TYPE_CHECKING:
    from ..http.request import KubeRequest
    from ..http.site import KubeSite

#: Numbers of requests, log lines and namespaces that are kept.
MAX_REQUESTS: Final = 50
MAX_LINES: Final = 200
MAX_NAMESPACES: Final = 100
_MAX_LINE_LENGTH: Final = 2_000
_AGENT: Final = USER_AGENT.encode()


class ActivityRecorder:
    """Keeps what L{RecentActivity} has, for one server. Requests become text only when they are read."""

    def __init__(self, site: KubeSite) -> None:
        self._site = site
        self._observer = site.ended
        self._requests: deque[tuple[float, float, Any, Any, Any, bytes, bytes, int]] = deque(maxlen=MAX_REQUESTS)
        self._lines: deque[tuple[float, str]] = deque(maxlen=MAX_LINES)
        self._namespaces: dict[str, float] = {}
        site.ended = self._ended
        self._log_observer = cast(ILogObserver, self._logged)
        globalLogPublisher.addObserver(self._log_observer)

    def stop(self) -> None:
        """Stop recording."""
        self._site.ended = self._observer
        globalLogPublisher.removeObserver(self._log_observer)

    def _ended(self, request: KubeRequest) -> None:
        if self._observer is not None:
            self._observer(request)
        agent = request.fields.get(b"user-agent")
        if agent is not None and agent[0] == _AGENT:
            return
        now = perf_counter()
        info = getattr(request, "info", None)
        code = request.code if request.startedWriting else 0
        self._requests.append(
            (now, request.started_at, request.user, request.impersonator, info, request.method, request.uri, code)
        )
        if info is not None and info.namespace and info.verb in WRITE_VERBS:
            namespaces = self._namespaces
            # Moved to the end, so that the oldest one is first.
            namespaces.pop(info.namespace, None)
            namespaces[info.namespace] = now
            if len(namespaces) > MAX_NAMESPACES:
                del namespaces[next(iter(namespaces))]

    def _logged(self, event: LogEvent) -> None:
        level = event.get("log_level")
        if level is None or level < LogLevel.info:
            return
        text = as_text(event)
        if text:
            self._lines.append((perf_counter(), text.rstrip()[:_MAX_LINE_LENGTH]))

    def since(self, moment: float) -> RecentActivity:
        """
        Return what happened since a moment.

        @param moment: A value of L{time.perf_counter}.
        """
        offset = time() - perf_counter()
        requests = []
        for ended, started, user, impersonator, info, method, uri, code in self._requests:
            if ended < moment:
                continue
            name = "" if user is None else user.name
            if impersonator is not None:
                name += f" (by {impersonator.name})"
            verb = method.decode("latin-1").lower() if info is None else info.verb
            path = redact_uri(uri, opaque=info is not None and info.subresource == "proxy")
            requests.append(ServedRequest(ended + offset, name, verb, path, code, ended - started))
        return RecentActivity(
            tuple(requests),
            tuple(text for at, text in self._lines if at >= moment),
            tuple(namespace for namespace, at in self._namespaces.items() if at >= moment),
        )
