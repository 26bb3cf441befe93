"""
Parse the verb and resource of a request from its method and URL.

Authorization, metrics and deadlines depend on the result, whether or not the path exists.

@see: kubernetes/apiserver, C{pkg/endpoints/request/requestinfo.go}.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote_to_bytes

_VERBS: Final = {
    b"POST": "create",
    b"GET": "get",
    b"HEAD": "get",
    b"PUT": "update",
    b"PATCH": "patch",
    b"DELETE": "delete",
}
#: Verbs for several objects, which selectors choose.
_COLLECTION_VERBS: Final = frozenset(("list", "watch", "deletecollection"))
_NAMESPACE_SUBRESOURCES: Final = ("status", "finalize")

#: Maximum length of selectors that are parsed for a name before authorization.
_MAX_SELECTORS_LENGTH: Final = 4096
_WHOLE_NUMBER: Final = re.compile("[+-]?[0-9]{1,19}")

#: Verbs and subresources of long-running requests.
LONG_RUNNING_VERBS: Final = frozenset(("watch", "proxy"))
LONG_RUNNING_SUBRESOURCES: Final = frozenset(("attach", "exec", "proxy", "log", "portforward"))


class UnknownRequest(Exception):
    """The path starts like the path of a resource, but is incomplete."""


class RequestInfo:
    """
    The verb and resource of a request. Shared by the requests of a server: immutable.

    @ivar path: Decoded, as sent otherwise.
    @ivar verb: C{list}, C{deletecollection}...; for non-resource paths, the HTTP method in lower case.
    @ivar api_prefix: C{"api"} or C{"apis"}; C{""} for non-resource paths.
    @ivar name: From the path, or from a field selector that leaves only one name.
    @ivar field_selector: As sent with list, watch and deletecollection; likewise C{label_selector}.
    @ivar parts: The path from the resource on.
    @ivar long_running: Whether no deadline applies.
    @ivar counted: The metrics of such requests, set at first use; per server.
    @ivar attributes: The user of the last such request, and its attributes for authorization; likewise.
    @ivar flow: The flow of the last such request, set at first use: see L{kubetwist.filters.priorityandfairness}.
    """

    __slots__ = (
        "api_prefix",
        "attributes",
        "counted",
        "field_selector",
        "flow",
        "group",
        "is_resource_request",
        "label_selector",
        "long_running",
        "name",
        "namespace",
        "parts",
        "path",
        "resource",
        "subresource",
        "verb",
        "version",
    )

    def __init__(self, path: str, verb: str) -> None:
        self.path = path
        self.verb = verb
        self.is_resource_request = False
        self.api_prefix = ""
        self.group = ""
        self.version = ""
        self.namespace = ""
        self.resource = ""
        self.subresource = ""
        self.name = ""
        self.field_selector = ""
        self.label_selector = ""
        self.parts: tuple[str, ...] = ()
        self.long_running = False
        self.counted: Any = None
        self.attributes: Any = None
        self.flow: Any = None

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"RequestInfo({text})"


def request_info_of(method: bytes, uri: bytes) -> RequestInfo:
    """
    Return the verb and resource of a request.

    @param uri: Path and query as sent.
    @raise UnknownRequest: The path of a resource is incomplete.
    """
    raw_path, _, query = uri.partition(b"?")
    path = (unquote_to_bytes(raw_path) if b"%" in raw_path else raw_path).decode("utf-8", "replace")
    info = RequestInfo(path, method.decode("latin-1").lower())
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        info.long_running = path.startswith("/debug/pprof/")
        return info
    info.api_prefix = parts[0]
    if parts[0] == "apis":
        if len(parts) < 4:
            return info
        info.group = parts[1]
        parts = parts[2:]
    else:
        parts = parts[1:]
    info.is_resource_request = True
    info.version = parts[0]
    parts = parts[1:]
    path_verb = ""
    if parts[0] in ("proxy", "watch"):
        if len(parts) < 2:
            raise UnknownRequest(f"unable to determine kind and namespace from url, {uri.decode('utf-8', 'replace')}")
        info.verb = path_verb = parts[0]
        parts = parts[1:]
    else:
        info.verb = _VERBS.get(method, "")
    if parts[0] == "namespaces" and len(parts) > 1:
        info.namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    info.parts = tuple(parts)
    info.resource = parts[0]
    if len(parts) > 1:
        info.name = parts[1]
        if len(parts) > 2 and info.verb != "proxy":
            info.subresource = parts[2]
    if not info.name:
        if info.verb == "get":
            _read_collection(info, query)
        elif info.verb == "delete":
            info.verb = "deletecollection"
    if query and not path_verb and info.verb in _COLLECTION_VERBS:
        _read_selectors(info, query)
    info.long_running = info.verb in LONG_RUNNING_VERBS or info.subresource in LONG_RUNNING_SUBRESOURCES
    return info


def _read_collection(info: RequestInfo, query: bytes) -> None:
    """Set the verb of a GET without a name: list or watch, perhaps of a single name."""
    info.verb = "list"
    if not query:
        return
    from ..api.query import parse_query

    parameters = parse_query(query)
    watch = parameters.get("watch")
    if watch is not None and watch[0].lower() not in ("false", "0"):
        info.verb = "watch"
    name = _only_name(parameters)
    if name and name not in (".", "..") and "/" not in name and "%" not in name:
        info.name = name


def _read_selectors(info: RequestInfo, query: bytes) -> None:
    """Read the selectors of a collection, valid or not."""
    if b"elector" not in query:
        return
    from ..api.query import parse_query

    parameters = parse_query(query)
    info.field_selector = parameters.get("fieldSelector", [""])[0]
    info.label_selector = parameters.get("labelSelector", [""])[0]


def _is_whole_number(text: str) -> bool:
    """Return whether Go's C{strconv.ParseInt} accepts a text for 64 bits."""
    return _WHOLE_NUMBER.fullmatch(text) is not None and -(1 << 63) <= int(text) < 1 << 63


def _only_name(parameters: dict[str, list[str]]) -> str:
    """
    Return the name that a field selector requires, C{""} for none.

    It is the name in the first term of the parsed and sorted selector. If any of the options cannot be decoded,
    including the label selector, there is none: the request then addresses the whole collection, until its handler
    refuses the options.
    """
    fields = parameters.get("fieldSelector", [""])[0]
    labels = parameters.get("labelSelector", [""])[0]
    if "metadata.name" not in fields or len(fields) + len(labels) > _MAX_SELECTORS_LENGTH:
        return ""
    limit, timeout = parameters.get("limit", ["0"])[0], parameters.get("timeoutSeconds", ["0"])[0]
    # An empty limit is absent, but an empty timeout is invalid.
    if not _is_whole_number(limit or "0") or not _is_whole_number(timeout):
        return ""
    from ..api.selectors import SelectorError, parse_field_selector, parse_label_selector

    try:
        terms = parse_field_selector(fields)
        if labels:
            parse_label_selector(labels)
    except SelectorError:
        return ""
    return next((value for field, value, equal in terms if equal and field == "metadata.name"), "")
