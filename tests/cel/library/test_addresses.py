"""Tests for L{kubetwist.cel.library.addresses} and L{kubetwist.cel.library.urls}."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis.strategies import integers, ip_addresses, text

from tests.cel.library.support import ExpressionTestCase


class AddressTests(ExpressionTestCase):
    """Tests for C{ip}."""

    def test_kinds(self) -> None:
        """An address has a family and properties such as C{isLoopback}."""
        self.assertHolds(
            (
                "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
                "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified() && !ip('::1').isUnspecified()",
                "ip('127.9.9.9').isLoopback() && ip('::1').isLoopback() && !ip('10.0.0.1').isLoopback()",
                "ip('224.0.0.7').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
                "ip('ff02::1').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
                "ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
                "!ip('fd80::1').isLinkLocalUnicast() && !ip('192.168.0.1').isLinkLocalUnicast()",
                "ip('192.168.0.1').isGlobalUnicast() && ip('2001:db8::1').isGlobalUnicast()",
                "!ip('255.255.255.255').isGlobalUnicast() && !ip('0.0.0.0').isGlobalUnicast()",
                "!ip('ff00::1').isGlobalUnicast() && !ip('fe80::1').isGlobalUnicast() && !ip('::1').isGlobalUnicast()",
            )
        )

    def test_forms(self) -> None:
        """C{ip.isCanonical} is true for one form of an address only, to which it is also formatted."""
        self.assertHolds(
            (
                "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP(':::1') && !isIP('01.2.3.4')",
                "!isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4') && !isIP('')",
                "ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd')",
                "!ip.isCanonical('2001:DB8::ABCD') && !ip.isCanonical('2001:db8::0:0:0:abcd')",
                "string(ip('2001:DB8:0::1')) == '2001:db8::1' && ip('::0001') == ip('::1')",
                "ip('::1') != ip('::2') && type(ip('1.2.3.4')) == net.IP",
            )
        )
        self.assertFails(
            {
                "ip('127.0.0.256')": 'IP Address "127.0.0.256" parse error during conversion from string: '
                'ParseAddr("127.0.0.256"): IPv4 field has value >255',
                "ip('fe80::1%eth0')": 'IP address "fe80::1%eth0" with zone value is not allowed',
                "ip('::ffff:1.2.3.4')": 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed',
                "ip.isCanonical('x')": 'IP Address "x" parse error during conversion from string: '
                'ParseAddr("x"): unable to parse IP',
            }
        )

    @given(ip_addresses(), integers(0, 32))
    def test_algebra(self, address: IPv4Address | IPv6Address, bits: int) -> None:
        """The block of an address contains it, and the masked block is the same block."""
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            return
        self.assertHolds(
            (
                "string(ip(x)) == x && ip.isCanonical(x)",
                "cidr(x + '/' + n).containsIP(ip(x)) && cidr(x + '/' + n).containsIP(x)",
                "cidr(x + '/' + n).ip() == ip(x) && string(cidr(x + '/' + n).prefixLength()) == n",
                "cidr(x + '/' + n).masked().containsCIDR(cidr(x + '/' + n))",
                "cidr(x + '/' + n).containsCIDR(x + '/32')",
                "cidr(x + '/' + n).masked().masked() == cidr(x + '/' + n).masked()",
            ),
            x=str(address),
            n=str(bits),
        )

    @given(text("0123456789abf:./%", max_size=20))
    def test_any_text(self, one: str) -> None:
        """C{isIP} and C{isCIDR} are true exactly if C{ip} and C{cidr} succeed."""
        self.assertHolds(("isIP(x) ? ip(x) == ip(x) : true", "isCIDR(x) ? cidr(x) == cidr(x) : true"), x=one)

    def test_costs(self) -> None:
        """Parsing costs a tenth of the length; comparisons depend on the size of addresses."""
        self.assertCosts(
            {
                "ip('127.0.0.100')": 2,
                "ip('127.0.0.1').family()": 2,
                "ip('::1') == ip('::2')": 3,
                "ip.isCanonical('127.0.0.100')": 3,
                "cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))": 3,
                "cidr('10.0.0.0/8').containsIP('10.0.0.1')": 3,
                "cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16')": 6,
                "cidr('10.0.0.0/8').ip()": 2,
            }
        )


class BlockTests(ExpressionTestCase):
    """Tests for C{cidr}."""

    def test_containment(self) -> None:
        """Blocks contain addresses and smaller blocks of their family."""
        self.assertHolds(
            (
                "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP('192.168.1.1')",
                "!cidr('0.0.0.0/0').containsIP('::1') && cidr('::/0').containsIP('::1')",
                "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24')",
                "!cidr('192.168.1.0/24').containsCIDR(cidr('192.168.2.0/24'))",
                "!cidr('192.168.10.0/24').containsCIDR('192.168.0.0/16')",
                "cidr('192.168.0.1/24') != cidr('192.168.0.1/24').masked()",
                "string(cidr('192.168.0.1/24').masked()) == '192.168.0.0/24' && type(cidr('::/0')) == net.CIDR",
                "isCIDR('192.168.0.1/16') && !isCIDR('192.168.0.0/33') && !isCIDR('::ffff:1.2.3.4/96') && !isCIDR('x')",
            )
        )

    def test_failures(self) -> None:
        """The error of an invalid block contains the reason, the error of an invalid address does not."""
        problem = "network address parse error during conversion from string"
        self.assertFails(
            {
                "cidr('10.0.0.0')": f"{problem}: {problem}: netip.ParsePrefix(\"10.0.0.0\"): no '/'",
                "cidr('::ffff:1.2.3.4/96')": f'{problem}: IPv4-mapped IPv6 address "::ffff:1.2.3.4/96" is not allowed',
                "cidr('10.0.0.0/8').containsIP('x')": "no such overload",
                "cidr('10.0.0.0/8').containsCIDR('x')": f"{problem}: {problem}: netip.ParsePrefix(\"x\"): no '/'",
            }
        )
