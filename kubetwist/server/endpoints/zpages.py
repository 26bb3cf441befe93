"""
The common part of Kubernetes' z-pages for debugging; see C{statusz} and C{flagz}.

@see: kubernetes/component-base, C{zpages}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import orjson

from klein import Klein

from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...http.negotiation import encode_yaml, parse_accept
from ...http.request import TEXT, KubeRequest
from ...resources.routing import add_route, new_app

#: The component, in all pages.
NAME: Final = "apiserver"
#: The lines that follow the title of a page in plain text.
WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for"
    " debugging purposes only.\n"
)
_MEDIA: Final = ("application/json", "application/yaml", "text/plain")
_GROUP: Final = "config.k8s.io"


class ZPage:
    """One z-page: text, or an object if C{Accept} requests its kind."""

    def __init__(self, kind: str, text: Callable[[], str], content: Callable[[], Mapping[str, JSONValue]]) -> None:
        """
        @param kind: The kind of the object, and in lower case its path: C{"Statusz"}.
        @param text: Returns the page as text.
        @param content: Returns the fields of the object, without kind, version and metadata.
        """
        self._kind = kind
        self._text = text
        self._content = content

    def make_app(self) -> Klein:
        """Return the Klein app; it accepts any method, as the reference does."""
        app = new_app()
        add_route(app, None, f"/{self._kind.lower()}", self._respond)
        return app

    def _respond(self, request: KubeRequest) -> None:
        media, version = self._negotiate((request.getHeader(b"accept") or b"").decode("latin-1"))
        if media == "text/plain":
            request.respond(200, self._text().encode(), TEXT)
            return
        document = {
            "kind": self._kind,
            "apiVersion": f"{_GROUP}/{version}",
            "metadata": {"name": NAME},
            **self._content(),
        }
        if version == "v1alpha1":
            kind = self._kind.lower()
            request.warn(f"This version of the {kind} endpoint is deprecated. Please use a newer version.")
        if media == "application/yaml":
            request.respond(200, encode_yaml(document), b"application/yaml")
        else:
            request.respond(200, orjson.dumps(document) + b"\n", b"application/json")

    def _negotiate(self, accept: str) -> tuple[str, str]:
        """Return the media type and the version of the object; @raise APIStatusError: None is accepted."""
        if not accept.strip():
            return "text/plain", ""
        for clause in parse_accept(accept):
            for media in _MEDIA:
                kind, _, subtype = media.partition("/")
                if clause.type not in (kind, "*") or clause.subtype not in (subtype, "*"):
                    continue
                if clause.params.get("sv") or clause.params.get("stream"):
                    continue
                view = tuple(clause.params.get(name) for name in ("g", "v", "as"))
                if media == "text/plain":
                    if view == (None, None, None):
                        return media, ""
                elif view[0] == _GROUP and view[1] in ("v1alpha1", "v1beta1") and view[2] == self._kind:
                    return media, str(view[1])
        raise APIStatusError.not_acceptable(_MEDIA)
