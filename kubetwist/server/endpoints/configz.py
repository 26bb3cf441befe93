"""C{/configz}: the values of all flags, for programs."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from klein import Klein

from ...api.jsontypes import JSONObject
from ...http.request import KubeRequest
from ...resources.mux import DelegatingMux
from ...resources.routing import RoutedApp, add_route, new_app
from ..config import ServerConfig
from .zpages import NAME


class ConfigEndpoint:
    """
    C{/configz}: the flags as JSON, with typed values.

    kube-apiserver has no such page; other components of Kubernetes return a document by component.
    """

    def __init__(self, values: Callable[[], JSONObject]) -> None:
        self._values = values

    def make_app(self) -> Klein:
        """Return the Klein app; it accepts any method, like the related pages."""
        app = new_app()
        add_route(app, None, "/configz", self._respond)
        return app

    def _respond(self, request: KubeRequest) -> None:
        document = {NAME: self._values()}
        request.respond(200, orjson.dumps(document) + b"\n", b"application/json")


def install_configz(mux: DelegatingMux, config: ServerConfig) -> None:
    """Register the page if the feature gate of C{/flagz} is enabled."""
    if config.features.enabled("ComponentFlagz"):
        mux.handle("/configz", RoutedApp(ConfigEndpoint(config.options.typed_values).make_app), exposed=False)
