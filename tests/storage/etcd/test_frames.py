"""Tests for L{kubetwist.storage.etcd._frames}."""

from __future__ import annotations

import contextlib
from typing import Any

from hpack import Decoder, Encoder
from hyperframe.frame import ContinuationFrame, DataFrame, HeadersFrame, PingFrame, WindowUpdateFrame
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcd._errors import ProtocolError
from kubetwist.storage.etcd._frames import (
    DATA,
    END_HEADERS,
    HEADERS,
    MAX_CONTINUATIONS,
    MAX_FRAME_SIZE,
    PING,
    WINDOW_UPDATE,
    FrameReader,
    Head,
    HeadWriter,
    MessageReader,
    frame_header,
    http_code,
    parse_frame,
    prefixed,
    read_head,
)

from .peer import cut

places = st.lists(st.integers(0, 3000), max_size=20)


@st.composite
def frames(draw: Any) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    """Return strategies for encoded frames, with kind, stream and content of the decoded frame."""
    stream = draw(st.integers(1, 1 << 30))
    # hyperframe does not parse HEADERS frames that only have padding.
    content = draw(st.binary(min_size=1, max_size=80))
    kind = draw(st.sampled_from(["data", "headers", "continued", "ping", "window"]))
    if kind == "ping":
        opaque = draw(st.binary(min_size=8, max_size=8))
        return PingFrame(0, opaque).serialize(), [(PING, 0, opaque)]
    if kind == "window":
        frame = WindowUpdateFrame(stream, 7)
        return frame.serialize(), [(WINDOW_UPDATE, stream, frame.serialize_body())]
    padding = draw(st.sampled_from([None, 0, 9]))
    flags = [] if padding is None else ["PADDED"]
    if kind == "data":
        return DataFrame(stream, content, pad_length=padding or 0, flags=flags).serialize(), [(DATA, stream, content)]
    if draw(st.booleans()):
        flags.append("PRIORITY")
    parts = (
        [content] if kind == "headers" else [content, *draw(st.lists(st.binary(max_size=50), min_size=1, max_size=4))]
    )
    wire = []
    for number, part in enumerate(parts):
        last = ["END_HEADERS"] if number == len(parts) - 1 else []
        if number:
            wire.append(ContinuationFrame(stream, part, flags=last).serialize())
        else:
            wire.append(HeadersFrame(stream, part, pad_length=padding or 0, flags=[*flags, *last]).serialize())
    return b"".join(wire), [(HEADERS, stream, b"".join(parts))]


class FrameReaderTests(SynchronousTestCase):
    """Tests for L{FrameReader}."""

    @given(st.lists(frames(), max_size=8), places)
    def test_pieces(self, sent: list[tuple[bytes, list[tuple[int, int, bytes]]]], where: list[int]) -> None:
        """Frames are decoded the same however they are split; padding is removed, and header blocks are joined."""
        reader = FrameReader()
        result = []
        for piece in cut(b"".join(wire for wire, _ in sent), where):
            result += reader.feed(piece)
        expected = [one for _, those in sent for one in those]
        self.assertEqual([(kind, stream, content) for kind, _, stream, content, _ in result], expected)

    @given(st.binary(max_size=200), places)
    def test_nonsense(self, data: bytes, where: list[int]) -> None:
        """Any bytes are decoded or raise L{ProtocolError}, however they are split."""

        def outcome(pieces: list[bytes]) -> Any:
            reader = FrameReader()
            try:
                return [frame for piece in pieces for frame in reader.feed(piece)]
            except ProtocolError:
                return "bad"

        self.assertEqual(outcome(cut(data, where)), outcome([data]))

    def test_refused(self) -> None:
        """Invalid HTTP/2 frames, and frames in the wrong order, are rejected."""
        begun = HeadersFrame(1, b"a").serialize()
        for data in (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            frame_header(MAX_FRAME_SIZE + 1, DATA, 0, 1),
            frame_header(0, DATA, 0, 0),
            frame_header(1, DATA, 8, 1) + b"\x05",
            ContinuationFrame(1, b"a").serialize(),
            begun + PingFrame(0, b"12345678").serialize(),
            begun + ContinuationFrame(3, b"a").serialize(),
            begun + ContinuationFrame(1, b"").serialize() * MAX_CONTINUATIONS,
            begun + ContinuationFrame(1, bytes(MAX_FRAME_SIZE)).serialize() * 4,
        ):
            with self.assertRaises(ProtocolError):
                FrameReader().feed(data)
        for kind, content in ((PING, b"short"), (WINDOW_UPDATE, bytes(4)), (4, b"1"), (7, b"1")):
            with self.assertRaises(ProtocolError):
                parse_frame(kind, 0, 0, content)


class HeadTests(SynchronousTestCase):
    """Reading and writing of headers."""

    def block(self, *headers: tuple[bytes, bytes]) -> bytes:
        """Return a header block as etcd encodes it without a dynamic table."""
        encoder = Encoder()
        encoder.header_table_size = 0
        return encoder.encode(headers)

    def test_heads(self) -> None:
        """Responses begin with an HTTP status, and end with a gRPC status and message."""
        kind = (b"content-type", b"application/grpc")
        self.assertEqual(read_head(self.block((b":status", b"200"), kind)), Head(200, True, None, ""))
        self.assertEqual(
            read_head(self.block((b"grpc-status", b"11"), (b"grpc-message", b"etcdserver: 100%25 gr%C3%BCn%"))),
            Head(0, False, 11, "etcdserver: 100% grün%"),
        )
        html = read_head(self.block((b":status", b"502"), (b"content-type", b"text/html")))
        self.assertEqual((html.status, html.grpc, http_code(502), http_code(418)), (502, False, 14, 2))
        self.assertFalse(read_head(self.block((b":status", b"200"), (b"content-type", b"application/grpcx"))).grpc)

    def test_nonsense(self) -> None:
        """Invalid header blocks are rejected, also those that use a dynamic table."""
        encoder = Encoder()
        encoder.encode([(b"grpc-status", b"0")])
        for block in (
            b"\xff",
            encoder.encode([(b"grpc-status", b"0")]),
            b"\x3f\xe1\x1f" + self.block((b"grpc-status", b"0")),
            self.block((b":path", b"/")),
            self.block((b":status", b"200"), (b":status", b"200")),
            self.block((b":status", b"ok")),
            self.block((b"grpc-status", b"-1")),
            self.block((b"grpc-status", b"99999")),
            self.block((b"x", bytes(70_000))),
        ):
            with self.assertRaises(ProtocolError):
                read_head(block)

    @given(st.binary(max_size=60))
    def test_any_bytes(self, block: bytes) -> None:
        """Any bytes are a header block or raise L{ProtocolError}."""
        with contextlib.suppress(ProtocolError):
            self.assertIsInstance(read_head(block), Head)

    @given(
        st.lists(st.one_of(st.sampled_from([b"/a/B", b"/a/C", b"/d/E"]), st.sampled_from([0, 100, 4096, 65536]))),
    )
    def test_written(self, steps: list[Any]) -> None:
        """Blocks that are read in order are decoded for every table size, also when it changes."""
        writer, reader = HeadWriter("etcd:2379", "http"), Decoder()
        for step in steps:
            if isinstance(step, int):
                writer.limit_table(step)
                reader.max_allowed_table_size = step
                continue
            result = dict(reader.decode(writer.block(step, require_leader=step == b"/d/E"), raw=True))
            self.assertEqual((result[b":path"], result[b":authority"]), (step, b"etcd:2379"))
            self.assertEqual(result.get(b"hasleader"), b"true" if step == b"/d/E" else None)

    def test_short(self) -> None:
        """A header that was sent before takes one byte."""
        writer = HeadWriter("etcd:2379", "http")
        for path in (b"/a/B", b"/a/C", b"/a/B", b"/a/C"):
            writer.block(path)
        self.assertEqual([len(writer.block(path)) for path in (b"/a/B", b"/a/C")], [7, 7])
        self.assertTrue(END_HEADERS)


class MessageReaderTests(SynchronousTestCase):
    """Tests for L{MessageReader}."""

    @given(st.lists(st.binary(max_size=100)), places)
    def test_pieces(self, messages: list[bytes], where: list[int]) -> None:
        """Messages are decoded the same however their bytes are split."""
        reader = MessageReader(100)
        result = []
        for piece in cut(b"".join(map(prefixed, messages)), where):
            result += reader.feed(piece)
        self.assertEqual((result, reader.idle), (messages, True))
        self.assertEqual(reader.feed(prefixed(b"rest")[:-1]), [])
        self.assertFalse(reader.idle)

    def test_refused(self) -> None:
        """Messages that are too large or compressed are rejected before they have arrived."""
        for data in (b"\0\0\0\0\x65", b"\1\0\0\0\0"):
            with self.assertRaises(ProtocolError):
                MessageReader(100).feed(data)
