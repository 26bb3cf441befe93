"""
C{/statusz}, C{/flagz} and C{/configz}: what runs here, and with which flags.

@see: kubernetes/apiserver, C{pkg/server/statusz}, C{pkg/server/flagz}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import gmtime, strftime, time
from typing import TYPE_CHECKING, Final

import orjson

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...http.negotiation import encode_yaml, parse_accept
from ...http.request import TEXT, KubeRequest
from ...resources.mux import Layer
from ..version import git_version, version_document

if TYPE_CHECKING:
    from ..config import ServerConfig

_NAME: Final = "apiserver"
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for"
    " debugging purposes only.\n"
)
_MEDIA: Final = ("application/json", "application/yaml", "text/plain")
_GROUP: Final = "config.k8s.io"
_NOT_LISTED: Final = frozenset(("apis", "api", "openid", "openapi", ".well-known", "index.html"))


class ZPage(Resource):
    """One of them: as text, or as an object for who asks for one by its kind."""

    isLeaf = True

    def __init__(self, kind: str, text: Callable[[], str], content: Callable[[], Mapping[str, JSONValue]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kind = kind
        self._text = text
        self._content = content

    def render(self, request: KubeRequest) -> int:
        """Answer any method, as the reference does."""
        try:
            media, version = self._negotiate((request.getHeader(b"accept") or b"").decode("latin-1"))
        except APIStatusError as error:
            request.fail(error)
            return NOT_DONE_YET
        if media == "text/plain":
            request.respond(200, self._text().encode(), TEXT)
            return NOT_DONE_YET
        document = {
            "kind": self._kind,
            "apiVersion": f"{_GROUP}/{version}",
            "metadata": {"name": _NAME},
            **self._content(),
        }
        if version == "v1alpha1":
            kind = self._kind.lower()
            request.warn(f"This version of the {kind} endpoint is deprecated. Please use a newer version.")
        if media == "application/yaml":
            request.respond(200, encode_yaml(document), b"application/yaml")
        else:
            request.respond(200, orjson.dumps(document) + b"\n", b"application/json")
        return NOT_DONE_YET

    def _negotiate(self, accept: str) -> tuple[str, str]:
        """The media type of the answer, and the version of the object; @raise APIStatusError: None is accepted."""
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


def status_of(version: str, paths: list[str], begun: float, now: float) -> JSONObject:
    """What C{/statusz} tells."""
    folders = {path.split("/")[1] for path in paths if path.startswith("/")}
    return {
        "startTime": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(begun)),
        "uptimeSeconds": max(0, int(now - begun)),
        "goVersion": version_document(version)["goVersion"],
        "binaryVersion": git_version(version)[1:],
        "emulationVersion": version,
        "paths": sorted(f"/{folder}" for folder in folders - _NOT_LISTED if folder),
    }


def status_text(status: Mapping[str, JSONValue], begun: float) -> str:
    """Likewise, for people."""
    minutes, seconds = divmod(status["uptimeSeconds"], 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"\n{_NAME} statusz\n{_WARNING}"
        f"\nStarted: {strftime('%a %b %e %H:%M:%S UTC %Y', gmtime(begun))}\n"
        f"Up: {hours} hr {minutes:02d} min {seconds:02d} sec\n"
        f"Go version: {status['goVersion']}\n"
        f"Binary version: {status['binaryVersion']}\n"
        f"Emulation version: {status['emulationVersion']}\n"
        f"Paths: {' '.join(status['paths'])}\n"
    )


class ConfigPage(Resource):
    """
    C{/configz}: the flags for programs: values have JSON's types.

    kube-apiserver has no such page; those components of Kubernetes that have one give a document by component.
    """

    isLeaf = True

    def __init__(self, values: Callable[[], JSONObject]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._values = values

    def render(self, request: KubeRequest) -> int:
        """Answer any method, as the pages beside it."""
        document = {_NAME: self._values()}
        request.respond(200, orjson.dumps(document) + b"\n", b"application/json")
        return NOT_DONE_YET


def flags_text(flags: Mapping[str, str]) -> str:
    """What C{/flagz} tells."""
    lines = "".join(f"{name}={' '.join(value.splitlines())}\n" for name, value in flags.items())
    return f"\n{_NAME} flagz\n{_WARNING}{lines}"


def claim_zpages(layer: Layer, config: ServerConfig, paths: Callable[[], list[str]]) -> None:
    """Serve them, where their feature gates are on: by default from 1.36 on."""
    gates: Mapping[str, bool] = config.options["feature-gates"]
    default = int(config.kubernetes_version.partition(".")[2]) >= 36
    begun = time()
    if gates.get("ComponentFlagz", default):
        flags: Callable[[], Mapping[str, str]] = config.options.shown_values
        layer.claim("/flagz", ZPage("Flagz", lambda: flags_text(flags()), lambda: {"flags": flags()}))
        layer.claim("/configz", ConfigPage(config.options.typed_values), listed=False)
    if gates.get("ComponentStatusz", default):

        def status() -> JSONObject:
            return status_of(config.kubernetes_version, paths(), begun, time())

        layer.claim("/statusz", ZPage("Statusz", lambda: status_text(status(), begun), status))
