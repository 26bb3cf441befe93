"""Tests for L{kubetwist.api.go.netip}."""

from __future__ import annotations

import contextlib
from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis.strategies import integers, ip_addresses, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.netip import (
    Address,
    AddressError,
    Prefix,
    parse_address,
    parse_prefix,
)


class AddressTests(SynchronousTestCase):
    """Tests for L{parse_address}."""

    @given(ip_addresses())
    def test_canonical(self, address: Address) -> None:
        """The canonical form of every address is parsed."""
        self.assertEqual(parse_address(str(address)), (address, ""))

    def test_forms(self) -> None:
        """IPv6 addresses have many forms."""
        for written, address in {
            "::": "::",
            "1::": "1::",
            "::1:2": "::1:2",
            "0001:0:0:0:0:0:0:8": "1::8",
            "1:2:3:4:5:6:1.2.3.4": "1:2:3:4:5:6:102:304",
            "::ffff:10.0.0.1": "::ffff:a00:1",
            "ABCD::1": "abcd::1",
        }.items():
            self.assertEqual(parse_address(written), (IPv6Address(address), ""))

    def test_zone(self) -> None:
        """The zone is returned separately."""
        self.assertEqual(parse_address("fe80::1%eth0"), (IPv6Address("fe80::1"), "eth0"))

    def test_problems(self) -> None:
        """An invalid address is rejected with Go's message and position."""
        for bad, reason in {
            "": "unable to parse IP",
            "localhost": "unable to parse IP",
            "%eth0": "missing IPv6 address",
            "1.2.3": "IPv4 address too short",
            "1.2.3.4.5": "IPv4 address too long",
            "1.2.3.256": "IPv4 field has value >255",
            "1.2.3.04": "IPv4 field has octet with leading zero",
            "1..2.3": 'IPv4 field must have at least one digit (at ".2.3")',
            "1.2.3.": 'IPv4 field must have at least one digit (at ".")',
            "1.2.3.x": 'unexpected character (at "x")',
            ":::1": 'each colon-separated field must have at least one digit (at ":1")',
            "12345::": 'each group must have 4 or less digits (at "12345::")',
            "1::2::3": 'multiple :: in address (at ":3")',
            "1:2": "address string too short",
            "1:": 'colon must be followed by more characters (at ":")',
            "1:2:3:4:5:6:7:8:9": 'trailing garbage after address (at "9")',
            "1:2:3:4:5:6:7::8": "the :: must expand to at least one field of zeros",
            "1:2:3/4": 'unexpected character, want colon (at "/4")',
            "1:1.2.3.4": 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
            "::1.2.3": "IPv4 address too short",
            "fe80::1%": "zone must be a non-empty string",
        }.items():
            with self.assertRaises(AddressError) as raised:
                parse_address(bad)
            self.assertEqual(str(raised.exception), f'ParseAddr("{bad}"): {reason}')

    @given(text("0123456789abcf:.%/"))
    def test_any_text(self, anything: str) -> None:
        """Any text is an address, or raises L{AddressError}."""
        with contextlib.suppress(AddressError):
            parse_address(anything)


class PrefixTests(SynchronousTestCase):
    """Tests for L{parse_prefix} and L{Prefix}."""

    def test_problems(self) -> None:
        """An invalid prefix is rejected with Go's message."""
        for bad, reason in {
            "10.0.0.0": "no '/'",
            "10.0.0/8": 'ParseAddr("10.0.0"): IPv4 address too short',
            "fe80::1%eth0/64": "IPv6 zones cannot be present in a prefix",
            "10.0.0.0/08": 'bad bits after slash: "08"',
            "10.0.0.0/": 'bad bits after slash: ""',
            "10.0.0.0/+8": 'bad bits after slash: "+8"',
            f"10.0.0.0/{'9' * 99}": f'bad bits after slash: "{"9" * 99}"',
            "10.0.0.0/33": "prefix length out of range",
            "::/129": "prefix length out of range",
        }.items():
            with self.assertRaises(AddressError) as raised:
                parse_prefix(bad)
            self.assertEqual(str(raised.exception), f'netip.ParsePrefix("{bad}"): {reason}')

    @given(ip_addresses(v=4), integers(0, 32), integers(0, 32))
    def test_masked(self, address: IPv4Address, bits: int, more: int) -> None:
        """A prefix has the parsed address, and its masked form is the same block."""
        prefix = parse_prefix(f"{address}/{bits}")
        masked = prefix.masked()
        self.assertEqual(prefix.address, address)
        self.assertTrue(prefix.contains(address) and masked.contains(address))
        self.assertTrue(prefix.covers(masked) and masked.covers(prefix))
        self.assertEqual(masked.masked(), masked)
        self.assertEqual(prefix.covers(Prefix(address, more)), more >= bits)

    def test_families(self) -> None:
        """Addresses of one IP family are not in a block of the other."""
        self.assertFalse(parse_prefix("0.0.0.0/0").contains(IPv6Address("::1")))
        self.assertFalse(parse_prefix("::/0").covers(parse_prefix("10.0.0.0/8")))
