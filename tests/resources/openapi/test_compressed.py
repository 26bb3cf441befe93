"""Tests for L{kubetwist.resources.openapi.compressed}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.openapi.compressed import CompressedDocument


class PackedTests(SynchronousTestCase):
    """L{CompressedDocument}."""

    @given(pieces=st.lists(st.binary(max_size=50), max_size=5))
    def test_pieces(self, pieces: list[bytes]) -> None:
        """A document has the same hash and content, regardless of its pieces."""
        found, whole = (CompressedDocument.pieces(some, b"a/b") for some in (pieces, [b"".join(pieces)]))
        self.assertEqual(found.decompress(), b"".join(pieces))
        self.assertEqual((found.hash, found.size), (whole.hash, len(b"".join(pieces))))

    def test_other(self) -> None:
        """Different documents have different hashes."""
        one, other = (CompressedDocument.pack({"a": number}) for number in (1, 2))
        self.assertNotEqual(one.hash, other.hash)
        self.assertEqual((one.decompress(), one.media), (b'{"a":1}', b"application/json"))
