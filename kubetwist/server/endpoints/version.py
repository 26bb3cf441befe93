"""C{/version}: the emulated Kubernetes version."""

from __future__ import annotations

import orjson

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ...api.errors import APIStatusError
from ...http.negotiation import check_router
from ...http.request import KubeRequest
from ..version import version_document


class VersionResource(Resource):
    """Resource that returns the emulated Kubernetes version."""

    isLeaf = True

    def __init__(self, kubernetes_version: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self._body = orjson.dumps(version_document(kubernetes_version), option=orjson.OPT_INDENT_2)

    def render(self, request: KubeRequest) -> int:
        """Answer GET on the path itself."""
        try:
            if request.info.path.strip("/") != "version":
                raise APIStatusError.path_not_found()
            if request.method != b"GET":
                raise APIStatusError.method_not_allowed()
            check_router(request.header(b"accept"), ("application/json",))
        except APIStatusError as error:
            request.fail(error)
        else:
            request.respond(200, self._body, b"application/json")
        return NOT_DONE_YET
