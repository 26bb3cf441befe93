"""C{/healthz}, C{/livez} and C{/readyz}: the health of the server, in total and per check."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable

from attrs import frozen

from klein import Klein
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ...http.request import TEXT, KubeRequest
from ...metrics.health import HealthMetrics
from ...resources.routing import add_route, new_app

_log = Logger()


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
        except CancelledError:
            # The client has disconnected.
            raise
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


class HealthEndpoints:
    """The health paths, and the checks below them."""

    def __init__(
        self, checks: Mapping[str, Callable[[], Sequence[HealthCheck]]], metrics: HealthMetrics | None = None
    ) -> None:
        """
        @param checks: For each claimed path, such as C{"readyz"}, the function that returns its checks in the order of
            the output; they may change while the server runs.
        @param metrics: Counts the results of checks.
        """
        self._checks = checks
        self._metrics = metrics

    def make_app(self) -> Klein:
        """Return the Klein app; it accepts any method, as the reference does."""
        app = new_app()
        add_route(app, None, "/<path>", self._all, slashes=False)
        add_route(app, None, "/<path>/<rest:name>", self._one)
        return app

    async def _problem(self, path: str, check: HealthCheck) -> str | None:
        problem = await check.problem()
        if self._metrics is not None and check.check is not None:
            self._metrics.checked(check.name, path, problem is None)
        return problem

    async def _one(self, request: KubeRequest, path: str, name: str) -> None:
        check = next((check for check in self._checks[path]() if check.name == name), None)
        if check is None:
            request.respond_text(404, "404 page not found\n")
            return
        problem = await self._problem(path, check)
        if check.check is None:
            request.respond_text(200, NOT_APPLICABLE)
        elif problem is None:
            request.respond(200, b"ok", TEXT)
        else:
            request.respond_text(500, f"internal server error: {problem}\n")

    async def _all(self, request: KubeRequest, path: str) -> None:
        excluded = set(request.query.get("exclude", ()))
        unknown = set(excluded)
        lines: list[str] = []
        failed: list[str] = []
        for check in self._checks[path]():
            unknown.discard(check.name)
            if check.check is None:
                lines.append(f"[+]{check.name} {NOT_APPLICABLE}\n")
                continue
            if check.name in excluded:
                lines.append(f"[+]{check.name} excluded: ok\n")
                continue
            problem = await self._problem(path, check)
            if problem is None:
                lines.append(f"[+]{check.name} ok\n")
            else:
                lines.append(f"[-]{check.name} failed: reason withheld\n")
                failed.append(f"{check.name}: {problem}")
        if unknown:
            names = ",".join(json.dumps(name, ensure_ascii=False) for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            _log.info("{name} check failed: {failed}", name=path, failed="; ".join(failed))
            request.respond_text(500, f"{''.join(lines)}{path} check failed\n")
        elif "verbose" in request.query:
            request.respond_text(200, f"{''.join(lines)}{path} check passed\n")
        else:
            request.respond_text(200, "ok")
