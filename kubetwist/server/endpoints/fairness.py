"""C{/debug/api_priority_and_fairness}: queued requests and occupied seats."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ...flowcontrol.controller import FlowControl
from ...flowcontrol.dumps import dump_levels, dump_queues, dump_requests
from ...http.request import TEXT, KubeRequest

PATH = "/debug/api_priority_and_fairness"


class FlowControlDebugResource(Resource):
    """Three tables, for users with access to C{/debug}."""

    isLeaf = True

    def __init__(self, flow: FlowControl, reactor: IReactorTime) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self._flow = flow
        self._reactor = reactor

    def render(self, request: KubeRequest) -> int:
        """Answer any method, as the reference does."""
        name = request.info.path.removeprefix(f"{PATH}/")
        if name == "dump_priority_levels":
            text = dump_levels(self._flow)
        elif name == "dump_queues":
            text = dump_queues(self._flow)
        elif name == "dump_requests":
            details = bool((request.query.get("includeRequestDetails") or ("",))[0])
            text = dump_requests(self._flow, details, self._reactor.seconds())
        else:
            request.respond_text(404, "404 page not found\n")
            return NOT_DONE_YET
        request.respond(200, text.encode(), TEXT)
        return NOT_DONE_YET
