"""Tests for L{kubetwist.storage.sqlite._checksums}."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.sqlite._wal import checksum


class ChecksumTests(SynchronousTestCase):
    """Tests for L{kubetwist.storage.sqlite._checksums}."""

    @given(st.tuples(*[st.integers(0, 2**32 - 1)] * 2), st.binary(max_size=200), st.booleans())
    def test_checksum(self, before: tuple[int, int], content: bytes, big_endian: bool) -> None:
        """The scalar products equal the loop of SQLite's documentation."""
        content = content[: len(content) // 8 * 8]
        first, second = before
        for one, other in struct.iter_unpack(">II" if big_endian else "<II", content):
            first = (first + one + second) & 0xFFFFFFFF
            second = (second + other + first) & 0xFFFFFFFF
        self.assertEqual(checksum(before, content, big_endian), (first, second))
