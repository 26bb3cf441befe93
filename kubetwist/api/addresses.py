"""
Validation and canonical form of IP addresses and CIDR blocks.

See kubernetes/apimachinery, C{pkg/util/validation/ip.go}. Fields older than these rules accept addresses that libraries
parse differently (leading zeros, IPv4-mapped IPv6) if C{strict} is false.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

from .go.quote import quoted

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_BAD_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_NETWORK: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

_leading_zeros = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])").sub
_number = re.compile("[0-9]{1,8}").fullmatch


#: Cached, since validation, warnings and classification parse the same address.
@lru_cache(maxsize=1024)
def _parsed_ip(text: str) -> Address:
    return ipaddress.ip_address(_leading_zeros("", text))


@lru_cache(maxsize=1024)
def _network(address: Address, length: int) -> Network:
    return ipaddress.ip_network((address, length), strict=False)


def parse_ip(text: str) -> Address | None:
    """Return the address in C{text}, ignoring leading zeros; L{None} if it is not an address."""
    # Addresses without leading zeros are shorter than 64 characters; the parsers below need a bound.
    if len(text) > 64 or "%" in text or not text.isascii():
        return None
    try:
        return _parsed_ip(text)
    except ValueError:
        return None


def parse_plain_ip(text: str) -> Address:
    """
    Return the address in C{text}, ignoring leading zeros; IPv4-mapped IPv6 is IPv4.

    @raise ValueError: It is not an address.
    """
    address = parse_ip(text)
    if address is None:
        raise ValueError(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def parse_cidr(text: str) -> tuple[Address, Network] | None:
    """Return the address and the block in C{text}, ignoring leading zeros; L{None} if it is not a CIDR block."""
    before, slash, length = text.partition("/")
    address = parse_ip(before)
    if not slash or address is None or not _number(length) or int(length) > address.max_prefixlen:
        return None
    return address, _network(address, int(length))


def format_ip(address: Address) -> str:
    """Return the canonical form of an address; IPv4-mapped IPv6 becomes IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


@lru_cache(maxsize=1024)
def _has_leading_zeros(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return True
    return False


def validate_ip(text: str, strict: bool = True, canonical: bool = True) -> list[str]:
    """
    Validate an IP address and return the errors.

    @param strict: Reject addresses that libraries parse differently.
    @param canonical: Also reject non-canonical forms, as new fields and names do.
    """
    address = parse_ip(text)
    if address is None:
        return [_BAD_ADDRESS]
    problems = []
    if strict:
        if _has_leading_zeros(text):
            problems.append("must not have leading 0s")
        elif _is_mapped(address):
            problems.append("must not be an IPv4-mapped IPv6 address")
    if canonical and not problems and format_ip(address) != text:
        problems.append(f'must be in canonical form ("{format_ip(address)}")')
    return problems


def validate_interface_address(text: str) -> list[str]:
    """Validate an interface address, which includes the prefix length of its network, and return the errors."""
    parsed = parse_cidr(text)
    if parsed is None:
        return ["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"]
    address, network = parsed
    # IPv4-mapped IPv6 is written as IPv4.
    length = network.prefixlen - (96 if _is_mapped(address) and network.prefixlen > 32 else 0)
    canonical = f"{format_ip(address)}/{length}"
    return [] if text == canonical else [f"must be in canonical form ({quoted(canonical)})"]


def validate_cidr(text: str, strict: bool = True, canonical: bool = True) -> list[str]:
    """
    Validate a CIDR block and return the errors.

    @param strict: Reject blocks that libraries parse differently, and bits beyond the prefix length.
    @param canonical: Also reject non-canonical forms.
    """
    parsed = parse_cidr(text)
    if parsed is None:
        return [_BAD_NETWORK]
    address, network = parsed
    problems = []
    if strict:
        before, _, length = text.partition("/")
        if _has_leading_zeros(before) or str(int(length)) != length:
            problems.append("must not have leading 0s in IP or prefix length")
        elif _is_mapped(address):
            problems.append("must not have an IPv4-mapped IPv6 address")
        elif address != network.network_address:
            problems.append("must not have bits set beyond the prefix length")
    if canonical and not problems and str(network) != text:
        problems.append(f'must be in canonical form ("{network}")')
    return problems
