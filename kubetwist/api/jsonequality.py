"""
Equality of decoded JSON values.

Python takes C{True} for C{1} and C{False} for C{0}, also within lists and objects; JSON and Go do not. Its C{==} is
enough where types say what values are. Where they do not, these functions ask it first, since it is fast, and look at
the types of what it takes for equal.
"""

from __future__ import annotations

from typing import Any

import orjson

__all__ = ["same_json", "same_value"]


def same_json(one: Any, other: Any) -> bool:
    """Return whether two values have the same JSON but for the order of keys: C{1}, C{1.0} and C{true} are three."""
    if one is other:
        return True
    return one == other and (one.__class__ is str or _same_text(one, other))


def same_value(one: Any, other: Any) -> bool:
    """
    Return whether two values are equal as structured-merge-diff has it: C{1} and C{1.0} are, C{1} and C{true} are not.

    Rule: C{value.Equals}, which compares numbers by what they are worth.
    """
    if one is other:
        return True
    return one == other and (one.__class__ is str or _same_text(one, other) or _same_booleans(one, other))


def _same_text(one: Any, other: Any) -> bool:
    # Keys mostly stand in the same order, and sorting them costs more than all else.
    if orjson.dumps(one) == orjson.dumps(other):
        return True
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def _same_booleans(one: Any, other: Any) -> bool:
    """Return whether two values that Python takes for equal have their booleans at the same places."""
    if one.__class__ is dict:
        return all(_same_booleans(value, other[name]) for name, value in one.items())
    if one.__class__ is list:
        return all(map(_same_booleans, one, other))
    return (one.__class__ is bool) is (other.__class__ is bool)
