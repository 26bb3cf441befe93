"""Tests for L{kubetwist.api.addresses}."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.addresses import format_ip, parse_cidr, parse_ip, validate_cidr, validate_ip


class AddressTests(SynchronousTestCase):
    """Tests for the validation of addresses and CIDR blocks."""

    def test_not_an_address(self) -> None:
        """Text that is not an address is rejected with an example of an address."""
        for text in ("", "1.2.3", "1.2.3.256", "fe80::1%eth0", "a", "1.2.3.4 ", "1" * 100, "٣.1.1.1"):
            self.assertIsNone(parse_ip(text), text)
            self.assertEqual(validate_ip(text), ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"])

    def test_leading_zeros(self) -> None:
        """Leading zeros are accepted for old fields only."""
        self.assertEqual(str(parse_ip("010.001.0.0")), "10.1.0.0")
        self.assertEqual(validate_ip("010.1.1.1"), ["must not have leading 0s"])
        self.assertEqual(validate_ip("010.1.1.1", strict=False, canonical=False), [])

    def test_mapped(self) -> None:
        """IPv4-mapped IPv6 is accepted for old fields only, and is shown as IPv4."""
        self.assertEqual(validate_ip("::ffff:1.2.3.4"), ["must not be an IPv4-mapped IPv6 address"])
        address = parse_ip("::ffff:1.2.3.4")
        assert address is not None
        self.assertEqual(format_ip(address), "1.2.3.4")

    def test_canonical(self) -> None:
        """Names require the canonical form of an address."""
        self.assertEqual(validate_ip("2001:db8:0:0::1"), ['must be in canonical form ("2001:db8::1")'])
        self.assertEqual(validate_ip("2001:db8:0:0::1", canonical=False), [])

    def test_blocks(self) -> None:
        """A block is an address and a prefix length with no bits beyond it."""
        for good in ("10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::/64"):
            self.assertEqual(validate_cidr(good), [], good)
        for bad in ("10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+1", "/8", "10.0.0.0/8/8", "10.0.0.0/ 8"):
            self.assertEqual(
                validate_cidr(bad), ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"], bad
            )
        self.assertEqual(validate_cidr("10.0.0.1/8"), ["must not have bits set beyond the prefix length"])
        self.assertEqual(validate_cidr("10.0.0.0/08"), ["must not have leading 0s in IP or prefix length"])
        self.assertEqual(validate_cidr("::ffff:1.2.3.0/120"), ["must not have an IPv4-mapped IPv6 address"])
        self.assertEqual(validate_cidr("FD00::/8"), ['must be in canonical form ("fd00::/8")'])
        self.assertEqual(validate_cidr("10.0.0.1/8", strict=False, canonical=False), [])

    @given(st.ip_addresses())
    def test_round_trip(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
        """The canonical form of any address is valid and is parsed as that address."""
        self.assertEqual(parse_ip(str(address)), address)
        if not (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped):
            self.assertEqual(validate_ip(format_ip(address)), [])

    @given(st.text(st.sampled_from("0123456789abcdef:./")))
    def test_any_text(self, text: str) -> None:
        """The parsers accept or reject any text."""
        self.assertIsInstance(validate_ip(text), list)
        self.assertIsInstance(validate_cidr(text), list)
        parse_cidr(text)
