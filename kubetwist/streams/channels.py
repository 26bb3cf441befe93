"""Channels of a WebSocket: several streams in one connection, distinguished by the first byte of each message."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Final

from attrs import frozen

# The channels of a command.
STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
#: Not a channel: the next byte is the number of a channel that its sender closes.
CLOSE: Final = 255

#: Maximum length of a base64 message, which is decoded when it is complete.
MAX_BASE64_MESSAGE: Final = 1 << 20

V1: Final = "channel.k8s.io"
V2: Final = "v2.channel.k8s.io"
V3: Final = "v3.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"
V5: Final = "v5.channel.k8s.io"
BASE64_V1: Final = "base64.channel.k8s.io"
BASE64_V4: Final = "v4.base64.channel.k8s.io"


class BadMessage(Exception):
    """A protocol error, which ends the connection."""


@frozen
class ChannelData:
    """Data of a channel."""

    channel: int
    data: bytes


@frozen
class ChannelClosed:
    """The end of a channel."""

    channel: int


@frozen
class ChannelProtocol:
    """
    A WebSocket subprotocol.

    @ivar base64: Messages are text: the channel's digit, and its data in base64.
    @ivar closes: Single channels can be closed.
    @ivar versioned: Errors are Status objects; otherwise plain text.
    @ivar channels: Number of channels.
    """

    base64: bool
    closes: bool
    versioned: bool
    channels: int

    def message(self, channel: int, data: bytes) -> bytes:
        """Encode data of a channel as a message."""
        if self.base64:
            return b"%d%b" % (channel, b64encode(data))
        return bytes((channel,)) + data


#: The subprotocols that kubelets support for commands. The old protocols do not define the channels for errors and
#: terminal sizes; kubelets open these channels in all protocols.
PROTOCOLS: Final = {
    "": ChannelProtocol(False, False, False, 5),
    V1: ChannelProtocol(False, False, False, 5),
    BASE64_V1: ChannelProtocol(True, False, False, 5),
    V4: ChannelProtocol(False, False, True, 5),
    BASE64_V4: ChannelProtocol(True, False, True, 5),
    V5: ChannelProtocol(False, True, True, 5),
}


def select_protocol(requested: Sequence[str], offered: Sequence[str]) -> str | None:
    """
    Return the first requested subprotocol that is offered.

    @param requested: Requested subprotocols; an empty list stands for C{""}.
    @param offered: Supported subprotocols.
    @return: The subprotocol; L{None} if none is supported.
    """
    return next((one for one in requested or [""] if one in offered), None)


class ChannelReader:
    """Decodes messages piece by piece; buffers base64 messages only."""

    def __init__(self, protocol: ChannelProtocol) -> None:
        self._protocol = protocol
        self._channel: int | None = None
        self._buffer = bytearray()

    def feed(self, data: bytes, finished: bool) -> ChannelData | ChannelClosed | None:
        """
        Decode a piece of a message.

        @param data: The piece.
        @param finished: Whether it is the last piece of the message.
        @return: Data or end of a channel; L{None} if the message is incomplete or its channel does not exist.
        @raise BadMessage: Protocol error.
        """
        if self._protocol.base64:
            return self._feed_base64(data, finished)
        if self._channel is None:
            if not data:
                return None
            self._channel, data = data[0], data[1:]
        channel = self._channel
        if finished:
            self._channel = None
        if channel == CLOSE and self._protocol.closes:
            return self._feed_close(data, finished)
        return ChannelData(channel, data) if channel < self._protocol.channels and data else None

    def _feed_close(self, data: bytes, finished: bool) -> ChannelClosed | None:
        self._buffer += data
        if len(self._buffer) > 1 or (finished and not self._buffer):
            raise BadMessage("Single channel byte should follow stream close signal")
        if not finished:
            return None
        closed = self._buffer[0]
        self._buffer.clear()
        if closed >= self._protocol.channels:
            raise BadMessage(f"Close is targeted for a channel {closed} that is not valid, possible protocol error")
        return ChannelClosed(closed)

    def _feed_base64(self, data: bytes, finished: bool) -> ChannelData | None:
        self._buffer += data
        if len(self._buffer) > MAX_BASE64_MESSAGE:
            raise BadMessage(f"a message has more than {MAX_BASE64_MESSAGE} bytes")
        if not finished or not self._buffer:
            return None
        channel, text = self._buffer[0] - ord("0"), bytes(self._buffer[1:])
        self._buffer.clear()
        if not 0 <= channel < self._protocol.channels:
            return None
        try:
            decoded = b64decode(text, validate=True)
        except Base64Error:
            return None
        return ChannelData(channel, decoded) if decoded else None


def ready_channel(stdout: bool, stderr: bool) -> int:
    """Return the channel whose empty message announces that the command starts."""
    return STDOUT if stdout else STDERR if stderr else ERROR
