"""Decoding of protobuf messages into dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import unpack_from
from typing import Final, NamedTuple

from ...api.jsontypes import JSONObject, JSONValue
from .wire import (
    FIXED64,
    LENGTH,
    UNEXPECTED_EOF,
    VARINT,
    WireError,
    length,
    skip_unknown_field,
    varint,
)

#: Decodes one value from the data, the start, the end, and the nesting depth of messages.
ValueDecoder = Callable[[bytes, int, int, int], JSONValue]

#: Maximum nesting depth of messages.
MAX_MESSAGES: Final = 100
MAX_DEPTH_EXCEEDED: Final = "exceeded max depth"

# Encodings of fields; those up to PACKED are length-delimited.
TEXT, MESSAGE, TEXTS, MESSAGES, MAP, VALUE, VALUES, INLINE, PACKED, NUMBER, NUMBERS, DOUBLE = range(12)

_WIRE_TYPES: Final = {NUMBER: VARINT, NUMBERS: VARINT, DOUBLE: FIXED64}


class FieldDescriptor(NamedTuple):
    """
    A field of a message.

    @ivar number: The field number.
    @ivar encoding: A constant of this module.
    @ivar name: The name in JSON.
    @ivar codec: The L{MessageDecoder} of messages, the L{ValueDecoder} of values and maps, or a varint conversion.
    """

    number: int
    encoding: int
    name: str
    codec: JSONValue = None

    def by_tag(self) -> Iterable[tuple[int, tuple[int, str, JSONValue]]]:
        """Yield the tags of the field with its encoding, name and codec."""
        yield self.number << 3 | _WIRE_TYPES.get(self.encoding, LENGTH), (self.encoding, self.name, self.codec)
        if self.encoding == NUMBERS:
            yield self.number << 3 | LENGTH, (PACKED, self.name, self.codec)


def decode_string(data: bytes, start: int, end: int, depth: int = 0) -> str:
    """
    Decode a string. Invalid UTF-8 is replaced, as Go's JSON encoder does.

    @param data: The data.
    @param start: The start of the value.
    @param end: The end of the value.
    @param depth: Unused; see L{ValueDecoder}.
    """
    return data[start:end].decode("utf-8", "replace")


class MessageDecoder:
    """
    Decoder of one message type.

    The fields are created at first use, so that types can be recursive.

    @ivar read: Decodes the fields between two positions into a dictionary; the last argument is the nesting depth.
    """

    __slots__ = ("_descriptors", "name", "read")

    read: Callable[[bytes, int, int, JSONObject, int], None]

    def __init__(self, name: str, descriptors: Callable[[], Iterable[FieldDescriptor]]) -> None:
        self.name = name
        self._descriptors = descriptors
        self.read = self._compile_and_read

    def decode(self, data: bytes, start: int, end: int, depth: int) -> JSONObject:
        """
        Decode a message into a new dictionary; a L{ValueDecoder}.

        @param data: The data.
        @param start: The start of the message.
        @param end: The end of the message.
        @param depth: The nesting depth of the enclosing message.
        """
        fields: JSONObject = {}
        self.read(data, start, end, fields, depth + 1)
        return fields

    def _compile_and_read(self, data: bytes, position: int, end: int, out: JSONObject, depth: int) -> None:
        self.read = self._reader()
        self.read(data, position, end, out, depth)

    def _reader(self) -> Callable[[bytes, int, int, JSONObject, int], None]:
        type_name = self.name
        descriptors = list(self._descriptors())
        names = {descriptor.number: descriptor.name for descriptor in descriptors}
        find_field = {tag: action for descriptor in descriptors for tag, action in descriptor.by_tag()}.get

        def read(data: bytes, position: int, end: int, out: JSONObject, depth: int) -> None:
            if depth > MAX_MESSAGES:
                raise WireError(MAX_DEPTH_EXCEEDED)
            while position < end:
                tag = data[position]
                position += 1
                if tag > 127:
                    tag, position = varint(data, position - 1)
                action = find_field(tag)
                if action is None:
                    position = skip_unknown_field(data, position, end, tag, type_name, names)
                    continue
                encoding, name, codec = action
                if encoding <= PACKED:
                    value_end = data[position]
                    position += 1
                    if value_end > 127:
                        position, value_end = length(data, position - 1, end)
                    else:
                        value_end += position
                        if value_end > end:
                            raise WireError(UNEXPECTED_EOF)
                    if encoding == TEXT:
                        out[name] = data[position:value_end].decode("utf-8", "replace")
                    elif encoding == MESSAGE:
                        # A repeated message is merged into the earlier one.
                        message = out.get(name)
                        if message is None:
                            message = out[name] = {}
                        codec.read(data, position, value_end, message, depth + 1)
                    elif encoding == TEXTS:
                        item = data[position:value_end].decode("utf-8", "replace")
                        if name in out:
                            out[name].append(item)
                        else:
                            out[name] = [item]
                    elif encoding == MESSAGES:
                        message = {}
                        codec.read(data, position, value_end, message, depth + 1)
                        if name in out:
                            out[name].append(message)
                        else:
                            out[name] = [message]
                    elif encoding == MAP:
                        if name not in out:
                            out[name] = {}
                        _read_entry(data, position, value_end, out[name], codec, depth)
                    elif encoding == VALUE:
                        out[name] = codec(data, position, value_end, depth)
                    elif encoding == VALUES:
                        out.setdefault(name, []).append(codec(data, position, value_end, depth))
                    elif encoding == INLINE:
                        codec.read(data, position, value_end, out, depth + 1)
                    else:
                        _read_packed(data, position, value_end, out.setdefault(name, []), codec)
                    position = value_end
                elif encoding == NUMBER:
                    number = data[position]
                    position += 1
                    if number > 127:
                        number, position = varint(data, position - 1)
                    out[name] = codec(number)
                elif encoding == NUMBERS:
                    number, position = varint(data, position)
                    out.setdefault(name, []).append(codec(number))
                else:
                    position += 8
                    if position > end:
                        raise WireError(UNEXPECTED_EOF)
                    out[name] = _double(data, position - 8)
            if position != end:
                raise WireError(UNEXPECTED_EOF)

        return read


def _read_entry(
    data: bytes, position: int, end: int, entries: JSONObject, read_value: ValueDecoder, depth: int
) -> None:
    """Decode an entry of a map: field 1 is the key, field 2 the value, and both are optional."""
    key = ""
    value_start = value_stop = 0
    while position < end:
        tag = data[position]
        if tag == 0x0A:
            start, position = length(data, position + 1, end)
            key = data[start:position].decode("utf-8", "replace")
        elif tag == 0x12:
            value_start, position = length(data, position + 1, end)
            value_stop = position
        else:
            tag, position = varint(data, position)
            position = skip_unknown_field(data, position, end, tag, "entry", _ENTRY)
    if position != end:
        raise WireError(UNEXPECTED_EOF)
    entries[key] = read_value(data, value_start, value_stop, depth)


_ENTRY: Final = {1: "key", 2: "value"}


def _read_packed(
    data: bytes, position: int, end: int, numbers: list[JSONValue], convert: Callable[[int], JSONValue]
) -> None:
    while position < end:
        number, position = varint(data, position)
        numbers.append(convert(number))
    if position != end:
        raise WireError(UNEXPECTED_EOF)


def _double(data: bytes, position: int) -> float:
    number: float = unpack_from("<d", data, position)[0]
    if number - number != 0.0:
        text = "NaN" if number != number else "+Inf" if number > 0 else "-Inf"
        raise WireError(f"json: unsupported value: {text}")
    return number
