"""Tests of L{kubetwist.http.http2.headerblocks}, for both decoders of jh2, with the library hpack as encoder."""

from __future__ import annotations

import contextlib
from typing import Any

import jh2.hpack
from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.http2 import headerblocks
from kubetwist.http.http2.frames import COMPRESSION_ERROR, Http2ConnectionError
from kubetwist.http.http2.headerblocks import HeaderDecoder, HeaderListTooLarge

_FIELDS = st.lists(st.tuples(st.binary(min_size=1, max_size=50), st.binary(max_size=200)), max_size=20)


class DecoderTests(SynchronousTestCase):
    """L{HeaderDecoder} with the decoder of jh2 that is used."""

    def decoder(self, max_size: int = 1 << 16) -> HeaderDecoder:
        """Return a decoder."""
        return HeaderDecoder(max_size, 100)

    def refused(self, *blocks: bytes) -> None:
        """Assert that the last block is refused with COMPRESSION_ERROR."""
        decoder = self.decoder()
        for block in blocks[:-1]:
            decoder.decode(block)
        error = self.assertRaises(Http2ConnectionError, decoder.decode, blocks[-1])
        self.assertEqual(error.code, COMPRESSION_ERROR)

    def test_order(self) -> None:
        """Blocks of one connection are decoded in order, with and without Huffman codes."""
        encoder, decoder = Encoder(), self.decoder()
        fields = [(b"a", bytes(range(256))), (b"user-agent", b"kubectl/v1.36.2"), (b":method", b"GET")]
        for huffman in (True, False, True):
            decoded = decoder.decode(encoder.encode(fields, huffman=huffman))
            self.assertEqual([(bytes(one[0]), bytes(one[1])) for one in decoded], fields)

    def test_table_changed(self) -> None:
        """A block that adds fields changes the table, and one with the same fields again does not."""
        encoder, decoder = Encoder(), self.decoder()
        changes = []
        for fields in ([(b"a", b"b")], [(b"a", b"b"), (b":method", b"GET")], [(b"c", b"d")]):
            decoder.decode(encoder.encode(fields))
            changes.append(decoder.table_changed)
        self.assertEqual(changes, [True, False, True])

    def test_truncated(self) -> None:
        """Truncated blocks are refused."""
        for block in ("4e", "13", "00016181d4bd7c", "3ff1cd", "40", "ff", "7f80"):
            self.refused(bytes.fromhex(block))

    def test_invalid(self) -> None:
        """Unknown indices, endless numbers and invalid Huffman codes are refused."""
        for block in ("80", "be", "ffffffffffffffff", "40016181 00", "40016184ffffffff", "40016182 ffff"):
            self.refused(bytes.fromhex(block))

    def test_table_size(self) -> None:
        """The table changes its size at the start of a block, twice at most, and not beyond 4096 bytes."""
        decoder = self.decoder()
        self.assertEqual(len(decoder.decode(b"\x20\x3f\xe1\x1f\x82")), 1)
        self.refused(b"\x82\x20")
        self.refused(b"\x20\x20\x20")
        self.refused(b"\x3f\xe2\x1f")

    def test_large(self) -> None:
        """A list over the limit is refused, even if its block is short."""
        encoder = Encoder()
        decoder = self.decoder(10_000)
        decoder.decode(encoder.encode([(b"a", b"x" * 1000)]))
        self.assertRaises(HeaderListTooLarge, decoder.decode, encoder.encode([(b"a", b"x" * 1000)] * 20))

    def test_many(self) -> None:
        """A list with too many fields is refused before it is decoded."""
        self.assertEqual(len(self.decoder().decode(b"\x82" * 100)), 100)
        self.assertRaises(HeaderListTooLarge, self.decoder().decode, b"\x82" * 101)


class AnyBlockTests(SynchronousTestCase):
    """Generated blocks."""

    @given(st.lists(_FIELDS, max_size=4), st.booleans())
    def test_any(self, lists: list[list[tuple[bytes, bytes]]], huffman: bool) -> None:
        """Blocks of one connection are decoded in order."""
        encoder, decoder = Encoder(), HeaderDecoder(1 << 16, 1000)
        for fields in lists:
            decoded = decoder.decode(encoder.encode(fields, huffman=huffman))
            self.assertEqual([(bytes(one[0]), bytes(one[1])) for one in decoded], fields)

    @given(st.binary(max_size=300))
    def test_garbage(self, block: bytes) -> None:
        """Any bytes are decoded or refused."""
        with contextlib.suppress(Http2ConnectionError, HeaderListTooLarge):
            HeaderDecoder(1 << 16, 1000).decode(block)


class PythonDecoderTests(DecoderTests):
    """The same with the decoder in Python, which is used where jh2 has no compiled module."""

    def setUp(self) -> None:
        """Use the other decoder."""
        names: tuple[str, ...] = ("Decoder", "HPACKError", "OversizedHeaderListError")
        for name in names:
            replacement: Any = getattr(jh2.hpack, name)
            self.patch(headerblocks, name, replacement)
