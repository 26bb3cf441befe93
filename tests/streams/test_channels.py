"""Tests for L{kubetwist.streams.channels}."""

from __future__ import annotations

import contextlib
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams import channels
from kubetwist.streams.channels import (
    MAX_BASE64_MESSAGE,
    PROTOCOLS,
    V4,
    V5,
    BadMessage,
    ChannelClosed,
    ChannelData,
    ChannelReader,
    ready_channel,
    select_protocol,
)

pieces = st.lists(st.binary(max_size=10), min_size=1, max_size=4)


class ChannelReaderTests(SynchronousTestCase):
    """Decoding of messages."""

    @given(st.sampled_from(sorted(PROTOCOLS)), st.integers(0, 4), st.binary(max_size=40), st.lists(st.integers(0, 40)))
    def test_roundtrip(self, name: str, channel: int, data: bytes, cuts: list[int]) -> None:
        """Data is decoded for its channel in every protocol, however the message is split."""
        protocol = PROTOCOLS[name]
        message = protocol.message(channel, data)
        bounds = sorted({0, len(message), *(cut % len(message) for cut in cuts)})
        reader = ChannelReader(protocol)
        result = b""
        for start, end in pairwise(bounds):
            brought = reader.feed(message[start:end], end == len(message))
            if brought is not None:
                assert isinstance(brought, ChannelData)
                self.assertEqual(channel, brought.channel)
                result += brought.data
        self.assertEqual(data, result)

    @given(st.sampled_from(sorted(PROTOCOLS)), st.lists(pieces, max_size=4))
    def test_any_bytes(self, name: str, messages: list[list[bytes]]) -> None:
        """Any message is decoded, ignored or rejected."""
        reader = ChannelReader(PROTOCOLS[name])
        with contextlib.suppress(BadMessage):
            for message in messages:
                for at, piece in enumerate(message, 1):
                    reader.feed(piece, at == len(message))

    def test_close(self) -> None:
        """Since v5 a channel can be closed; before, 255 is a channel that does not exist."""
        self.assertEqual(ChannelClosed(0), ChannelReader(PROTOCOLS[V5]).feed(b"\xff\0", True))
        reader = ChannelReader(PROTOCOLS[V5])
        self.assertIsNone(reader.feed(b"\xff", False))
        self.assertEqual(ChannelClosed(4), reader.feed(b"\4", True))
        self.assertEqual(ChannelData(0, b"x"), reader.feed(b"\0x", True))
        self.assertIsNone(ChannelReader(PROTOCOLS[V4]).feed(b"\xff\0", True))

    def test_bad_close(self) -> None:
        """Closing no channel, several channels or an invalid channel is a protocol error."""
        for message in (b"\xff", b"\xff\0\0", b"\xff\5"):
            self.assertRaises(BadMessage, ChannelReader(PROTOCOLS[V5]).feed, message, True)

    def test_nothing(self) -> None:
        """Empty messages and messages for invalid channels are ignored."""
        reader = ChannelReader(PROTOCOLS[V5])
        self.assertIsNone(reader.feed(b"", True))
        self.assertIsNone(reader.feed(b"\5abc", True))
        self.assertIsNone(reader.feed(b"\0", True))
        self.assertEqual(ChannelData(1, b"x"), reader.feed(b"\1x", True))

    def test_base64(self) -> None:
        """In base64 protocols the channel is a digit; invalid base64 is ignored, and too long messages are rejected."""
        protocol = PROTOCOLS[channels.BASE64_V4]
        self.assertEqual(b"1Zm9v", protocol.message(1, b"foo"))
        reader = ChannelReader(protocol)
        self.assertIsNone(reader.feed(b"0Zm", False))
        self.assertEqual(ChannelData(0, b"foo"), reader.feed(b"9v", True))
        self.assertIsNone(reader.feed(b"0!!", True))
        self.assertIsNone(reader.feed(b"9Zm9v", True))
        for _ in range(MAX_BASE64_MESSAGE // 4096):
            self.assertIsNone(reader.feed(b"0" * 4096, False))
        self.assertRaises(BadMessage, reader.feed, b"0", False)

    def test_select_protocol(self) -> None:
        """The client's first supported subprotocol is selected; no requested subprotocol stands for the unnamed one."""
        self.assertEqual(V4, select_protocol(["x", V4, V5], [V5, V4]))
        self.assertIsNone(select_protocol(["x"], [V5, V4]))
        self.assertIsNone(select_protocol([], [V5]))
        self.assertEqual("", select_protocol([], [V5, ""]))

    def test_ready_channel(self) -> None:
        """The start of a command is announced on its first output channel."""
        self.assertEqual([1, 1, 2, 3], [ready_channel(*one) for one in [(1, 1), (1, 0), (0, 1), (0, 0)]])
