"""
Decoding of YAML as the reference's parser does it (go-yaml v2, then a conversion to JSON).

libyaml parses. This module interprets its events, since go-yaml v2 implements neither YAML 1.1 nor 1.2: C{yes} is a
boolean, C{0o17} and C{017} are octal, C{1:30} is a string, times remain strings, scalar keys of any type become
strings, and only the first of several documents is read. Aliases are expanded into copies, within a budget.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeAlias

import yaml
from yaml import CSafeLoader
from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from .documents import (
    MAX_DEPTH,
    BodyError,
    Decoded,
)
from .go.quote import quoted
from .go.syntax import (
    GoMap,
    decimal_text,
    yaml_syntax,
)
from .jsontypes import JSONObject, JSONValue

#: Maximum number of values and keys of a document with expanded aliases.
MAX_NODES: Final = 400_000
#: Maximum number of characters that the expansion of aliases may add.
MAX_ALIASED_TEXT: Final = 8 << 20

_BOMB: Final = "document contains excessive aliasing"

_TAG: Final = "tag:yaml.org,2002:"
_MERGE_TAG: Final = _TAG + "merge"

_CONSTANTS: Final[dict[str, tuple[str, JSONValue]]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), ("bool", True)),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), ("bool", False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("null", None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("float", math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), ("float", math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), ("float", -math.inf)),
}
#: The first characters of constants and numbers; every other scalar is a string without further checks.
_hint = re.compile(r"$|[yYnNtTfFoO~.+\-0-9]").match
_integer = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))").fullmatch
_float = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?").fullmatch

_KNOWN_TAGS: Final = frozenset(_TAG + name for name in ("str", "bool", "int", "float", "null", "timestamp", "binary"))


def decode_yaml(data: bytes, max_nodes: int = MAX_NODES) -> Decoded:
    """
    Decode the first document of a YAML stream.

    @param max_nodes: Maximum number of values and keys with expanded aliases.
    @raise BodyError: The stream is not YAML, is nested too deep, or exceeds the limits with expanded aliases.
    """
    try:
        loader = CSafeLoader(data)
        try:
            return _Document(loader, max_nodes).read()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise BodyError(f"yaml: {_go_message(error)}", json=False) from None


#: Values of a document during parsing: JSON, or L{GoMap} in a key.
YAMLValue: TypeAlias = Any


class _Anchored:
    """A value that aliases can refer to, and the cost of a copy."""

    __slots__ = ("nodes", "open", "text", "value")

    def __init__(self) -> None:
        self.value: YAMLValue = None
        self.open = True
        self.nodes = 0
        self.text = 0


class _Frame:
    """A collection that is being read."""

    __slots__ = ("anchor", "has_key", "in_key", "is_map", "key", "nodes", "start", "text", "value")

    def __init__(
        self,
        value: YAMLValue,
        is_map: bool,
        in_key: bool,
        anchor: _Anchored | None,
        start: yaml.NodeEvent,
        nodes: int,
        text: int,
    ) -> None:
        self.value = value
        self.in_key = in_key
        self.start = start
        self.is_map = is_map
        self.anchor = anchor
        self.has_key = False
        self.key: YAMLValue = None
        self.nodes = nodes
        self.text = text


class _MergeKey:
    """The key C{<<}."""


_MERGE: Final = _MergeKey()


class _Document:
    """Builds the value of one document from events."""

    def __init__(self, loader: CSafeLoader, max_nodes: int) -> None:
        self._loader = loader
        self._max_nodes = max_nodes
        self._anchors: dict[str | None, _Anchored] = {}
        self._stack: list[_Frame] = []
        self._nodes = 0
        self._text = 0
        self._aliased_nodes = 0
        self._aliased_text = 0
        self._repeated: list[str] = []
        self._unsupported = ""
        self._result: YAMLValue = None

    def read(self) -> Decoded:
        """Process the events up to the end of the first document."""
        next_event = self._loader.get_event
        while True:
            event: Any = next_event()
            kind = type(event)
            if kind is ScalarEvent:
                self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._begin(event)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self._end()
            elif kind is AliasEvent:
                self._alias(event)
            elif kind is DocumentEndEvent or kind is StreamEndEvent:
                break
        if self._unsupported:
            raise BodyError(self._unsupported, json=False)
        duplicates = []
        if self._repeated:
            duplicates.append("\n  ".join(["yaml: unmarshal errors:", *self._repeated]))
        return Decoded(self._result, duplicates, by_map=True)

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > self._max_nodes:
            _fail("document has too many values" if not self._aliased_nodes else _BOMB)

    def _anchor(self, name: str | None) -> _Anchored | None:
        if name is None:
            return None
        self._anchors[name] = anchored = _Anchored()
        return anchored

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._count()
        text: str = event.value
        self._text += len(text)
        anchor = self._anchor(event.anchor) if event.anchor else None
        frame = self._stack[-1] if self._stack else None
        wants_key = frame is not None and frame.is_map and not frame.has_key
        tag = event.tag
        plain = event.implicit[0]
        if wants_key and text == "<<" and (plain or tag == _MERGE_TAG):
            value: YAMLValue = _MERGE
        elif tag is None and (not plain or not _hint(text)):
            value = text
        else:
            value = _resolve(tag, text)
            if not wants_key and type(value) is float and not (frame is not None and frame.in_key):
                value = _json_number(value)
        if anchor is not None:
            anchor.value, anchor.open, anchor.nodes, anchor.text = value, False, 1, len(text)
        self._add(value, event)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        self._count()
        if len(self._stack) >= MAX_DEPTH:
            _fail(f"exceeded max depth of {MAX_DEPTH}")
        is_map = type(event) is MappingStartEvent
        anchor = self._anchor(event.anchor) if event.anchor else None
        parent = self._stack[-1] if self._stack else None
        in_key = parent is not None and (parent.in_key or (parent.is_map and not parent.has_key))
        # A collection in a key is only printed in an error; its keys keep their types.
        value: YAMLValue = {} if is_map and not in_key else []
        self._stack.append(_Frame(value, is_map, in_key, anchor, event, self._nodes - 1, self._text))

    def _end(self) -> None:
        frame = self._stack.pop()
        if frame.is_map and frame.in_key:
            frame.value = GoMap(tuple(frame.value))
        if frame.anchor is not None:
            anchor = frame.anchor
            anchor.value, anchor.open = frame.value, False
            anchor.nodes, anchor.text = self._nodes - frame.nodes, self._text - frame.text
        self._add(frame.value, frame.start)

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor
        anchored = self._anchors.get(name)
        if anchored is None:
            _fail(f"unknown anchor '{name}' referenced")
        if anchored.open:
            _fail(f"anchor '{name}' value contains itself")
        self._nodes += anchored.nodes
        self._text += anchored.text
        self._aliased_nodes += anchored.nodes
        self._aliased_text += anchored.text
        # As in go-yaml, small documents may consist of aliases mostly, but large ones may not.
        mostly_aliases = self._aliased_nodes > 100 and self._nodes > 1000 and self._aliased_nodes > 0.99 * self._nodes
        if mostly_aliases or self._nodes > self._max_nodes or self._aliased_text > MAX_ALIASED_TEXT:
            _fail(_BOMB)
        if len(self._stack) + _depth(anchored.value) > MAX_DEPTH:
            _fail(f"exceeded max depth of {MAX_DEPTH}")
        self._add(_copy(anchored.value), event)

    def _add(self, value: JSONValue, event: yaml.NodeEvent) -> None:
        """Add a finished value to the innermost collection."""
        if not self._stack:
            self._result = None if value is _MERGE else value
            return
        frame = self._stack[-1]
        if not frame.is_map:
            frame.value.append(value)
        elif not frame.has_key:
            if isinstance(value, (GoMap, dict, list)):
                _fail(f"invalid map key: {yaml_syntax(value)}")
            frame.key, frame.has_key = value, True
        else:
            key, frame.key, frame.has_key = frame.key, None, False
            if frame.in_key:
                if key is not _MERGE:
                    frame.value.append((key, value))
                elif isinstance(value, GoMap):
                    frame.value.extend(value.items)
                return
            line = event.start_mark.line + 1  # type: ignore[union-attr] # libyaml's events have marks
            if key is _MERGE:
                self._merge(frame.value, value, line)
            elif key is None:
                self._unsupported = _unsupported(value)
            else:
                self._set(frame.value, _key(key), value, line)

    def _set(self, into: JSONObject, key: str, value: JSONValue, line: int) -> None:
        if key in into:
            self._repeated.append(f"line {line}: key {quoted(key)} already set in map")
        into[key] = value

    def _merge(self, into: JSONObject, value: JSONValue, line: int) -> None:
        # go-yaml merges in document order: later keys win, merged or not.
        sources = [value] if isinstance(value, dict) else list(reversed(value)) if isinstance(value, list) else [None]
        for source in sources:
            if not isinstance(source, dict):
                _fail("map merge requires map or sequence of maps as the value")
            for key, item in source.items():
                self._set(into, key, item, line)


def _fail(message: str) -> NoReturn:
    raise BodyError(f"yaml: {message}", json=False)


def _copy(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _depth(value: JSONValue) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _resolve(tag: str | None, text: str) -> JSONValue:
    """Return the value of a scalar; see go-yaml v2, C{resolve.go}."""
    if tag is not None and tag not in _KNOWN_TAGS:
        return text
    tag_name = tag.removeprefix(_TAG) if tag is not None else ""
    if tag_name == "binary":
        try:
            return base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            _fail("!!binary value contains invalid base64 data")
    if tag_name == "str":
        return text
    kind, value = _resolve_plain(text)
    if tag_name in ("", kind):
        return value
    if tag_name == "float" and kind == "int":
        return float(value)
    if tag_name == "timestamp" and kind == "str" and re.match("[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", text):
        return text
    _fail(f"cannot decode !!{kind} `{text}` as a !!{tag_name}")


def _resolve_plain(text: str) -> tuple[str, JSONValue]:
    known = _CONSTANTS.get(text)
    if known is not None:
        return known
    first = text[0]
    if first == ".":
        if _float(text):
            number = float(text)
            if not math.isinf(number):
                return "float", number
    elif first in "+-0123456789":
        plain = text.replace("_", "")
        number_or_none = _parse_integer(plain)
        if number_or_none is not None:
            return "int", number_or_none
        if _float(plain):
            number = float(plain)
            if not math.isinf(number):
                return "float", number
    return "str", text


def _parse_integer(text: str) -> int | None:
    if len(text) > 66:
        return None
    match = _integer(text)
    if match is None:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if hexadecimal:
        number = int(hexadecimal, 16)
    elif binary:
        number = int(binary, 2)
    elif octal:
        number = int(octal, 8)
    else:
        number = int(decimal)
    if sign == "-":
        number = -number
    # Without a sign Go tries unsigned numbers too.
    return number if -(1 << 63) <= number < (1 << 63 if sign else 1 << 64) else None


def _json_number(number: float) -> int | float:
    """Return a float as Go's JSON encodes it: whole numbers without a point."""
    if number.is_integer() and abs(number) < 1 << 63:
        return int(number)
    if math.isnan(number) or math.isinf(number):
        shown = "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
        raise BodyError(f"json: unsupported value: {shown}", json=False)
    return number


def _key(key: YAMLValue) -> str:
    """Return a key as the conversion to JSON writes it."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    return _float_key(key)


def _unsupported(value: YAMLValue) -> str:
    """Return the error for a null key (C{sigs.k8s.io/yaml}, C{convertToJSONableObject})."""
    shown = "<nil>" if value is None else yaml_syntax(value)
    return f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}"


def _float_key(number: float) -> str:
    """Format like Go's C{strconv.FormatFloat(number, 'g', -1, 32)}, with YAML's names of infinities and NaN."""
    if math.isnan(number):
        return ".nan"
    try:
        single = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        single = math.copysign(math.inf, number)
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    digits = next(text for text in (f"{single:.{places}e}" for places in range(17)) if _single(float(text)) == single)
    return decimal_text(Decimal(digits))


def _single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


def _go_message(error: yaml.YAMLError) -> str:
    """Return the error in go-yaml's words: the scanner counts lines from 1, the parser from 0; line 0 is omitted."""
    if isinstance(error, ReaderError):
        return str(error.reason)
    if not isinstance(error, MarkedYAMLError):
        return str(error)
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: {error.problem}" if line else str(error.problem)
