"""
The wire format of protobuf: varints, lengths, and skipped fields.

Functions get the data and a position. At the end of the data they raise C{IndexError}, which the outermost caller
treats as L{UNEXPECTED_EOF}. The error messages equal gogo/protobuf's.
"""

from __future__ import annotations

from typing import Final

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)

UNEXPECTED_EOF: Final = "unexpected EOF"
NEGATIVE_LENGTH: Final = "proto: negative length found during unmarshaling"
OVERFLOW: Final = "proto: integer overflow"

_INT64: Final = 1 << 63
_UINT64: Final = (1 << 64) - 1
_INT32: Final = 1 << 31
_UINT32: Final = (1 << 32) - 1


class WireError(ValueError):
    """The data is not a valid message."""


def varint(data: bytes, position: int) -> tuple[int, int]:
    """
    Decode a varint as an unsigned number.

    @return: The number, and the position after it.
    @raise WireError: The varint has more than ten bytes.
    """
    value = shift = 0
    while True:
        octet = data[position]
        position += 1
        value |= (octet & 127) << shift
        if octet < 128:
            return value & _UINT64, position
        shift += 7
        if shift > 63:
            raise WireError(OVERFLOW)


def encode_varint(value: int) -> bytes:
    """Encode a number as a varint; negative numbers as 64 bits."""
    if 0 <= value < 128:
        return _SHORT[value]
    value &= _UINT64
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    octets.append(value)
    return bytes(octets)


_SHORT: Final = [bytes([value]) for value in range(128)]


def encode_tag(number: int, wire_type: int) -> bytes:
    """Encode the tag of a field."""
    return encode_varint(number << 3 | wire_type)


def encode_length_delimited(number: int, content: bytes) -> bytes:
    """Encode a length-delimited field with its tag."""
    return b"%b%b%b" % (encode_tag(number, LENGTH), encode_varint(len(content)), content)


def length(data: bytes, position: int, end: int) -> tuple[int, int]:
    """
    Decode the length of a length-delimited value.

    @return: The start and the end of the value.
    @raise WireError: The value ends after C{end}.
    """
    size, position = varint(data, position)
    if size >= _INT64:
        raise WireError(NEGATIVE_LENGTH)
    stop = position + size
    if stop > end:
        raise WireError(UNEXPECTED_EOF)
    return position, stop


def int64(value: int) -> int:
    """Convert an unsigned 64-bit number to a signed one."""
    return value - (1 << 64) if value >= _INT64 else value


def int32(value: int) -> int:
    """Convert the lower 32 bits of a number to a signed number."""
    value &= _UINT32
    return value - (1 << 32) if value >= _INT32 else value


def skip_unknown_field(data: bytes, position: int, end: int, tag: int, type_name: str, names: dict[int, str]) -> int:
    """
    Skip a field with an unknown tag.

    @param data: The data.
    @param position: The position after the tag.
    @param end: The end of the message.
    @param tag: The tag.
    @param type_name: The name of the message type.
    @param names: The names of known fields by number.
    @return: The position after the field.
    @raise WireError: A known field has the wrong wire type, or the tag is invalid.
    """
    wire_type, number = tag & 7, int32(tag >> 3)
    if wire_type == END_GROUP:
        raise WireError(f"proto: {type_name}: wiretype end group for non-group")
    if number <= 0:
        raise WireError(f"proto: {type_name}: illegal tag {number} (wire type {tag})")
    if number in names:
        name = names[number]
        raise WireError(f"proto: wrong wireType = {wire_type} for field {name[:1].upper()}{name[1:]}")
    return skip(data, position, end, wire_type)


def skip(data: bytes, position: int, end: int, wire_type: int) -> int:
    """
    Skip a value.

    @param data: The data.
    @param position: The start of the value.
    @param end: The end of the message.
    @param wire_type: The wire type.
    @return: The position after the value.
    @raise WireError: The value is invalid.
    """
    groups = 0
    while True:
        if wire_type == VARINT:
            position = varint(data, position)[1]
        elif wire_type == FIXED64:
            position += 8
        elif wire_type == LENGTH:
            position = length(data, position, end)[1]
        elif wire_type == GROUP:
            groups += 1
        elif wire_type == END_GROUP:
            groups -= 1
        elif wire_type == FIXED32:
            position += 4
        else:
            raise WireError(f"proto: illegal wireType {wire_type}")
        if position > end:
            raise WireError(UNEXPECTED_EOF)
        if groups <= 0:
            return position
        tag, position = varint(data, position)
        wire_type = tag & 7
