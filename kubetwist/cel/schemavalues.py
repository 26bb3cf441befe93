"""
Conversion of JSON values to CEL values according to their schema.

Values that need no conversion are used directly. The rest is converted on access.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from kubetwist.api.go.durations import parse_nanoseconds
from kubetwist.cel.errors import CelError
from kubetwist.cel.standard.times import SECOND, parse_timestamp
from kubetwist.cel.values import LISTS, MISSING, Duration, ListValue, MapValue, Timestamp, Value, equal

from ..api.jsontypes import JSONObject, JSONValue

#: Converts raw JSON to a CEL value; C{None} stands for no conversion.
Convert = Callable[[JSONValue], Value]

_duration_part = re.compile(r"\s*([0-9]+)\s*([A-Za-zµ]+)").match
_UNITS: Final = {
    **dict.fromkeys(("ns", "nano", "nanosecond"), 1),
    **dict.fromkeys(("us", "µs", "micro", "microsecond"), 1_000),
    **dict.fromkeys(("ms", "milli", "millisecond"), 1_000_000),
    **dict.fromkeys(("s", "sec", "second"), SECOND),
    **dict.fromkeys(("m", "min", "minute"), 60 * SECOND),
    **dict.fromkeys(("h", "hr", "hour"), 3600 * SECOND),
    **dict.fromkeys(("d", "day"), 24 * 3600 * SECOND),
    **dict.fromkeys(("w", "wk", "week"), 7 * 24 * 3600 * SECOND),
}
_zoned = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$").search


def _require_string(raw: JSONValue) -> str:
    if type(raw) is not str:
        raise CelError(f"invalid data, expected string, got {_go_type(raw)}")
    return raw


def _go_type(raw: JSONValue) -> str:
    names = {bool: "bool", int: "int64", float: "float64", str: "string", type(None): "<nil>"}
    names |= {dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(raw), "interface {}")


def parse_duration(raw: JSONValue) -> Duration:
    """Parse a string of format C{duration}: Go's syntax or C{2 weeks}."""
    text = _require_string(raw)
    try:
        return Duration(parse_nanoseconds(text))
    except ValueError:
        pass
    total, offset, matched = 0, 0, False
    while (match := _duration_part(text, offset)) is not None:
        unit = match[2].lower()
        length = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if length is None:
            break
        total, offset, matched = total + int(match[1]) * length, match.end(), True
    if not matched:
        raise CelError(f'Invalid duration {text}: unable to parse "{text}" as duration')
    return Duration(total)


def parse_date(raw: JSONValue) -> Timestamp:
    """Parse a string of format C{date}."""
    text = _require_string(raw)
    try:
        return parse_timestamp(f"{text}T00:00:00Z")
    except CelError:
        raise CelError(f"Invalid date formatted string {text}: parsing time") from None


def parse_datetime(raw: JSONValue) -> Timestamp:
    """Parse a string of format C{date-time}."""
    text = _require_string(raw)
    moment = text.replace("t", "T").replace("z", "Z").replace(" ", "T", 1)
    zone = _zoned(moment)
    if zone is None:
        moment += "Z"
    elif len(zone[0]) == 5:
        moment = f"{moment[:-2]}:{moment[-2:]}"
    try:
        return parse_timestamp(moment)
    except CelError:
        raise CelError(f"Invalid date-time formatted string {text}: parsing time") from None


def parse_bytes(raw: JSONValue) -> bytes:
    """Decode a string of format C{byte}: base64."""
    text = _require_string(raw)
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise CelError(f"Invalid byte formatted string {text}: illegal base64 data") from None


def parse_number(raw: JSONValue) -> float:
    """Return a number as a double."""
    if type(raw) is float or type(raw) is int:
        return float(raw)
    raise CelError(f"invalid data, expected float, got {_go_type(raw)}")


class SchemaObject(MapValue):
    """An object with properties, which are found by their identifiers; a null property counts as absent."""

    __slots__ = ("_convert", "_names", "raw")

    def __init__(self, raw: JSONObject, names: Mapping[str, str], convert: Mapping[str, Convert | None]) -> None:
        """
        @param raw: The JSON object.
        @param names: Property names by identifier, if they differ.
        @param convert: The conversions of the properties in the schema.
        """
        self.raw = raw
        self._names = names
        self._convert = convert

    def __getitem__(self, key: str) -> Value:
        name = self._names.get(key, key)
        convert = self._convert[name]
        value = self.raw[name]
        if value is None:
            raise KeyError(key)
        return value if convert is None else convert(value)

    def __iter__(self) -> Iterator[str]:
        identifiers = {name: identifier for identifier, name in self._names.items()}
        for name, value in self.raw.items():
            if name in self._convert and value is not None:
                yield identifiers.get(name, name)

    def __len__(self) -> int:
        return len(self.raw)


class SchemaMap(MapValue):
    """A map whose values have one schema (C{additionalProperties})."""

    __slots__ = ("_convert", "raw")

    def __init__(self, raw: JSONObject, convert: Convert) -> None:
        self.raw = raw
        self._convert = convert

    def __getitem__(self, key: str) -> Value:
        return self._convert(self.raw[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


class SchemaList(ListValue):
    """A list whose elements have one schema."""

    __slots__ = ("_convert", "_converted")

    def __init__(self, raw: Sequence[JSONValue], convert: Convert | None) -> None:
        self._converted: list[Value] | None = None if convert is not None else list(raw)
        self._convert = (raw, convert)

    def _convert_all(self) -> list[Value]:
        """Return all elements, converted at the first call."""
        if self._converted is None:
            raw, convert = self._convert
            assert convert is not None
            self._converted = [convert(element) for element in raw]
        return self._converted

    def __getitem__(self, index: JSONValue) -> JSONValue:
        if self._converted is not None:
            return self._converted[index]
        raw, convert = self._convert
        if convert is None or isinstance(index, slice):
            return self._convert_all()[index]
        return convert(raw[index])

    def __iter__(self) -> Iterator[Value]:
        return iter(self._convert_all())

    def __len__(self) -> int:
        return len(self._convert[0])


class SchemaSet(SchemaList):
    """A list of type C{set}: equality ignores the order, and C{+} adds no element twice."""

    __slots__ = ()

    def equals(self, other: Sequence[Value]) -> bool:
        """Return whether another list has the same elements."""
        if len(self) != len(other):
            return False
        members = {_key(element) for element in self}
        return all(_key(element) in members for element in other)

    def concat(self, other: Sequence[Value]) -> Sequence[Value]:
        """Return the union, with new elements at the end."""
        elements = list(self)
        members = {_key(element) for element in elements}
        for element in other:
            key = _key(element)
            if key not in members:
                members.add(key)
                elements.append(element)
        return SchemaSet(elements, None)


class SchemaMapList(SchemaList):
    """A list of type C{map}: equality compares the elements with the same keys and ignores the order."""

    __slots__ = ("_keys",)

    def __init__(self, raw: Sequence[JSONValue], convert: Convert | None, keys: Sequence[str]) -> None:
        super().__init__(raw, convert)
        self._keys = keys

    def _key_of(self, element: Value) -> tuple[JSONValue, ...]:
        raw = element.raw if isinstance(element, (SchemaObject, SchemaMap)) else element
        if type(raw) is not dict:
            raise CelError("unexpected data format for element of array with x-kubernetes-list-type=map")
        return tuple(_key(raw.get(key)) for key in self._keys)

    def equals(self, other: Sequence[Value]) -> bool:
        """Return whether another list has equal elements with the same keys."""
        if len(self) != len(other):
            return False
        members = {self._key_of(element): element for element in self}
        for element in other:
            counterpart = members.get(self._key_of(element), MISSING)
            if counterpart is MISSING or not equal(counterpart, element):
                return False
        return True

    def concat(self, other: Sequence[Value]) -> Sequence[Value]:
        """Return the list after a merge of C{other}: elements with the same keys are replaced, new ones appended."""
        merged = {self._key_of(element): element for element in self}
        for element in other:
            merged[self._key_of(element)] = element
        return SchemaMapList(list(merged.values()), None, self._keys)


def _key(value: Value) -> JSONValue:
    """Return a hashable key of a value that distinguishes C{True} from 1."""
    if type(value) is bool:
        return (value,)
    if isinstance(value, (dict, *LISTS)):
        return repr(value)
    return value
