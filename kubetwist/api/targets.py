"""Targets of proxied requests: the registry chooses them, the HTTP layer connects to them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from attrs import field, frozen

from .errors import APIStatusError
from .resource import JSONObject

#: The URL schemes of a proxy target; an empty scheme means the default.
_SCHEMES = ("", "http", "https")


@frozen(kw_only=True)
class Target:
    """
    A target server and the path requested from it.

    @ivar scheme: C{"http"} or C{"https"}.
    @ivar host: An address or a name.
    @ivar path: Unescaped; C{""} for a proxy without even a slash behind it.
    @ivar query: L{None} for that of the request.
    @ivar kubelet: It is a kubelet, which is to see who we are.
    @ivar insecure: Any certificate will do; what a proxy leads to is never asked for a good one.
    @ivar options: Of admission: C{PodExecOptions} and the like.
    @ivar features: The features that the kubelet's node declares.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str | None = None
    kubelet: bool = False
    insecure: bool = False
    options: JSONObject = field(factory=dict)
    features: Sequence[str] = ()


def split_name(text: str, kind: str) -> tuple[str, str, str]:
    """
    Return the scheme, name and port in C{name}, C{name:port} or C{scheme:name:port}.

    @param kind: The kind of the target, for messages.
    @raise APIStatusError: The name has none of these forms (400).
    """
    parts = text.split(":")
    scheme, name = parts[0] if len(parts) == 3 else "", parts[len(parts) // 3]
    if len(parts) > 3 or scheme not in _SCHEMES or not name:
        raise APIStatusError.bad_request(f'invalid {kind} request "{text}"')
    return scheme, name, parts[-1] if len(parts) > 1 else ""


def clean_path(path: str) -> str:
    """
    Return a path without detours; a slash at its end stays.

    @param path: Beginning with a slash, or C{""}.
    """
    if not path:
        return ""
    cleaned = posixpath.normpath("/" + path.lstrip("/"))
    return f"{cleaned}/" if path.endswith("/") and not cleaned.endswith("/") else cleaned


def proxied_port(port: str, scheme: str, host: str) -> int:
    """
    Return the number that a port is.

    @param port: Digits; C{""} for that of the scheme.
    @raise APIStatusError: No port is so large (503), or it is not a number (400).
    """
    if not port:
        return 443 if scheme == "https" else 80
    if not (port.isascii() and port.isdigit()):
        raise APIStatusError.bad_request(f'invalid port "{port}" after host "{host}"')
    if len(port) > 5 or not 0 < int(port) < 65536:
        raise APIStatusError.service_unavailable(
            f"error trying to reach service: dial tcp: address {port}: invalid port"
        )
    return int(port)
