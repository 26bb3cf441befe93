"""
Whole floats that a client sent in a custom resource.

The reference keeps C{1.0} as a float until it encodes the object, when it becomes C{1}. Decoding does that at once
here. What sees the difference before the object is encoded gets the floats back for as long: whether there is a new
generation (C{DeepEqual}), and the rules of the schema, to which C{1} and C{1.0} differ in lists and maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.resource import JSONObject

#: A float that was put back: the list or map that holds it, its index or key, and the integer that it replaced.
Undo = tuple[Any, Any, int]


def put_floats(obj: JSONObject, sent: Any) -> list[Undo]:
    """
    Put the floats of C{sent} in place of the same integers in C{obj}, outside of its metadata.

    @param sent: What C{obj} was decoded from.
    @return: For L{take_floats}.
    """
    undo: list[Undo] = []
    if isinstance(sent, dict):
        _put(obj, {name: value for name, value in sent.items() if name != "metadata"}, undo)
    return undo


def _put(holder: Any, sent: Any, undo: list[Undo]) -> None:
    if sent.__class__ is dict and holder.__class__ is dict:
        pairs = [(name, value) for name, value in sent.items() if name in holder]
    elif sent.__class__ is list and holder.__class__ is list and len(sent) == len(holder):
        pairs = list(enumerate(sent))
    else:
        return
    for place, value in pairs:
        if value.__class__ is not float:
            _put(holder[place], value, undo)
        elif holder[place].__class__ is int and holder[place] == value:
            undo.append((holder, place, holder[place]))
            holder[place] = value


def take_floats(undo: Sequence[Undo]) -> None:
    """Make integers of the floats that L{put_floats} has put, where they still are."""
    for holder, place, number in undo:
        if holder.__class__ is list or place in holder:
            held = holder[place]
            if held.__class__ is float and held == number:
                holder[place] = number
