"""The settings of a client: the server, and the credentials."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from attrs import field, frozen

from .errors import InvalidRESTConfig

#: Returns the host and port to connect to; raises L{kubetwist.client.errors.Unreachable} when there are none.
AddressResolver = Callable[[], tuple[str, int]]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@frozen(kw_only=True)
class RESTConfig:
    """
    The settings of a client. Certificates and keys are PEM; secrets are omitted from its C{repr}.

    @ivar url: The URL with its path, without a query.
    @ivar ca: Authorities of the server's certificate; C{b""} for the system's authorities.
    @ivar certificate: The client certificate; C{b""} for none.
    @ivar key: The key of C{certificate}.
    @ivar token: The bearer token.
    @ivar basic_auth: User and password.
    @ivar server_name: The expected name in the server's certificate; by default the host of C{url}.
    @ivar insecure: Whether every certificate is accepted.
    @ivar resolve_address: Returns the address of each new connection; L{None} uses the one in C{url}.
    @ivar deny_internal: Whether addresses of this machine, link-local ones and those of metadata services are
        refused: for targets that API objects name, not the administrator.
    @ivar allow_loopback: Whether addresses of this machine are allowed nevertheless.
    @ivar interfaces_are_loopback: Whether addresses of this machine's interfaces count as loopback addresses. Not for
        services, whose addresses an interface may have (IPVS).
    @ivar denied_networks: Networks that are refused in any case.
    @ivar dial_timeout: Connection timeout, in seconds.
    """

    url: str
    ca: bytes = field(default=b"", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    basic_auth: tuple[str, str] | None = field(default=None, repr=False)
    server_name: str = ""
    insecure: bool = False
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    resolve_address: AddressResolver | None = field(default=None, repr=False)
    deny_internal: bool = False
    allow_loopback: bool = False
    interfaces_are_loopback: bool = False
    denied_networks: tuple[Network, ...] = ()
    dial_timeout: float = 30.0


#: The default ports by scheme.
_PORTS: Final = {"http": 80, "https": 443}


def split_url(url: str) -> tuple[SplitResult, str, int]:
    """
    Parse the URL of a server into its parts, the host and the port.

    @raise InvalidRESTConfig: It is invalid. It may come from an API object.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        reason = "invalid port" if "port" in str(error).lower() else "invalid host"
        raise InvalidRESTConfig(f"{reason} in {url}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidRESTConfig(f"no URL of a server: {url}")
    return parts, parts.hostname, port or _PORTS[parts.scheme]
