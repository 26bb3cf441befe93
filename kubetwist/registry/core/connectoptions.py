"""Conversion of the query of a connect request to the options object for admission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.resource import JSONObject
from .pod.logoptions import flag

_FLAGS: Final = ("stdin", "stdout", "stderr", "tty")
_PORT_DIGITS: Final = 5
_PROXIES: Final = {"pods": "PodProxyOptions", "services": "ServiceProxyOptions", "nodes": "NodeProxyOptions"}


def connect_options(resource: str, subresource: str, query: Mapping[str, Sequence[str]], path: str) -> JSONObject:
    """
    Return the options object of a request for C{exec}, C{attach}, C{portforward} or C{proxy}.

    @param resource: The resource: C{"pods"}, C{"services"} or C{"nodes"}.
    @param subresource: The subresource.
    @param query: The values of each parameter of the query.
    @param path: The path below the subresource, with a leading slash.
    @raise APIStatusError: A parameter is malformed (400).
    """
    if subresource == "proxy":
        obj: JSONObject = {"kind": _PROXIES[resource], "apiVersion": "v1"}
        if path:
            obj["path"] = path
        return obj
    if subresource == "portforward":
        obj = {"kind": "PodPortForwardOptions", "apiVersion": "v1"}
        ports = [_port(text) for texts in query.get("ports") or () for text in texts.split(",")]
        if ports:
            obj["ports"] = ports
        return obj
    obj = {"kind": "PodExecOptions" if subresource == "exec" else "PodAttachOptions", "apiVersion": "v1"}
    for name in _FLAGS:
        if flag(query, name):
            obj[name] = True
    container = query.get("container")
    if container and container[0]:
        obj["container"] = container[0]
    if subresource == "exec":
        obj["command"] = list(query.get("command") or ()) or None
    return obj


def _port(text: str) -> int:
    """
    Parse a number of 16 bits; see C{Convert_Slice_string_To_Slice_int32} in C{apis/meta/v1/conversion.go}.

    @raise APIStatusError: The text is not such a number (400).
    """
    problem = "value out of range"
    if not (text.isascii() and text.isdigit()):
        problem = "invalid syntax"
    elif len(text.lstrip("0")) <= _PORT_DIGITS and int(text) < 1 << 16:
        return int(text)
    raise APIStatusError.bad_request(f"cannot convert to []int32: strconv.ParseUint: parsing {quoted(text)}: {problem}")
