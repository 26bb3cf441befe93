"""
Addresses and prefixes as Go's C{net/netip} parses them, with its error messages.

Stricter than L{kubetwist.api.addresses}: no leading zeros, and errors give the exact position.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from attrs import frozen

from .quote import quoted

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_hexadecimal = re.compile("[0-9a-fA-F]*").match
_bits = re.compile("[1-9][0-9]*|[0-9]").fullmatch
_first_mark = re.compile("[.:%]").search

#: Maximum number of digits of a prefix length.
_MAX_BITS_LENGTH: Final = 18


class AddressError(ValueError):
    """A text that is not an address or prefix."""


@frozen
class Prefix:
    """
    An address and how many of its first bits count.

    @ivar address: Bits beyond the prefix are kept.
    """

    address: Address
    bits: int

    @property
    def network(self) -> int:
        """Return the bits that count, as a number."""
        return int(self.address) >> (self.address.max_prefixlen - self.bits)

    def contains(self, address: Address) -> bool:
        """Return whether an address, of the same family, begins with the same bits."""
        if address.version != self.address.version:
            return False
        return int(address) >> (address.max_prefixlen - self.bits) == self.network

    def covers(self, other: Prefix) -> bool:
        """Return whether every address of another prefix is in this one."""
        return self.bits <= other.bits and self.contains(other.address)

    def masked(self) -> Prefix:
        """Return the same prefix, of an address whose other bits are zero."""
        start = self.network << (self.address.max_prefixlen - self.bits)
        return Prefix(type(self.address)(start), self.bits)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def is_mapped(address: Address) -> bool:
    """Return whether it is an IPv4 address within IPv6."""
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def parse_address(text: str) -> tuple[Address, str]:
    """
    Read an address.

    @return: The address, and its zone or C{""}.
    @raise AddressError: The value is invalid.
    """
    mark = _first_mark(text)
    if mark is None:
        raise _problem(text, "unable to parse IP")
    if mark[0] == "%":
        raise _problem(text, "missing IPv6 address")
    if mark[0] == ".":
        return ipaddress.IPv4Address(bytes(_ipv4_fields(text, text))), ""
    return _ipv6(text)


def parse_prefix(text: str) -> Prefix:
    """
    Read an address and the length of a prefix, parted by a slash.

    @raise AddressError: The value is invalid.
    """

    def problem(reason: str) -> AddressError:
        return AddressError(f"netip.ParsePrefix({quoted(text)}): {reason}")

    before, slash, length = text.rpartition("/")
    if not slash:
        raise problem("no '/'")
    try:
        address, zone = parse_address(before)
    except AddressError as error:
        raise problem(str(error)) from None
    if zone:
        raise problem("IPv6 zones cannot be present in a prefix")
    if not _bits(length) or len(length) > _MAX_BITS_LENGTH:
        raise problem(f"bad bits after slash: {quoted(length)}")
    bits = int(length)
    if bits > address.max_prefixlen:
        raise problem("prefix length out of range")
    return Prefix(address, bits)


def _problem(text: str, reason: str, at: str = "") -> AddressError:
    place = f" (at {quoted(at)})" if at else ""
    return AddressError(f"ParseAddr({quoted(text)}): {reason}{place}")


def _ipv4_fields(whole: str, text: str) -> list[int]:
    """
    Parse four numbers separated by dots.

    @param whole: The text shown in errors: C{text} may be only its end.
    """
    fields: list[int] = []
    value, digits = 0, 0
    for index, character in enumerate(text):
        if character in "0123456789":
            if digits == 1 and value == 0:
                raise _problem(whole, "IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits += 1
            if value > 255:
                raise _problem(whole, "IPv4 field has value >255")
        elif character == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                raise _problem(whole, "IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:
                raise _problem(whole, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise _problem(whole, "unexpected character", text[index:])
    if len(fields) < 3:
        raise _problem(whole, "IPv4 address too short")
    return [*fields, value]


def _ipv6(text: str) -> tuple[Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _problem(text, "zone must be a non-empty string")
    packed = bytearray()
    gap = -1
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
        if not rest:
            return ipaddress.IPv6Address(0), zone
    while len(packed) < 16:
        group = _group(text, rest)
        if rest[len(group) : len(group) + 1] == ".":
            if gap < 0 and len(packed) != 12:
                raise _problem(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(packed) > 12:
                raise _problem(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            packed += bytes(_ipv4_fields(text, rest))
            rest = ""
            break
        packed += int(group, 16).to_bytes(2, "big")
        rest = rest[len(group) :]
        if not rest:
            break
        if rest[0] != ":":
            raise _problem(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _problem(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if gap >= 0:
                raise _problem(text, "multiple :: in address", rest)
            gap, rest = len(packed), rest[1:]
            if not rest:
                break
    if rest:
        raise _problem(text, "trailing garbage after address", rest)
    if len(packed) == 16 and gap >= 0:
        raise _problem(text, "the :: must expand to at least one field of zeros")
    if len(packed) < 16:
        if gap < 0:
            raise _problem(text, "address string too short")
        packed[gap:gap] = bytes(16 - len(packed))
    return ipaddress.IPv6Address(bytes(packed)), zone


def _group(text: str, rest: str) -> str:
    """Return the hexadecimal digits that C{rest} begins with."""
    match = _hexadecimal(rest)
    assert match is not None, "it matches the empty string"
    group = match[0]
    if not group:
        raise _problem(text, "each colon-separated field must have at least one digit", rest)
    if len(group) > 4:
        raise _problem(text, "each group must have 4 or less digits", rest)
    return group
