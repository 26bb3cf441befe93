"""C{/healthz}, C{/livez} and C{/readyz}: the health of the server, in total and per check."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from inspect import isawaitable
from typing import Any

from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ...http.request import TEXT, KubeRequest
from ...metrics.health import HealthMetrics

_log = Logger()

_Answer = Coroutine["Deferred[Any]", Any, None]


class Unhealthy(Exception):
    """A check has failed; the text appears in the log and at the path of that check."""


@frozen
class HealthCheck:
    """
    One check.

    @ivar check: Returns, now or later, or raises L{Unhealthy}; L{None} if the check is not applicable: clients may ask
        for it, but this server has nothing that it could check.
    """

    name: str
    check: Callable[[], object] | None

    async def problem(self) -> str | None:
        """Return the problem; L{None} without one, and if the check is not applicable."""
        if self.check is None:
            return None
        try:
            result = self.check()
            if isawaitable(result):
                await result
        except Unhealthy as error:
            return str(error)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None


def ping() -> None:
    """Pass: the answer shows that the server can answer."""


def write_log() -> None:
    """Log an event; the log is written in the thread of requests, so a blocked log blocks the answer."""
    _log.debug("checking the log")


PING = HealthCheck("ping", ping)
LOG = HealthCheck("log", write_log)
#: The text of a check that is not applicable.
NOT_APPLICABLE = "not applicable"


class HealthResource(Resource):
    """
    One of the three paths, and the checks below it.

    @ivar checks: Returns the checks of this path; may change while the server runs.
    """

    isLeaf = True

    def __init__(
        self, name: str, checks: Callable[[], Sequence[HealthCheck]], metrics: HealthMetrics | None = None
    ) -> None:
        """
        @param name: C{"readyz"}.
        @param checks: Returns the checks in the order of the output.
        @param metrics: Counts the results of checks.
        """
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self._name = name
        self._checks = checks
        self._metrics = metrics

    async def _problem(self, check: HealthCheck) -> str | None:
        problem = await check.problem()
        if self._metrics is not None and check.check is not None:
            self._metrics.checked(check.name, self._name, problem is None)
        return problem

    def render(self, request: KubeRequest) -> int:
        """Answer any method, as the reference does."""
        subpath = request.info.path.removeprefix(f"/{self._name}")
        if not subpath:
            _answer_when_done(self._all(request), request)
            return NOT_DONE_YET
        for check in self._checks():
            if subpath == f"/{check.name}":
                _answer_when_done(self._one(request, check), request)
                return NOT_DONE_YET
        request.respond_text(404, "404 page not found\n")
        return NOT_DONE_YET

    async def _one(self, request: KubeRequest, check: HealthCheck) -> None:
        problem = await self._problem(check)
        if check.check is None:
            request.respond_text(200, NOT_APPLICABLE)
        elif problem is None:
            request.respond(200, b"ok", TEXT)
        else:
            request.respond_text(500, f"internal server error: {problem}\n")

    async def _all(self, request: KubeRequest) -> None:
        excluded = set(request.query.get("exclude", ()))
        unknown = set(excluded)
        lines: list[str] = []
        failed: list[str] = []
        for check in self._checks():
            unknown.discard(check.name)
            if check.check is None:
                lines.append(f"[+]{check.name} {NOT_APPLICABLE}\n")
                continue
            if check.name in excluded:
                lines.append(f"[+]{check.name} excluded: ok\n")
                continue
            problem = await self._problem(check)
            if problem is None:
                lines.append(f"[+]{check.name} ok\n")
            else:
                lines.append(f"[-]{check.name} failed: reason withheld\n")
                failed.append(f"{check.name}: {problem}")
        if unknown:
            names = ",".join(json.dumps(name, ensure_ascii=False) for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            _log.info("{name} check failed: {failed}", name=self._name, failed="; ".join(failed))
            request.respond_text(500, f"{''.join(lines)}{self._name} check failed\n")
        elif "verbose" in request.query:
            request.respond_text(200, f"{''.join(lines)}{self._name} check passed\n")
        else:
            request.respond_text(200, "ok")


def _answer_when_done(answer: _Answer, request: KubeRequest) -> None:
    Deferred.fromCoroutine(answer).addErrback(request.handle_failure)
