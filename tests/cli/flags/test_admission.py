"""Tests for L{kubetwist.cli.flags.admission}."""

from __future__ import annotations

from ipaddress import ip_address

from ..commandlines import CommandLineTestCase, parsed


class AdmissionTests(CommandLineTestCase):
    """Denied networks of webhooks."""

    def test_networks_for_webhooks(self) -> None:
        """URLs of webhooks must not resolve to metadata services by default. Repeated flags are merged."""
        flag = "--webhook-url-denied-cidrs"
        default = parsed()["webhook-url-denied-cidrs"]
        for address in ("169.254.169.254", "fe80::1", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"):
            self.assertTrue(any(ip_address(address) in network for network in default), address)
        self.assertFalse(any(ip_address("127.0.0.1") in network for network in default))
        self.assertEqual(parsed(f"{flag}=")["webhook-url-denied-cidrs"], ())
        both = parsed(f"{flag}=10.0.0.0/8", f"{flag}=fd00::/8,127.0.0.1")["webhook-url-denied-cidrs"]
        self.assertEqual([str(network) for network in both], ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"])
        self.assert_rejected(
            'invalid argument "10.0.0.1/8" for "--webhook-url-denied-cidrs" flag: it must be networks such as'
            " 169.254.0.0/16: 10.0.0.1/8 has host bits set",
            f"{flag}=10.0.0.1/8",
        )
