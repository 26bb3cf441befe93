"""
What a request is about, told from its method and URL alone.

As the reference finds it (C{pkg/endpoints/request/requestinfo.go} of kubernetes/apiserver): authorization, metrics and
deadlines go by this, whether or not anything answers at the path.
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
#: What is about several objects, among which selectors choose.
_SELECTING: Final = frozenset(("list", "watch", "deletecollection"))
_NAMESPACE_SUBRESOURCES: Final = ("status", "finalize")

#: Maximum length of selectors that are parsed for a name before authorization.
_LONGEST_SELECTORS: Final = 4096
_WHOLE_NUMBER: Final = re.compile("[+-]?[0-9]{1,19}")

#: What lasts as long as client and server want.
LONG_RUNNING_VERBS: Final = frozenset(("watch", "proxy"))
LONG_RUNNING_SUBRESOURCES: Final = frozenset(("attach", "exec", "proxy", "log", "portforward"))


class UnknownRequest(Exception):
    """The path begins like one of a resource and breaks off."""


class RequestInfo:
    """
    What a request is about. Shared between the requests of a server: not to be changed.

    @ivar path: Decoded, as sent otherwise.
    @ivar verb: C{list}, C{deletecollection}...; for what is no resource, the HTTP method in lower case.
    @ivar api_prefix: C{"api"} or C{"apis"}; C{""} for what is no resource.
    @ivar name: From the path, or from a field selector that leaves only one name.
    @ivar field_selector: As sent with what lists, watches or deletes collections; likewise C{label_selector}.
    @ivar parts: The path from the resource on.
    @ivar long_running: Whether no deadline applies.
    @ivar counted: Where requests like this are counted, once that is known; a server shares these with no other.
    @ivar flow: Likewise, whose flow the last of them was in: see L{kubetwist.filters.priorityandfairness}.
    """

    __slots__ = (
        "api_prefix",
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
        self.flow: Any = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"RequestInfo({shown})"


def request_info_of(method: bytes, uri: bytes) -> RequestInfo:
    """
    Find out what a request is about.

    @param uri: Path and query as sent.
    @raise UnknownRequest: Nobody can tell.
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
    by_path = ""
    if parts[0] in ("proxy", "watch"):
        if len(parts) < 2:
            raise UnknownRequest(f"unable to determine kind and namespace from url, {uri.decode('utf-8', 'replace')}")
        info.verb = by_path = parts[0]
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
    if query and not by_path and info.verb in _SELECTING:
        _read_selectors(info, query)
    info.long_running = info.verb in LONG_RUNNING_VERBS or info.subresource in LONG_RUNNING_SUBRESOURCES
    return info


def _read_collection(info: RequestInfo, query: bytes) -> None:
    """A GET without a name lists or watches, perhaps a single name."""
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
    """What narrows a collection, however little sense it makes."""
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
    if "metadata.name" not in fields or len(fields) + len(labels) > _LONGEST_SELECTORS:
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
