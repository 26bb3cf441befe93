"""Tests for L{kubetwist.streams.spdyframes}."""

from __future__ import annotations

import contextlib
import struct
import zlib
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams.spdyframes import (
    DICTIONARY,
    MAX_BLOCK,
    MAX_CONTROL,
    MAX_HEADERS,
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    HeadersFrame,
    Ping,
    RstStream,
    Settings,
    SPDYError,
    SynReply,
    SynStream,
    WindowUpdate,
)

numbers = st.integers(1, (1 << 31) - 1)
words = st.integers(0, (1 << 32) - 1)
texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12).filter(
    lambda name: name not in ("host", "connection", "keep-alive", "proxy-connection", "transfer-encoding")
)
headers = st.dictionaries(names, texts, max_size=5)
frames = st.one_of(
    st.builds(SynStream, numbers, headers, st.booleans(), st.booleans(), st.integers(0, 100), st.integers(0, 7)),
    st.builds(SynReply, numbers, headers, st.booleans()),
    st.builds(HeadersFrame, numbers, headers, st.booleans()),
    st.builds(RstStream, numbers, st.integers(1, 11)),
    st.builds(Ping, st.integers(1, (1 << 32) - 1)),
    st.builds(GoAway, st.integers(0, (1 << 31) - 1), words),
    st.builds(WindowUpdate, st.integers(0, (1 << 31) - 1), numbers),
    st.builds(
        Settings,
        st.dictionaries(st.integers(1, 8), st.tuples(st.integers(0, 3), words), max_size=8),
        st.booleans(),
    ),
    st.builds(Data, numbers, st.binary(max_size=40), st.booleans()),
)


def read(reader: FrameReader, data: bytes, cuts: list[int] | None = None) -> list[Frame]:
    """Return all frames in C{data}, which is fed in pieces; pieces of DATA frames are joined."""
    result: list[Frame] = []
    bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or ())})
    # A DATA frame is complete when the next frame begins.
    unfinished = b""
    for start, end in pairwise(bounds):
        reader.feed(data[start:end])
        while (frame := reader.next()) is not None:
            if isinstance(frame, Data) and reader._data_remaining:
                unfinished += frame.data
                continue
            if isinstance(frame, Data):
                frame = Data(frame.stream, unfinished + frame.data, frame.fin)
                unfinished = b""
            result.append(frame)
    return result


def control(kind: int, payload: bytes, flags: int = 0, version: int = 3) -> bytes:
    """Return a control frame with any content."""
    return struct.pack(">HHI", 0x8000 | version, kind, flags << 24 | len(payload)) + payload


def packed(block: bytes, number: int = 1) -> bytes:
    """Return a SYN_REPLY with these headers."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    return control(2, struct.pack(">I", number) + deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH))


def text(value: bytes) -> bytes:
    """Return an encoded name or value of a header block."""
    return struct.pack(">I", len(value)) + value


class FrameTests(SynchronousTestCase):
    """Encoded frames are decoded."""

    def test_dictionary(self) -> None:
        """The compression dictionary has the checksum of the specification."""
        self.assertEqual(0xE3C6A7C2, zlib.adler32(DICTIONARY))

    @given(st.lists(frames, max_size=8), st.lists(st.integers(0, 10000), max_size=20))
    def test_roundtrip(self, sent: list[Frame], cuts: list[int]) -> None:
        """Frames are decoded correctly wherever their bytes are split."""
        writer = FrameWriter()
        self.assertEqual(sent, read(FrameReader(), b"".join(writer.write(frame) for frame in sent), cuts))

    def test_every_cut(self) -> None:
        """Frames are decoded from single bytes."""
        writer = FrameWriter()
        sent: list[Frame] = [SynStream(1, {"streamtype": "error"}), Data(1, b"abc", True), Ping(1)]
        data = b"".join(writer.write(frame) for frame in sent)
        self.assertEqual(sent, read(FrameReader(), data, list(range(len(data)))))

    def test_large_data(self) -> None:
        """A DATA frame is returned in pieces as it arrives, without buffering."""
        reader = FrameReader()
        reader.feed(struct.pack(">II", 5, 1 << 24 | 1_000_000))
        self.assertIsNone(reader.next())
        for number in range(100):
            reader.feed(b"x" * 10_000)
            self.assertEqual(Data(5, b"x" * 10_000, number == 99), reader.next())
            self.assertIsNone(reader.next())
            self.assertEqual(len(reader._buffer), reader._offset)

    def test_several_values(self) -> None:
        """Several values of a header are kept in one string."""
        sent = SynStream(1, {"port": "80\x0081"})
        self.assertEqual([sent], read(FrameReader(), FrameWriter().write(sent)))


class InvalidFrameTests(SynchronousTestCase):
    """Invalid data is rejected at low cost."""

    @given(st.binary(max_size=200))
    def test_any_bytes(self, data: bytes) -> None:
        """Any received bytes are decoded or raise SPDYError."""
        with contextlib.suppress(SPDYError):
            read(FrameReader(), data)

    @given(st.sampled_from([1, 2, 3, 4, 6, 7, 8, 9]), st.binary(max_size=60), st.integers(0, 255))
    def test_any_payload(self, kind: int, payload: bytes, flags: int) -> None:
        """Any content of a control frame is decoded or raises SPDYError."""
        with contextlib.suppress(SPDYError):
            read(FrameReader(), control(kind, payload, flags))

    @given(st.binary(max_size=60))
    def test_any_block(self, block: bytes) -> None:
        """Any content of a header block is decoded or raises SPDYError."""
        with contextlib.suppress(SPDYError):
            read(FrameReader(), packed(block))

    def refused(self, data: bytes, reason: str) -> None:
        """Assert that C{data} is rejected."""
        error = self.assertRaises(SPDYError, read, FrameReader(), data)
        self.assertIn(reason, str(error))

    def test_bomb(self) -> None:
        """Headers above the maximum decompressed size are rejected without decompressing them."""
        block = struct.pack(">I", 1) + text(b"a") + text(b"x" * 40_000_000)
        data = packed(block)
        # Data above the maximum was not decompressed.
        self.refused(data, "invalid length for its type")
        small = packed(struct.pack(">I", 1) + text(b"a") + text(b"x" * 2_000_000))
        self.assertLess(len(small), MAX_CONTROL)
        self.refused(small, f"more than {MAX_BLOCK} bytes")

    def test_announced_length(self) -> None:
        """A control frame that is too large is rejected when its header has arrived."""
        self.refused(struct.pack(">HHI", 0x8003, 1, MAX_CONTROL + 1), "invalid length for its type")

    def test_many_headers(self) -> None:
        """The number of headers is limited."""
        count = MAX_HEADERS + 1
        block = struct.pack(">I", count) + b"".join(text(b"h%d" % n) + text(b"") for n in range(count))
        self.refused(packed(block), f"more than {MAX_HEADERS} headers")

    def test_many_settings(self) -> None:
        """The number of settings must match the frame's length and is limited."""
        self.refused(control(4, struct.pack(">I", 2) + b"\0" * 8), "invalid length")
        self.refused(control(4, struct.pack(">I", 1000) + b"\0" * 8000), "invalid length")

    def test_odd_headers(self) -> None:
        """Upper-case names, duplicate names and hop-by-hop headers are rejected."""
        for block, reason in [
            (struct.pack(">I", 1) + text(b"Port") + text(b"80"), "not lowercased"),
            (struct.pack(">I", 2) + (text(b"port") + text(b"80")) * 2, "same name"),
            (struct.pack(">I", 1) + text(b"connection") + text(b"close"), "invalid header"),
            (struct.pack(">I", 1) + text(b"port") + text(b"80") + b"more", "incorrect"),
            (struct.pack(">I", 2) + text(b"port") + text(b"80"), "incorrect"),
            (struct.pack(">I", 1) + struct.pack(">I", 1 << 31) + b"x", "incorrect"),
        ]:
            self.refused(packed(block), reason)
        self.refused(FrameWriter().write(SynStream(1, {"host": "x"})), "invalid header")

    def test_odd_frames(self) -> None:
        """Other versions, unknown types, invalid lengths and stream id 0 are rejected."""
        for data, reason in [
            (control(6, b"\0\0\0\1", version=2), "another version"),
            (control(10, b""), "unknown type"),
            (control(3, b"\0\0\0\1\0\0\0\0"), "without a reason"),
            (control(3, b"\0\0\0\0\0\0\0\1"), "zero"),
            (control(6, b"\0\0\0\0"), "zero"),
            (control(3, b"\0\0\0\1\0\0\0\1\0"), "invalid length"),
            (struct.pack(">II", 0, 3) + b"abc", "zero"),
        ]:
            self.refused(data, reason)

    def test_packed_again(self) -> None:
        """Header compression keeps its state between frames; bytes after the compressed data are rejected."""
        writer, reader = FrameWriter(), FrameReader()
        first, second = (writer.write(SynReply(1, {"streamtype": "stdout"})) for _ in range(2))
        self.assertLess(len(second), len(first))
        self.assertEqual(2, len(read(reader, first + second)))
        self.refused(second, "decompress")
