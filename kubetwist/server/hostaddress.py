"""
Determine the advertised address of a server without a flag for it.

@see: kubernetes/apimachinery, C{pkg/util/net/interface.go}: C{ResolveBindAddress}.
"""

from __future__ import annotations

import array
import ipaddress
import socket
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

#: Linux's files with routes and IPv6 addresses.
PROC: Final = Path("/proc/net")

# From <linux/sockios.h> and <linux/if.h>.
_SIOCGIFCONF: Final = 0x8912
_SIOCGIFFLAGS: Final = 0x8913
_UP: Final = 0x1
_LOOPBACK: Final = 0x8
_POINT_TO_POINT: Final = 0x10
#: Size of C{struct ifreq} and of its name, in bytes.
_REQUEST: Final = 40
_NAME: Final = 16


@frozen
class Interface:
    """
    A network interface.

    @ivar addresses: In the system's order.
    """

    name: str
    up: bool
    loopback: bool
    point_to_point: bool
    addresses: tuple[str, ...]


def default_routes(routes: str, routes6: str) -> list[tuple[int, str]]:
    """
    Return the default routes in C{/proc/net/route} and C{/proc/net/ipv6_route}.

    @return: IP version and interface name of each.
    """
    default = []
    for line in routes.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and not int(fields[1], 16):
            default.append((4, fields[0]))
    for line in routes6.splitlines():
        fields = line.split()
        # A default route without a gateway belongs to the loopback interface.
        if len(fields) > 9 and not int(fields[0], 16) and int(fields[4], 16):
            default.append((6, fields[9]))
    return default


def choose_address(
    versions: Sequence[int], interfaces: Sequence[Interface], routes: Sequence[tuple[int, str]] | None
) -> str:
    """
    Return the first global address of the host.

    @param versions: IP versions, the preferred one first.
    @param routes: L{default_routes}, whose interfaces are searched; L{None} if the system does not show them: then all
        interfaces are searched.
    @return: The address; C{""} if there is none.
    """
    by_name = {interface.name: interface for interface in interfaces}
    up = [interface for interface in interfaces if interface.up]
    for version in versions:
        if routes is None:
            candidates: list[Interface] = [one for one in up if not (one.loopback or one.point_to_point)]
        else:
            candidates = []
            for _, name in (route for route in routes if route[0] == version):
                route = by_name.get(name)
                # If interfaces have only link-local addresses, the loopback interface has the global one.
                candidates += [route] if route is not None and route.up else []
                candidates += [one for one in up if one.loopback]
        for interface in candidates:
            for address in interface.addresses:
                if _is_global_unicast(address, version):
                    return address
    return ""


def _is_global_unicast(address: str, version: int) -> bool:
    """Return Go's C{IsGlobalUnicast}, which is true for private addresses."""
    ip = ipaddress.ip_address(address)
    special = ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local
    return ip.version == version and not special and address != "255.255.255.255"


def read_interfaces() -> list[Interface]:
    """
    Return the interfaces of this machine, as Linux shows them.

    @raise OSError: They cannot be read.
    """
    import fcntl

    addresses: dict[str, list[str]] = {name: [] for _, name in socket.if_nameindex()}
    flags: dict[str, int] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        buffer = array.array("B", bytes(_REQUEST * 256))
        request = struct.pack("iL", len(buffer), buffer.buffer_info()[0])
        size: int = struct.unpack("iL", fcntl.ioctl(probe.fileno(), _SIOCGIFCONF, request))[0]
        for start in range(0, size, _REQUEST):
            one = buffer[start : start + _REQUEST].tobytes()
            name = one[:_NAME].partition(b"\0")[0].decode().partition(":")[0]
            addresses.setdefault(name, []).append(socket.inet_ntoa(one[_NAME + 4 : _NAME + 8]))
        for name in addresses:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, struct.pack(f"{_REQUEST}s", name.encode()))
            flags[name] = struct.unpack_from("H", answer, _NAME)[0]
    for line in _text("if_inet6").splitlines():
        fields = line.split()
        addresses.setdefault(fields[5], []).append(str(ipaddress.IPv6Address(int(fields[0], 16))))
    return [
        Interface(
            name,
            bool(flags.get(name, 0) & _UP),
            bool(flags.get(name, 0) & _LOOPBACK),
            bool(flags.get(name, 0) & _POINT_TO_POINT),
            tuple(of_interface),
        )
        for name, of_interface in addresses.items()
    ]


def _text(name: str) -> str:
    try:
        return (PROC / name).read_text()
    except OSError:
        return ""


def advertised_address(bind: str, advertise: str) -> str:
    """
    Return the address under which a server is reachable for other machines.

    @param bind: The address on which it listens.
    @param advertise: C{--advertise-address}; C{""} without it.
    @return: The flag's value or the listening address; the first global address of the host if that is loopback or
        unspecified, and loopback if there is none.
    """
    if advertise and not ipaddress.ip_address(advertise).is_unspecified:
        return advertise
    listening = ipaddress.ip_address(bind)
    if not (listening.is_unspecified or listening.is_loopback):
        return bind
    version = ipaddress.ip_address(advertise or bind).version
    versions = (6, 4) if version == 6 else (4, 6)
    address = ""
    try:
        interfaces = read_interfaces()
    except (OSError, ImportError, AttributeError):
        address = _source_address(versions)
    else:
        routes = default_routes(_text("route"), _text("ipv6_route")) if (PROC / "route").exists() else None
        address = choose_address(versions, interfaces, routes)
    return address or ("::1" if version == 6 else "127.0.0.1")


def _source_address(versions: Iterable[int]) -> str:
    """Return the source address of connections to the Internet; nothing is sent."""
    for version in versions:
        family, somewhere = (socket.AF_INET, "192.0.2.1") if version == 4 else (socket.AF_INET6, "2001:db8::1")
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((somewhere, 9))
                address: str = probe.getsockname()[0].partition("%")[0]
        except OSError:
            continue
        if _is_global_unicast(address, version):
            return address
    return ""
