"""Parsing of query parameters."""

from __future__ import annotations


def parse_query(query: bytes) -> dict[str, list[str]]:
    """
    Parse a query string.

    As in the reference, empty values are values, and pairs with a semicolon or an invalid escape are ignored.
    """
    parameters: dict[str, list[str]] = {}
    if not query:
        return parameters
    for part in query.split(b"&"):
        if not part or b";" in part:
            continue
        name, _, value = part.partition(b"=")
        if b"%" in part or b"+" in part:
            try:
                name, value = _unescaped(name), _unescaped(value)
            except ValueError:
                continue
        parameters.setdefault(name.decode("utf-8", "replace"), []).append(value.decode("utf-8", "replace"))
    return parameters


def _unescaped(part: bytes) -> bytes:
    first, *escaped = part.replace(b"+", b" ").split(b"%")
    pieces = [first]
    for one in escaped:
        # int() alone takes signs, spaces and underscores as well.
        if len(one) < 2 or not one[:2].isalnum():
            raise ValueError("invalid escape")
        pieces.append(bytes((int(one[:2], 16),)))
        pieces.append(one[2:])
    return b"".join(pieces)
