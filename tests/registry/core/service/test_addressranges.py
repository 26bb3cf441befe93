"""Tests of L{kubetwist.registry.core.service.addressranges}."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.service.addressranges import AddressRange, usable_ranges


class RangeTests(SynchronousTestCase):
    """Tests of L{AddressRange}."""

    def test_ends(self) -> None:
        """The address of the network and the IPv4 broadcast address are excluded."""
        for cidr, first, last, size in (
            ("10.0.0.0/24", "10.0.0.1", "10.0.0.254", 254),
            ("10.0.0.0/30", "10.0.0.1", "10.0.0.2", 2),
            ("fd00::/120", "fd00::1", "fd00::ff", 255),
        ):
            found = AddressRange.read(cidr)
            self.assertEqual((found.text(found.first), found.text(found.last), found.size), (first, last, size))

    def test_covers(self) -> None:
        """An address of the other IP family is not in the range."""
        found = AddressRange.read("10.0.0.0/24")
        self.assertTrue(found.covers(ip_address("10.0.0.1")))
        for text in ("10.0.0.0", "10.0.0.255", "10.0.1.1", str(ip_address(int(ip_address("10.0.0.1")) | 1 << 100))):
            self.assertFalse(found.covers(ip_address(text)), text)

    @given(st.integers(8, 30))
    def test_split(self, prefix: int) -> None:
        """The lower part for static allocation has 16 to 256 addresses; small ranges have none."""
        found = AddressRange.read(f"10.0.0.0/{prefix}")
        lower = found.split - found.first
        self.assertTrue(16 <= lower <= 256 if found.size > 16 else lower == 0)


class UsableTests(SynchronousTestCase):
    """Tests of L{usable_ranges}."""

    def ranges(self, *conditions: dict[str, str], **meta: str) -> tuple[str, ...]:
        """Return the ranges of a ServiceCIDR."""
        obj: dict[str, Any] = {"metadata": meta, "spec": {"cidrs": ["10.0.0.0/24", "10.0.0.0/24"]}}
        return usable_ranges({**obj, "status": {"conditions": list(conditions)}})

    def test_ready(self) -> None:
        """A range is used if it is ready or has no condition; duplicates are removed."""
        self.assertEqual(self.ranges(), ("10.0.0.0/24",))
        self.assertEqual(self.ranges({"type": "Ready", "status": "True"}), ("10.0.0.0/24",))
        self.assertEqual(self.ranges({"type": "Ready", "status": "False"}), ())
        self.assertEqual(self.ranges(deletionTimestamp="2026-01-01T00:00:00Z"), ())
