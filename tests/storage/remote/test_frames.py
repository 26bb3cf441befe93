"""Tests for L{kubetwist.storage.remote._frames}."""

from __future__ import annotations

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.remote._frames import (
    MAX_FRAME_SIZE,
    FrameReader,
    ProtocolError,
    encode_frame,
)

_frames = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=40)), max_size=6)


class FrameReaderTests(SynchronousTestCase):
    """The frames in a stream of bytes."""

    @given(frames=_frames, data=st.data())
    def test_fragments(self, frames: list[tuple[int, bytes]], data: st.DataObject) -> None:
        """Frames are the same for every fragmentation of the stream."""
        stream = b"".join(encode_frame(kind, [payload]) for kind, payload in frames)
        cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
        reader = FrameReader()
        found: list[tuple[int, bytes]] = []
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            found += reader.feed(stream[start:end])
        self.assertEqual(found, frames)

    @given(frames=_frames)
    def test_single_bytes(self, frames: list[tuple[int, bytes]]) -> None:
        """A frame is complete with its last byte, and not before."""
        reader = FrameReader()
        for kind, payload in frames:
            encoded = encode_frame(kind, [payload])
            received = [reader.feed(encoded[index : index + 1]) for index in range(len(encoded))]
            self.assertEqual(received, [[]] * (len(encoded) - 1) + [[(kind, payload)]])

    def test_pieces(self) -> None:
        """The pieces of a payload are joined."""
        self.assertEqual(FrameReader().feed(encode_frame(7, [b"ab", b"", b"c"])), [(7, b"abc")])

    def test_oversized(self) -> None:
        """A frame that is announced as too large is refused before its payload arrives."""
        with self.assertRaises(ProtocolError):
            FrameReader().feed(pack("<IB", MAX_FRAME_SIZE + 1, 1))

    def test_oversized_after_another_frame(self) -> None:
        """The size of each frame is checked."""
        with self.assertRaises(ProtocolError):
            FrameReader().feed(encode_frame(1, [b"x"]) + pack("<IB", MAX_FRAME_SIZE + 1, 1))

    def test_oversized_payload(self) -> None:
        """A payload that is too large is not encoded."""
        with self.assertRaises(ValueError):
            encode_frame(1, [bytes(MAX_FRAME_SIZE), b"x"])
