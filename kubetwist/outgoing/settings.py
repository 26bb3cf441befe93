"""Whom to call, and what to show them."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from attrs import field, frozen

from .errors import BadSettings

#: Names the host and port to connect to; raises L{kubetwist.outgoing.errors.Unreachable} when there are none.
Dial = Callable[[], tuple[str, int]]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@frozen(kw_only=True)
class CallSettings:
    """
    All that a client has to know of those it calls. Certificates and keys are PEM; secrets are not in its C{repr}.

    @ivar url: With its path, without a query.
    @ivar ca: Authorities that the other's certificate must come from; C{b""} for those of the system.
    @ivar certificate: What is shown when the other asks for a certificate; C{b""} for none.
    @ivar key: The key of C{certificate}.
    @ivar token: Sent as bearer token.
    @ivar basic: Sent as user and password.
    @ivar server_name: What the other's certificate must be for; the host of C{url} without it.
    @ivar insecure: Whether any certificate will do.
    @ivar dial: Where to connect, asked for each new connection; L{None} for what C{url} says.
    @ivar guarded: Addresses of this machine, of its link and of metadata services are not called. For those whom not
        the administrator of the server has named, but an object of the API.
    @ivar loopback: Addresses of this machine are called all the same.
    @ivar interfaces: Addresses of this machine's interfaces are its own, as loopback addresses are. Not for services,
        whose addresses an interface may have (IPVS).
    @ivar denied: Networks that are not called either, whatever C{guarded} is.
    @ivar patience: Seconds that the other side is given to take a connection.
    """

    url: str
    ca: bytes = field(default=b"", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)
    server_name: str = ""
    insecure: bool = False
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    dial: Dial | None = field(default=None, repr=False)
    guarded: bool = False
    loopback: bool = False
    interfaces: bool = False
    denied: tuple[Network, ...] = ()
    patience: float = 30.0


#: The ports of what has none in its URL.
_PORTS: Final = {"http": 80, "https": 443}


def split_url(url: str) -> tuple[SplitResult, str, int]:
    """
    The parts of a URL of a server, its host and its port.

    @raise BadSettings: It is none. An object of the API may have named it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        why = "invalid port" if "port" in str(error).lower() else "invalid host"
        raise BadSettings(f"{why} in {url}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BadSettings(f"no URL of a server: {url}")
    return parts, parts.hostname, port or _PORTS[parts.scheme]
