"""
Equality of decoded JSON values.

Python's C{==} treats C{True} as C{1} and C{False} as C{0}, also within lists and objects; JSON and Go distinguish them.
C{==} is sufficient if a schema defines the types. For untyped values these functions use C{==} first, since it is fast,
and compare the types of values that it considers equal.
"""

from __future__ import annotations

import orjson

from .jsontypes import JSONValue

__all__ = ["same_json", "same_value"]


def same_json(one: JSONValue, other: JSONValue) -> bool:
    """
    Return whether two values have the same JSON except for the order of keys: C{1}, C{1.0} and C{true} are distinct.
    """
    if one is other:
        return True
    return one == other and (one.__class__ is str or _same_text(one, other))


def same_value(one: JSONValue, other: JSONValue) -> bool:
    """
    Return whether two values are equal in structured-merge-diff: C{1} equals C{1.0}, but not C{true}.

    Rule: C{value.Equals}, which compares numbers by value.
    """
    if one is other:
        return True
    return one == other and (one.__class__ is str or _same_text(one, other) or _same_booleans(one, other))


def _same_text(one: JSONValue, other: JSONValue) -> bool:
    # Keys are mostly in the same order already, and sorting is the most expensive step.
    if orjson.dumps(one) == orjson.dumps(other):
        return True
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def _same_booleans(one: JSONValue, other: JSONValue) -> bool:
    """Return whether two values that are equal in Python have booleans at the same places."""
    if one.__class__ is dict:
        return all(_same_booleans(value, other[name]) for name, value in one.items())
    if one.__class__ is list:
        return all(map(_same_booleans, one, other))
    return (one.__class__ is bool) is (other.__class__ is bool)
