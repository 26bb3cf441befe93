"""
Path elements of field paths, in the form of FieldsV1 (C{fieldpath.PathElement} in structured-merge-diff).

A path element is a string: C{f:<name>} is a field of a struct or map, C{k:{"name":"a"}} an item of a list by its keys,
C{v:"a"} an item of a list of scalars by its value, C{i:3} an item by its index. Two canonical path elements
(L{canonical_path_element}) are equal strings if and only if they select the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Final

import orjson

from ...api.go.quote import quoted
from ...api.jsontypes import JSONObject, JSONValue

#: Key that marks a node of a set as a member.
SELF: Final = "."


class InvalidPathElement(ValueError):
    """A string is not a valid path element."""


# Go's encoder escapes these characters, which are unsafe in HTML.
#: Indices are 64-bit integers.
_MAX_INDEX: Final = 1 << 63
_MAX_INDEX_DIGITS: Final = 19
_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_escaped = re.compile("[<>&\u2028\u2029]").search


def scalar_text(value: JSONValue) -> str:
    """Return the JSON of a value as in path elements."""
    try:
        text = orjson.dumps(_go_numbers(value)).decode()
    except TypeError:
        # Integers beyond 64 bits.
        text = str(value)
    if _escaped(text):
        for character, escape in _ESCAPES.items():
            text = text.replace(character, escape)
    return text


def _go_numbers(value: JSONValue) -> JSONValue:
    """Return a value with whole floats as integers, as Go encodes them."""
    if value.__class__ is float and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if value.__class__ is dict and any(item.__class__ in _NUMBERS_WITHIN for item in value.values()):
        return {name: _go_numbers(item) for name, item in value.items()}
    return [_go_numbers(item) for item in value] if value.__class__ is list else value


_NUMBERS_WITHIN: Final = frozenset((float, dict, list))


def key_path_element(keys: JSONObject) -> str:
    """
    Return the path element of a list item by its keys.

    @param keys: The keys in the order of their names.
    """
    return "k:" + scalar_text(keys)


def value_path_element(value: JSONValue) -> str:
    """Return the path element of an item of a list of scalars."""
    return "v:" + scalar_text(value)


def canonical_path_element(path_element: str) -> str | None:
    """
    Return the canonical form of a path element.

    @return: L{None} for path elements of an unknown type, which are ignored.
    @raise InvalidPathElement: The value is invalid.
    """
    if len(path_element) < 2:
        raise InvalidPathElement("key must be 2 characters long:")
    if path_element[1] != ":":
        raise InvalidPathElement(f"missing colon: {path_element}")
    if path_element[0] == "f":
        return path_element
    # Long path elements are not cached, since clients choose them.
    return _cached(path_element) if len(path_element) < 512 else _canonical(path_element)


def _canonical(path_element: str) -> str | None:
    content = path_element[2:]
    if path_element[0] == "i":
        if not re.fullmatch(r"[+-]?\d+", content, re.ASCII):
            raise InvalidPathElement(f"strconv.Atoi: parsing {quoted(content)}: invalid syntax")
        # Python rejects numbers with thousands of digits, and Go those beyond 64 bits.
        if len(content.lstrip("+-0")) > _MAX_INDEX_DIGITS or not -_MAX_INDEX <= int(content) < _MAX_INDEX:
            raise InvalidPathElement(f"strconv.Atoi: parsing {quoted(content)}: value out of range")
        return f"i:{int(content)}"
    if path_element[0] not in "kv":
        return None
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidPathElement(str(error)) from None
    if path_element[0] == "v":
        return value_path_element(value)
    if not isinstance(value, dict):
        raise InvalidPathElement(f"expect {{ or n, but found {content[:1]}")
    return key_path_element({name: value[name] for name in sorted(value)})


_cached = lru_cache(maxsize=8192)(_canonical)


def format_path_element(path_element: str) -> str:
    """Format a path element for messages: C{.name}, C{[name="a"]}, C{[="a"]}, C{[3]}."""
    content = path_element[2:]
    if path_element[0] == "f":
        return f".{content}"
    if path_element[0] == "k":
        keys = orjson.loads(content)
        return f"[{','.join(f'{name}={_format_value(value)}' for name, value in keys.items())}]"
    if path_element[0] == "v":
        return f"[={_format_value(orjson.loads(content))}]"
    return f"[{content}]"


def format_path(path: Iterable[str]) -> str:
    """Format a path for messages."""
    return "".join(map(format_path_element, path))


def _format_value(value: JSONValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(_format_value, value))}]"
    if isinstance(value, dict):
        return f"{{{';'.join(f'{name}={_format_value(item)}' for name, item in value.items())}}}"
    return str(value)


def path_element_sort_key(path_element: str) -> tuple[JSONValue, ...]:
    """Return the sort key of a path element: fields come first, then items by keys, by value and by index."""
    kind = path_element[0]
    if kind == "f":
        return 0, path_element[2:]
    if kind == "k":
        return 1, tuple((name, *_value_order(value)) for name, value in orjson.loads(path_element[2:]).items())
    if kind == "v":
        return 2, _value_order(orjson.loads(path_element[2:]))
    return (3, int(path_element[2:])) if kind == "i" else (-1,)


def _value_order(value: JSONValue) -> tuple[JSONValue, ...]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, str):
        return 1, value
    if value is None:
        return (5,)
    if isinstance(value, (int, float)):
        return 0, Decimal(str(value))
    return (3, tuple(map(_value_order, value))) if isinstance(value, list) else (4, scalar_text(value))
