"""
Functions on IP addresses and CIDR blocks.

See kubernetes/apiserver, C{pkg/cel/library/ip.go} and C{cidr.go}.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Final

from kubetwist.api.go.netip import (
    Address,
    AddressError,
    Prefix,
    is_mapped,
    parse_address,
    parse_prefix,
)
from kubetwist.api.go.quote import quoted
from kubetwist.cel.errors import CelError, no_such_overload
from kubetwist.cel.functions import Library, Overload, function, member, overload
from kubetwist.cel.types import BOOL, INT, STRING, opaque
from kubetwist.cel.values import OpaqueValue, Value

IP_TYPE: Final = opaque("net.IP")
CIDR_TYPE: Final = opaque("net.CIDR")

_BROADCAST: Final = IPv4Address("255.255.255.255")


class IP(OpaqueValue):
    """An IP address without a zone, not IPv4-mapped."""

    __slots__ = ("address",)
    cel_type = IP_TYPE

    def __init__(self, address: Address) -> None:
        self.address = address

    def equals(self, other: Value) -> bool:
        """Compare the addresses."""
        return isinstance(other, IP) and self.address == other.address

    def size(self) -> int:
        """Return the size in bytes."""
        return self.address.max_prefixlen // 8


class CIDR(OpaqueValue):
    """A CIDR block: an address and a prefix length."""

    __slots__ = ("prefix",)
    cel_type = CIDR_TYPE

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix

    def equals(self, other: Value) -> bool:
        """Compare addresses and prefix lengths; address bits after the prefix count."""
        return isinstance(other, CIDR) and self.prefix == other.prefix

    def size(self) -> int:
        """Return the size of the prefix in bytes."""
        return -(-self.prefix.bits // 8)


def _address(text: str) -> Address:
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        raise CelError(f"IP Address {quoted(text)} parse error during conversion from string: {error}") from None
    if zone:
        raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
    if is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def _prefix(text: str) -> Prefix:
    problem = "network address parse error during conversion from string"
    try:
        prefix = parse_prefix(text)
    except AddressError as error:
        raise CelError(f"{problem}: {problem}: {error}") from None
    if is_mapped(prefix.address):
        raise CelError(f"{problem}: IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return prefix


def _ip(text: str) -> IP:
    return IP(_address(text))


def _is_ip(text: str) -> bool:
    try:
        _address(text)
    except CelError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def _ip_text(ip: IP) -> str:
    return str(ip.address)


def _family(ip: IP) -> int:
    return ip.address.version


def _is_unspecified(ip: IP) -> bool:
    return not int(ip.address)


def _is_loopback(ip: IP) -> bool:
    return ip.address.is_loopback


def _is_link_local_multicast(ip: IP) -> bool:
    first = ip.address.packed
    return first[:3] == b"\xe0\x00\x00" if len(first) == 4 else first[0] == 0xFF and first[1] & 0x0F == 0x02


def _is_link_local_unicast(ip: IP) -> bool:
    return ip.address.is_link_local


def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    return not (
        address == _BROADCAST
        or _is_unspecified(ip)
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _cidr(text: str) -> CIDR:
    return CIDR(_prefix(text))


def _is_cidr(text: str) -> bool:
    try:
        _prefix(text)
    except CelError:
        return False
    return True


def _cidr_text(cidr: CIDR) -> str:
    return str(cidr.prefix)


def _cidr_ip(cidr: CIDR) -> IP:
    return IP(cidr.prefix.address)


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    return cidr.prefix.contains(ip.address)


def _contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        return cidr.prefix.contains(_address(text))
    except CelError:
        # kube-apiserver drops the parse error here, but not in containsCIDR().
        raise no_such_overload() from None


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    return cidr.prefix.covers(other.prefix)


def _contains_cidr_text(cidr: CIDR, text: str) -> bool:
    return cidr.prefix.covers(_prefix(text))


def _prefix_length(cidr: CIDR) -> int:
    return cidr.prefix.bits


def _masked(cidr: CIDR) -> CIDR:
    return CIDR(cidr.prefix.masked())


def _test(id: str, call: object) -> Overload:
    return member(id, (IP_TYPE,), BOOL, call)  # type: ignore[arg-type]


IPS: Final = Library(
    "kubernetes.net.ip",
    [
        function("ip", overload("string_to_ip", (STRING,), IP_TYPE, _ip)),
        function("isIP", overload("is_ip", (STRING,), BOOL, _is_ip)),
        function("ip.isCanonical", overload("ip_is_canonical", (STRING,), BOOL, _is_canonical)),
        function("family", member("ip_family", (IP_TYPE,), INT, _family)),
        function("isUnspecified", _test("ip_is_unspecified", _is_unspecified)),
        function("isLoopback", _test("ip_is_loopback", _is_loopback)),
        function("isLinkLocalMulticast", _test("ip_is_link_local_multicast", _is_link_local_multicast)),
        function("isLinkLocalUnicast", _test("ip_is_link_local_unicast", _is_link_local_unicast)),
        function("isGlobalUnicast", _test("ip_is_global_unicast", _is_global_unicast)),
        function("string", overload("ip_to_string", (IP_TYPE,), STRING, _ip_text)),
    ],
    types={IP_TYPE.name: IP_TYPE},
)

CIDRS: Final = Library(
    "kubernetes.net.cidr",
    [
        function("cidr", overload("string_to_cidr", (STRING,), CIDR_TYPE, _cidr)),
        function("isCIDR", overload("is_cidr", (STRING,), BOOL, _is_cidr)),
        function(
            "containsIP",
            member("cidr_contains_ip_string", (CIDR_TYPE, STRING), BOOL, _contains_ip_text),
            member("cidr_contains_ip_ip", (CIDR_TYPE, IP_TYPE), BOOL, _contains_ip),
        ),
        function(
            "containsCIDR",
            member("cidr_contains_cidr_string", (CIDR_TYPE, STRING), BOOL, _contains_cidr_text),
            member("cidr_contains_cidr", (CIDR_TYPE, CIDR_TYPE), BOOL, _contains_cidr),
        ),
        function("ip", member("cidr_ip", (CIDR_TYPE,), IP_TYPE, _cidr_ip)),
        function("prefixLength", member("cidr_prefix_length", (CIDR_TYPE,), INT, _prefix_length)),
        function("masked", member("cidr_masked", (CIDR_TYPE,), CIDR_TYPE, _masked)),
        function("string", overload("cidr_to_string", (CIDR_TYPE,), STRING, _cidr_text)),
    ],
    types={CIDR_TYPE.name: CIDR_TYPE},
)
