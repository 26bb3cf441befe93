"""Tests of L{kubetwist.registry.generic.validation.addresses}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.validation.addresses import address_warnings


class AddressTests(SynchronousTestCase):
    """Tests of L{address_warnings}."""

    def test_forms(self) -> None:
        """Addresses in a non-canonical form cause a warning with the canonical form."""
        for text, warning in (
            ("10.0.0.1", ""),
            ("::1", ""),
            ("010.0.0.1", 'p: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"'),
            ("::ffff:10.0.0.1", 'p: non-standard IP address "::ffff:10.0.0.1" is invalid: use "10.0.0.1"'),
            ("0::1", 'p: IPv6 address "0::1" should be in RFC 5952 canonical format ("::1")'),
            ("FD00::A", 'p: IPv6 address "FD00::A" should be in RFC 5952 canonical format ("fd00::a")'),
            ("10.0.0.256", ""),
            ("example.com", ""),
        ):
            self.assertEqual(address_warnings(text, "p"), [warning] if warning else [], text)

    @given(st.ip_addresses())
    def test_canonical(self, address: object) -> None:
        """A canonical address causes no warning, except for an IPv4-mapped one."""
        mapped = getattr(address, "ipv4_mapped", None)
        self.assertEqual(bool(address_warnings(str(address), "p")), mapped is not None)
