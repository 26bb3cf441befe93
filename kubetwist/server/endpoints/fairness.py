"""C{/debug/api_priority_and_fairness}: queued requests and occupied seats."""

from __future__ import annotations

from klein import Klein
from twisted.internet.interfaces import IReactorTime

from ...flowcontrol.controller import FlowControl
from ...flowcontrol.dumps import dump_levels, dump_queues, dump_requests
from ...http.request import TEXT, KubeRequest
from ...resources.routing import add_route, new_app

PATH = "/debug/api_priority_and_fairness"


class FlowControlDebugging:
    """Three tables, for users with access to C{/debug}."""

    def __init__(self, flow: FlowControl, reactor: IReactorTime) -> None:
        self._flow = flow
        self._reactor = reactor

    def make_app(self) -> Klein:
        """Return the Klein app; it accepts any method, as the reference does."""
        app = new_app()
        add_route(app, None, f"{PATH}/dump_priority_levels", self._levels, slashes=False)
        add_route(app, None, f"{PATH}/dump_queues", self._queues, slashes=False)
        add_route(app, None, f"{PATH}/dump_requests", self._requests, slashes=False)
        return app

    def _levels(self, request: KubeRequest) -> None:
        request.respond(200, dump_levels(self._flow).encode(), TEXT)

    def _queues(self, request: KubeRequest) -> None:
        request.respond(200, dump_queues(self._flow).encode(), TEXT)

    def _requests(self, request: KubeRequest) -> None:
        details = bool((request.query.get("includeRequestDetails") or ("",))[0])
        request.respond(200, dump_requests(self._flow, details, self._reactor.seconds()).encode(), TEXT)
