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
    @ivar path: The unescaped path; C{""} without a slash.
    @ivar query: The query; L{None} for the query of the request.
    @ivar kubelet: Whether it is a kubelet, to which the server authenticates.
    @ivar insecure: Whether the certificate is not verified, as for proxied services, pods and nodes.
    @ivar options: The options for admission, such as C{PodExecOptions}.
    @ivar features: The features that the kubelet's node declares.
    @ivar simulated: Whether the host is a simulated node or a pod on one: the connection stays in this process.
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
    simulated: bool = False


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
    Return a normalized path; a trailing slash is kept.

    @param path: A path that starts with a slash, or C{""}.
    """
    if not path:
        return ""
    cleaned = posixpath.normpath("/" + path.lstrip("/"))
    return f"{cleaned}/" if path.endswith("/") and not cleaned.endswith("/") else cleaned


def proxied_port(port: str, scheme: str, host: str) -> int:
    """
    Return the number of a port.

    @param port: Digits; C{""} for the default of the scheme.
    @param scheme: The scheme.
    @param host: The host, for messages.
    @raise APIStatusError: The number is too large (503), or the text is not a number (400).
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
