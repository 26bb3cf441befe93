"""Messages of protobuf, read field by field into dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import unpack_from
from typing import Final, NamedTuple

from ...api.jsontypes import JSONObject, JSONValue
from .wire import (
    CUT_SHORT,
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    length,
    other_field,
    varint,
)

#: Reads one value: takes the data, where the value begins and ends in it, and how deep messages nest there.
ValueReader = Callable[[bytes, int, int, int], JSONValue]

#: Messages may nest no deeper; those of clients nest up to a dozen.
MAX_MESSAGES: Final = 100
TOO_DEEP: Final = "exceeded max depth"

# The actions on a field; those up to PACKED begin with their length.
TEXT, MESSAGE, TEXTS, MESSAGES, MAP, VALUE, VALUES, INLINE, PACKED, NUMBER, NUMBERS, DOUBLE = range(12)

_WIRE_TYPES: Final = {NUMBER: VARINT, NUMBERS: VARINT, DOUBLE: FIXED64}


class Step(NamedTuple):
    """
    A field.

    @ivar how: One of the constants of this module.
    @ivar name: Its name in JSON.
    @ivar extra: The L{Message} of messages, the L{ValueReader} of values and maps, what makes a number of a varint.
    """

    number: int
    how: int
    name: str
    extra: JSONValue = None

    def by_tag(self) -> Iterable[tuple[int, tuple[int, str, JSONValue]]]:
        """Return the actions by the tag of the field."""
        yield self.number << 3 | _WIRE_TYPES.get(self.how, LENGTH), (self.how, self.name, self.extra)
        if self.how == NUMBERS:
            yield self.number << 3 | LENGTH, (PACKED, self.name, self.extra)


def text(data: bytes, start: int, end: int, depth: int = 0) -> str:
    """Return a string; invalid UTF-8 in it is replaced, as when the reference writes it as JSON."""
    return data[start:end].decode("utf-8", "replace")


class Message:
    """
    A type.

    Its fields come from C{steps} at first use, so that types may contain themselves.

    @ivar read: Reads the fields between two positions into a dictionary; the last argument is how deep messages nest.
    """

    __slots__ = ("_steps", "name", "read")

    read: Callable[[bytes, int, int, JSONObject, int], None]

    def __init__(self, name: str, steps: Callable[[], Iterable[Step]]) -> None:
        self.name = name
        self._steps = steps
        self.read = self._compile_and_read

    def value(self, data: bytes, start: int, end: int, depth: int) -> JSONObject:
        """Return a message on its own, a L{ValueReader}."""
        found: JSONObject = {}
        self.read(data, start, end, found, depth + 1)
        return found

    def _compile_and_read(self, data: bytes, position: int, end: int, out: JSONObject, depth: int) -> None:
        self.read = self._reader()
        self.read(data, position, end, out, depth)

    def _reader(self) -> Callable[[bytes, int, int, JSONObject, int], None]:
        type_name = self.name
        steps = list(self._steps())
        names = {step.number: step.name for step in steps}
        look_up = {tag: action for step in steps for tag, action in step.by_tag()}.get

        def read(data: bytes, position: int, end: int, out: JSONObject, depth: int) -> None:
            if depth > MAX_MESSAGES:
                raise WireError(TOO_DEEP)
            while position < end:
                tag = data[position]
                position += 1
                if tag > 127:
                    tag, position = varint(data, position - 1)
                action = look_up(tag)
                if action is None:
                    position = other_field(data, position, end, tag, type_name, names)
                    continue
                how, name, extra = action
                if how <= PACKED:
                    stop = data[position]
                    position += 1
                    if stop > 127:
                        position, stop = length(data, position - 1, end)
                    else:
                        stop += position
                        if stop > end:
                            raise WireError(CUT_SHORT)
                    if how == TEXT:
                        out[name] = data[position:stop].decode("utf-8", "replace")
                    elif how == MESSAGE:
                        # A repeated message is merged into the earlier one.
                        inner = out.get(name)
                        if inner is None:
                            inner = out[name] = {}
                        extra.read(data, position, stop, inner, depth + 1)
                    elif how == TEXTS:
                        item = data[position:stop].decode("utf-8", "replace")
                        if name in out:
                            out[name].append(item)
                        else:
                            out[name] = [item]
                    elif how == MESSAGES:
                        inner = {}
                        extra.read(data, position, stop, inner, depth + 1)
                        if name in out:
                            out[name].append(inner)
                        else:
                            out[name] = [inner]
                    elif how == MAP:
                        if name not in out:
                            out[name] = {}
                        _read_entry(data, position, stop, out[name], extra, depth)
                    elif how == VALUE:
                        out[name] = extra(data, position, stop, depth)
                    elif how == VALUES:
                        out.setdefault(name, []).append(extra(data, position, stop, depth))
                    elif how == INLINE:
                        extra.read(data, position, stop, out, depth + 1)
                    else:
                        _read_packed(data, position, stop, out.setdefault(name, []), extra)
                    position = stop
                elif how == NUMBER:
                    number = data[position]
                    position += 1
                    if number > 127:
                        number, position = varint(data, position - 1)
                    out[name] = extra(number)
                elif how == NUMBERS:
                    number, position = varint(data, position)
                    out.setdefault(name, []).append(extra(number))
                else:
                    position += 8
                    if position > end:
                        raise WireError(CUT_SHORT)
                    out[name] = _double(data, position - 8)
            if position != end:
                raise WireError(CUT_SHORT)

        return read


def _read_entry(data: bytes, position: int, end: int, entries: JSONObject, read_value: ValueReader, depth: int) -> None:
    """Read one entry of a map: the key is field 1, the value 2, and both may be missing."""
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
            position = other_field(data, position, end, tag, "entry", _ENTRY)
    if position != end:
        raise WireError(CUT_SHORT)
    entries[key] = read_value(data, value_start, value_stop, depth)


_ENTRY: Final = {1: "key", 2: "value"}


def _read_packed(
    data: bytes, position: int, end: int, numbers: list[JSONValue], convert: Callable[[int], JSONValue]
) -> None:
    while position < end:
        number, position = varint(data, position)
        numbers.append(convert(number))
    if position != end:
        raise WireError(CUT_SHORT)


def _double(data: bytes, position: int) -> float:
    number: float = unpack_from("<d", data, position)[0]
    if number - number != 0.0:
        shown = "NaN" if number != number else "+Inf" if number > 0 else "-Inf"
        raise WireError(f"json: unsupported value: {shown}")
    return number
