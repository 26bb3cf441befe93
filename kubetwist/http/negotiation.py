"""
Negotiate the media types of requests and responses: C{Accept}, C{Content-Type}, and YAML.

The reference evaluates C{Accept} twice. Its router compares media types without parameters, supports only the wildcard
C{*/*}, and lists the available types in a separate error. Handlers then evaluate clauses by weight, with parameters.
Both steps are implemented here. Results are cached by header, as clients send few different ones.

L{kubetwist.resources.openapi.endpoints} has separate rules for its documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from ..api.errors import APIStatusError
from ..api.jsontypes import JSONValue

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
#: Available if the server enables it.
CBOR: Final = "application/cbor"

#: The media types that the router's errors list. Custom resources have no protobuf, but clients only log this text.
MEDIA_TYPES: Final = (JSON, YAML, PROTOBUF)
_FORMS: Final = {JSON: "json", YAML: "yaml", PROTOBUF: "protobuf", CBOR: "cbor"}
STREAM_TYPES: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
#: The same of servers with CBOR.
MEDIA_TYPES_WITH_CBOR: Final = (*MEDIA_TYPES, CBOR)
STREAM_TYPES_WITH_CBOR: Final = (*STREAM_TYPES, f"{CBOR}-seq")

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
APPLY_CBOR_PATCH: Final = "application/apply-patch+cbor"
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
#: Custom resources do not support strategic merge patches.
CUSTOM_PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)

META_GROUP: Final = "meta.k8s.io"
DISCOVERY_GROUP: Final = "apidiscovery.k8s.io"

#: Maximum number of headers that a negotiator caches; clients can send any number of different ones.
_MAX_CACHED: Final = 512
#: Longer headers are not cached: only clients that try to fill the memory send many different ones.
_MAX_CACHED_LENGTH: Final = 1024
#: Maximum number of clauses that are evaluated; browsers send six. Sorting takes quadratic time.
MAX_CLAUSES: Final = 100


@frozen(slots=True)
class Negotiated:
    """
    The media type and the view of a response.

    @ivar media: C{"json"}, C{"yaml"}, C{"protobuf"} or C{"cbor"}.
    @ivar transform: The kind that is requested instead of the object's kind: C{"Table"}, C{"PartialObjectMetadata"},
        C{"PartialObjectMetadataList"}, C{"APIGroupDiscoveryList"}; or C{""}.
    @ivar group: The group of C{transform}.
    @ivar version: The version of C{transform}.
    @ivar pretty: The header requests an indented response. See also L{wants_pretty}.
    @ivar content_type: The value of C{Content-Type} in the response.
    @ivar profile: The discovery profile.
    """

    media: str
    transform: str = ""
    group: str = ""
    version: str = ""
    pretty: bool = False
    content_type: bytes = b"application/json"
    profile: str = ""

    @property
    def api_version(self) -> str:
        """Return the C{apiVersion} of C{transform}."""
        return f"{self.group}/{self.version}" if self.group else self.version


class NotAcceptable(APIStatusError):
    """No accepted media type is available: 406, or 415 from the router for a missing body."""


@frozen
class Clause:
    """One comma-separated part of an C{Accept} header."""

    type: str
    subtype: str
    quality: float = 1.0
    params: Mapping[str, str] = field(factory=dict)


def parse_accept(header: str) -> list[Clause]:
    """
    Parse an C{Accept} header, and return its clauses in the order of preference.

    A clause with C{q=0} counts like any other, as in the reference. Clauses after L{MAX_CLAUSES} are ignored.
    """
    clauses: list[Clause] = []
    for part in header.split(",", MAX_CLAUSES)[:MAX_CLAUSES]:
        media, *pairs = part.strip(" ").split(";")
        kind, slash, subtype = media.partition("/")
        kind = kind.strip(" ")
        subtype = subtype.strip(" ")
        if not slash or not subtype:
            if kind != "*":
                continue
            subtype = "*"
        if "/" in subtype:
            continue
        quality = 1.0
        params = {}
        for pair in pairs:
            name, _, value = pair.partition("=")
            if not value or "=" in value:
                continue
            if name.strip(" ") == "q":
                quality = _quality(value)
            else:
                params[name.strip(" ")] = value.strip(" ")
        _insert(clauses, Clause(kind, subtype, quality, params))
    return clauses


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _insert(clauses: list[Clause], clause: Clause) -> None:
    # The reference's comparison is not transitive: a heavier wildcard and a lighter plain type each precede the other.
    # The same order of clauses requires the reference's algorithm, insertion from the end.
    clauses.append(clause)
    at = len(clauses) - 1
    while at > 0 and _comes_before(clauses[at], clauses[at - 1]):
        clauses[at], clauses[at - 1] = clauses[at - 1], clauses[at]
        at -= 1


def _comes_before(one: Clause, other: Clause) -> bool:
    return (
        one.quality > other.quality
        or (one.type != "*" and other.type == "*")
        or (one.subtype != "*" and other.subtype == "*")
    )


def _object_views(media: str, group: str, version: str, kind: str) -> bool:
    if group != META_GROUP or version not in ("v1", "v1beta1"):
        return False
    if kind == "Table":
        return media != PROTOBUF
    return kind in ("PartialObjectMetadata", "PartialObjectMetadataList")


def _object_views_without_tables(media: str, group: str, version: str, kind: str) -> bool:
    return kind != "Table" and _object_views(media, group, version, kind)


def _no_views(media: str, group: str, version: str, kind: str) -> bool:
    return False


def _discovery_views(media: str, group: str, version: str, kind: str) -> bool:
    return group == DISCOVERY_GROUP and version == "v2" and kind == "APIGroupDiscoveryList"


def _discovery_views_with_beta(media: str, group: str, version: str, kind: str) -> bool:
    return group == DISCOVERY_GROUP and version in ("v2", "v2beta1") and kind == "APIGroupDiscoveryList"


class Negotiator:
    """
    Negotiator of the responses of one kind of endpoint; it is called with the C{Accept} header.

    @ivar routed: The media types that the router lists; L{None} for endpoints without a router.
    """

    def __init__(
        self,
        views: Callable[[str, str, str, str], bool] = _no_views,
        routed: tuple[str, ...] | None = MEDIA_TYPES,
        view_required: bool = False,
        stream: bool = False,
        full_content_type: bool = False,
        protobuf: bool = False,
        protobuf_views: bool = False,
        cbor: bool = False,
    ) -> None:
        """
        @param views: Returns whether a media type may name a group, version and kind of the response.
        @param view_required: Whether only such responses are possible.
        @param stream: Whether the response is a watch, which has no YAML form.
        @param full_content_type: Whether the content type of the response names the view.
        @param protobuf: Whether the object has a protobuf form.
        @param protobuf_views: Whether views have one, even if the object has none: custom resources have no protobuf
            form, but the metadata of all objects has (apiextensions-apiserver,
            C{pkg/apiserver/customresource_handler.go}).
        @param cbor: Whether CBOR is available.
        """
        self.routed = routed
        self._views = views
        self._view_required = view_required
        self._stream = stream
        self._full_content_type = full_content_type
        self._protobuf = protobuf
        self._protobuf_views = protobuf or protobuf_views
        self._media_types = MEDIA_TYPES_WITH_CBOR if cbor else MEDIA_TYPES
        self._stream_types = STREAM_TYPES_WITH_CBOR if cbor else STREAM_TYPES
        self._cache: dict[bytes | None, Negotiated | tuple[int, str, bool]] = {}

    def __call__(self, accept: bytes | None, bodiless: bool = False) -> Negotiated:
        """
        Choose the form of a response.

        @param accept: The header; L{None} or empty selects the default.
        @param bodiless: Whether a POST, PUT or PATCH has no Content-Length, for which the router of releases before
            1.34 returns another error.
        @raise NotAcceptable: No accepted media type is available.
        """
        result = self._cache.get(accept)
        if result is None:
            result = self._negotiate(accept)
            if accept is None or len(accept) <= _MAX_CACHED_LENGTH:
                if len(self._cache) >= _MAX_CACHED:
                    self._cache.clear()
                self._cache[accept] = result
        if isinstance(result, Negotiated):
            return result
        code, message, by_router = result
        if by_router and bodiless:
            raise NotAcceptable(
                415, "UnsupportedMediaType", f"415: Unsupported Media Type\n\n{message.partition(chr(10) * 2)[2]}", {}
            )
        raise NotAcceptable(code, "NotAcceptable", message, {} if by_router else None)

    def _negotiate(self, accept: bytes | None) -> Negotiated | tuple[int, str, bool]:
        if not accept:
            return Negotiated("json")
        header = accept.decode("latin-1")
        if self.routed is not None and not _router_accepts(header, self.routed):
            return 406, _not_produced(self.routed), True
        clauses = parse_accept(header)
        for clause in clauses:
            for media in self._media_types:
                result = self._match(clause, media)
                if result is None or (media == PROTOBUF and not self._has_protobuf(result)):
                    continue
                if self._stream and media == YAML:
                    return 406, _accepted(self._stream_types), False
                return result
        return 406, _accepted(self._media_types), False

    def _has_protobuf(self, result: Negotiated) -> bool:
        return self._protobuf_views if result.transform else self._protobuf

    def _match(self, clause: Clause, media: str) -> Negotiated | None:
        kind, _, subtype = media.partition("/")
        if not (
            (clause.type == kind and clause.subtype in (subtype, "*")) or (clause.type == "*" and clause.subtype == "*")
        ):
            return None
        params = clause.params
        stream = params.get("stream")
        if stream and (media == YAML or stream != "watch"):
            return None
        if params.get("sv"):
            return None
        view = [params.get(name) for name in ("g", "v", "as")]
        group, version, transform = (part or "" for part in view)
        if view == [None, None, None]:
            if self._view_required:
                return None
        elif not self._views(media, group, version, transform):
            return None
        content_type = _STREAM_CONTENT_TYPES.get(media, media) if self._stream else media
        if self._full_content_type and transform:
            content_type = f"{media};g={group};v={version};as={transform}"
        return Negotiated(
            media=_FORMS[media],
            transform=transform,
            group=group,
            version=version,
            pretty=params.get("pretty") == "1",
            content_type=content_type.encode("latin-1"),
            profile=params.get("profile", ""),
        )


#: The content types of watches in media types that have a separate one.
_STREAM_CONTENT_TYPES: Final = {PROTOBUF: f"{PROTOBUF};stream=watch", CBOR: f"{CBOR}-seq"}


def _accepted(media_types: tuple[str, ...]) -> str:
    return f"only the following media types are accepted: {', '.join(media_types)}"


def _not_produced(produced: tuple[str, ...]) -> str:
    return f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"


def _router_accepts(header: str, produced: tuple[str, ...]) -> bool:
    for part in header.split(","):
        media = part.partition(";")[0].strip(" ")
        if media == "*/*" or media in produced:
            return True
    return False


@frozen
class EndpointNegotiators:
    """
    The negotiators of an endpoint.

    @ivar object: Single objects: get, create, update, patch, delete, deletecollection.
    @ivar object_without_table: The same for endpoints without Tables: reviews and actions.
    @ivar list: Lists.
    @ivar watch: Watches; C{list} is evaluated first, since it reports other errors.
    """

    object: Negotiator
    object_without_table: Negotiator
    list: Negotiator
    watch: Negotiator

    @classmethod
    def create(cls, protobuf: bool, cbor: bool) -> EndpointNegotiators:
        """
        Return the negotiators of an endpoint.

        @param protobuf: Whether protobuf is available, and a router precedes the handler, as for all built-in
            resources.
        @param cbor: Whether CBOR is available.
        """
        media_types = MEDIA_TYPES_WITH_CBOR if cbor else MEDIA_TYPES
        single = media_types if protobuf else None
        routed = media_types + (STREAM_TYPES_WITH_CBOR if cbor else STREAM_TYPES) if protobuf else None

        def negotiator(
            views: Callable[[str, str, str, str], bool], routed: tuple[str, ...] | None, stream: bool = False
        ) -> Negotiator:
            return Negotiator(views, routed=routed, stream=stream, protobuf=protobuf, protobuf_views=True, cbor=cbor)

        return cls(
            object=negotiator(_object_views, routed=single),
            object_without_table=negotiator(_object_views_without_tables, routed=single),
            list=negotiator(_object_views, routed=routed),
            watch=negotiator(_object_views, routed=routed, stream=True),
        )


BUILT_IN: Final = EndpointNegotiators.create(protobuf=True, cbor=False)
BUILT_IN_WITH_CBOR: Final = EndpointNegotiators.create(protobuf=True, cbor=True)
#: For custom resources and their scale; only views have a protobuf form.
CUSTOM: Final = EndpointNegotiators.create(protobuf=False, cbor=False)
CUSTOM_WITH_CBOR: Final = EndpointNegotiators.create(protobuf=False, cbor=True)
#: Documents behind the router: C{/api}, C{/api/v1}, C{/apis/apps/v1}.
negotiate_document: Final = Negotiator(protobuf=True)
#: The same of the resources of a group-version, if the server enables CBOR.
negotiate_document_with_cbor: Final = Negotiator(routed=MEDIA_TYPES_WITH_CBOR, protobuf=True, cbor=True)
#: Documents in front of it: C{/apis}, C{/apis/apps}.
negotiate_unrouted: Final = Negotiator(routed=None, protobuf=True)
#: Aggregated discovery; clients that do not request it get the plain document.
negotiate_aggregated: Final = Negotiator(
    _discovery_views, routed=None, view_required=True, full_content_type=True, protobuf=True
)
#: The same for releases up to 1.32, which support its beta version, too.
negotiate_aggregated_with_beta: Final = Negotiator(
    _discovery_views_with_beta, routed=None, view_required=True, full_content_type=True, protobuf=True
)


def negotiator_with(media_types: Sequence[str]) -> Negotiator:
    """
    Return the negotiator of responses that may have further media types, such as logs, which are always text.

    Clients must accept one of the other types, too.
    """
    return Negotiator(routed=(*media_types, *MEDIA_TYPES), protobuf=True)


def check_router(accept: bytes | None, produced: tuple[str, ...]) -> None:
    """
    Check an C{Accept} header as the router does, for endpoints with one media type.

    @raise NotAcceptable: None of C{produced} is accepted.
    """
    if accept and not _router_accepts(accept.decode("latin-1"), produced):
        raise NotAcceptable(406, "NotAcceptable", _not_produced(produced), {})


def error_media(accept: bytes | None, protobuf: bool = False, cbor: bool = False) -> Negotiated:
    """
    Return the form of an error's Status: the requested one, or indented JSON if that is unavailable.

    @param protobuf: Whether protobuf is available.
    @param cbor: Whether CBOR is available.
    """
    try:
        return _negotiate_error[protobuf, cbor](accept)
    except NotAcceptable:
        return _RAW


_negotiate_error: Final = {
    (protobuf, cbor): Negotiator(routed=None, protobuf=protobuf, cbor=cbor)
    for protobuf in (False, True)
    for cbor in (False, True)
}
_RAW: Final = Negotiator()(b"application/json;pretty=1")


def wants_pretty(negotiated: Negotiated, uri: bytes, user_agent: bytes | None) -> bool:
    """Return whether a response is indented: by the query, by C{Accept}, or for clients such as browsers and curl."""
    if negotiated.pretty:
        return True
    if b"pretty" in uri:
        match = _PRETTY.search(uri)
        if match is not None:
            return match[1] in _TRUE
    return user_agent is not None and user_agent.startswith(HUMANS)


_PRETTY: Final = re.compile(rb"(?:^|[?&])pretty=([^&#]+)")
#: The texts that Go's strconv.ParseBool parses as true.
_TRUE: Final = frozenset((b"1", b"t", b"T", b"TRUE", b"true", b"True"))
HUMANS: Final = (b"curl", b"Wget", b"Mozilla/5.0")

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
#: A media type as Go's mime.ParseMediaType accepts it.
_MEDIA_TYPE: Final = re.compile(
    rf'\s*({_TOKEN}(?:/{_TOKEN})?)\s*(?:;\s*{_TOKEN}\s*=\s*(?:{_TOKEN}|"(?:[^"\\]|\\.)*")\s*)*;?\s*'
)
_BODY_MEDIA: Final[dict[bytes | None, str]] = {media.encode(): _FORMS[media] for media in MEDIA_TYPES}
_BODY_MEDIA[None] = _BODY_MEDIA[b""] = "json"


def body_media(content_type: bytes | None, cbor: bool = False) -> str:
    """
    Return the form of the body of a POST, PUT or DELETE: C{"json"}, C{"yaml"}, C{"protobuf"} or C{"cbor"}.

    @param cbor: Whether CBOR is supported.
    @raise APIStatusError: The media type is unsupported (415).
    """
    media = _BODY_MEDIA.get(content_type)
    if media is not None:
        return media
    assert content_type is not None
    match = _MEDIA_TYPE.fullmatch(content_type.decode("latin-1"))
    supported = MEDIA_TYPES_WITH_CBOR if cbor else MEDIA_TYPES
    if match is None or match[1].lower() not in supported:
        raise APIStatusError.unsupported_media_type(supported)
    return _FORMS[match[1].lower()]


def unrouted_patch(content_length: bytes | None) -> APIStatusError:
    """
    Return the error for a patch of an unsupported type without a body, in releases before 1.34.

    Their router then continues with the Accept header, although no route is left.

    @param content_length: The header.
    """
    code, reason = (406, "NotAcceptable") if content_length else (415, "UnsupportedMediaType")
    text = "406: Not Acceptable" if content_length else "415: Unsupported Media Type"
    return APIStatusError(code, reason, f"{text}\n\nAvailable representations: ", {})


def patch_media(content_type: bytes | None, supported: tuple[str, ...] = PATCH_TYPES, routed: bool = True) -> str:
    """
    Return the type of a patch, one of C{supported}. Unlike the types of other bodies, it is compared exactly.

    @param routed: Whether the request has passed the router, which returns another error; requests for custom
        resources have not.
    @raise APIStatusError: The type is not in C{supported} (415).
    """
    header = (content_type or b"application/octet-stream").decode("latin-1")
    if header in supported:
        return header
    if routed and not any(part.partition(";")[0].strip(" ") in supported for part in header.split(",")):
        raise APIStatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    media = header.partition(";")[0]
    if media not in supported:
        raise APIStatusError.unsupported_media_type(supported)
    return media


def encode_cbor(document: JSONValue) -> bytes:
    """Encode as L{kubetwist.api.cbor.encode_cbor}, which is imported at the first use."""
    from ..api.cbor import encode_cbor

    return encode_cbor(document)


def encode_yaml(document: JSONValue) -> bytes:
    """Encode as L{kubetwist.http.yamlencoding.encode_yaml}, which is imported at the first use."""
    from .yamlencoding import encode_yaml

    return encode_yaml(document)
