"""C{/version}: the emulated Kubernetes version."""

from __future__ import annotations

import orjson

from klein import Klein

from ...api.featuregates import FeatureGates
from ...http.negotiation import check_router
from ...http.request import KubeRequest
from ...resources.routing import add_route, new_app, path_not_found
from ..version import version_document


class VersionEndpoint:
    """Returns the emulated Kubernetes version."""

    def __init__(self, features: FeatureGates) -> None:
        self._features = features

    def make_app(self) -> Klein:
        """Return the Klein app."""
        self._body = orjson.dumps(version_document(self._features), option=orjson.OPT_INDENT_2)
        app = new_app()
        add_route(app, "GET", "/version", self._respond)
        add_route(app, None, "/version/<rest:path>", path_not_found)
        return app

    def _respond(self, request: KubeRequest) -> None:
        check_router(request.header(b"accept"), ("application/json",))
        request.respond(200, self._body, b"application/json")
