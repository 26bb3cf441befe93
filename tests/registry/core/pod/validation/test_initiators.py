"""Tests of L{kubetwist.registry.core.pod.validation.initiators}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.validation.initiators import validate_initiator


class InitiatorTests(SynchronousTestCase):
    """Tests of L{validate_initiator}."""

    def test_kinds(self) -> None:
        """A name has one of three formats."""
        for name in ("iqn.2015-02.example.com:disk", f"eui.{'0' * 16}", f"naa.{'a' * 32}"):
            self.assertEqual(list(validate_initiator(name)), [], name)
        for name in ("", "x", "iqn.2015-02.example.com", "iqn.2015-02.example.com:", "eui.0", "naa.0"):
            self.assertEqual(list(validate_initiator(name)), ["must be valid format"], name)

    @given(st.text(alphabet="iqn.2015-0x:, ", max_size=30))
    def test_odd_characters(self, name: str) -> None:
        """The text after the last colon has no separators."""
        if not validate_initiator(f"iqn.2015-02.example.com:{name}"):
            self.assertNotIn(name[-1:], (",", " ", ""))

    def test_long(self) -> None:
        """The validation of long names takes linear time."""
        self.assertEqual(list(validate_initiator("iqn.2015-02." + "a.-" * 200_000)), ["must be valid format"])
