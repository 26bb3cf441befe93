"""C{/configz}: the values of all flags, for programs."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ...api.jsontypes import JSONObject
from ...http.request import KubeRequest
from ...resources.mux import DelegatingMux
from ..config import ServerConfig
from .zpages import NAME, is_enabled


class ConfigPage(Resource):
    """
    C{/configz}: the flags as JSON, with typed values.

    kube-apiserver has no such page; other components of Kubernetes return a document by component.
    """

    isLeaf = True

    def __init__(self, values: Callable[[], JSONObject]) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self._values = values

    def render(self, request: KubeRequest) -> int:
        """Answer any method, like the related pages."""
        document = {NAME: self._values()}
        request.respond(200, orjson.dumps(document) + b"\n", b"application/json")
        return NOT_DONE_YET


def install_configz(mux: DelegatingMux, config: ServerConfig) -> None:
    """Register the page if the feature gate of C{/flagz} is enabled."""
    if is_enabled(config, "ComponentFlagz"):
        mux.handle("/configz", ConfigPage(config.options.typed_values), exposed=False)
