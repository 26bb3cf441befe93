"""
Incremental decoding of large JSON documents from other servers.

Decoding many megabytes at once blocks all other threads, and creates a tree that takes long to deallocate. Here a text
is split into the members of its objects in short steps, and each member is decoded separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import orjson

from .jsontypes import JSONValue

#: The maximum nesting depth of containers.
MAX_DEPTH: Final = 100
#: Maximum size of a value that is decoded at once, in bytes.
MAX_PIECE_SIZE: Final = 128 * 1024

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
#: Starts and ends of containers; strings are matched separately because they may contain brackets.
_MARKS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_SCALAR: Final = re.compile(rb"[-+.0-9A-Za-z]+")


class BadJSON(ValueError):
    """A document that is not JSON, or is nested too deep."""


def members(text: bytes, start: int = 0) -> Iterator[tuple[str, int, int]]:
    """
    Yield the members of an object: name, start and end of the value, which is not parsed.

    @param start: The offset of the object, or of the whitespace before it.
    @raise BadJSON: The text is not an object.
    """
    at = _after_space(text, start)
    if text[at : at + 1] != b"{":
        raise BadJSON("expected an object")
    at = _after_space(text, at + 1)
    if text[at : at + 1] == b"}":
        return
    while True:
        key = _STRING.match(text, at)
        if key is None:
            raise BadJSON("expected a member name")
        at = _after_space(text, key.end())
        if text[at : at + 1] != b":":
            raise BadJSON("expected a colon after the member name")
        begin = _after_space(text, at + 1)
        end = end_of_value(text, begin)
        yield decoded(key[0]), begin, end
        at = _after_space(text, end)
        mark = text[at : at + 1]
        if mark == b"}":
            return
        if mark != b",":
            raise BadJSON("unterminated object")
        at = _after_space(text, at + 1)


def end_of_value(text: bytes, start: int) -> int:
    """
    Return the end of the value that begins at C{start}; only brackets within it are examined.

    @raise BadJSON: The text is not a value.
    """
    first = text[start : start + 1]
    if first not in (b"{", b"["):
        match = (_STRING if first == b'"' else _SCALAR).match(text, start)
        if match is None:
            raise BadJSON("expected a value")
        return match.end()
    depth = 0
    for mark in _MARKS.finditer(text, start):
        byte = text[mark.start()]
        if byte in b"{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise BadJSON("exceeded maximum depth")
        elif byte in b"}]":
            depth -= 1
            if not depth:
                return mark.end()
    raise BadJSON("unterminated value")


def decoded(text: bytes) -> JSONValue:
    """
    Return a small text, decoded.

    @raise BadJSON: The text is not JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadJSON(str(error)) from None


def check_object(text: bytes) -> None:
    """
    Check the syntax of an object of any size, in short steps.

    @raise BadJSON: The value is invalid, is followed by more text, or is nested too deep.
    """
    start = _after_space(text, 0)
    end = end_of_value(text, start)
    if text[start : start + 1] != b"{" or _after_space(text, end) != len(text):
        raise BadJSON("expected an object")
    _check(text, start, end)


def _check(text: bytes, start: int, end: int) -> None:
    if end - start > MAX_PIECE_SIZE and text[start : start + 1] == b"{":
        for _, begin, stop in members(text, start):
            _check(text, begin, stop)
    else:
        decoded(text[start:end])


def _after_space(text: bytes, start: int) -> int:
    match = _SPACE.match(text, start)
    assert match is not None, "matches nothing as well"
    return match.end()
