"""
Whole floats in custom resources.

The reference keeps C{1.0} as a float until it encodes the object as C{1}; here decoding converts it immediately. The
floats are restored temporarily for checks that see the difference in the reference: the comparison that increments the
generation (C{DeepEqual}), and the rules of the schema, in which C{1} and C{1.0} differ in lists and maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject

#: A restored float: the list or map that contains it, its index or key, and the integer that it replaced.
Undo = tuple[Any, Any, int]


def restore_floats(obj: JSONObject, sent: JSONValue) -> list[Undo]:
    """
    Replace integers in C{obj} by the floats of C{sent} from which they were decoded, except in its metadata.

    @param sent: The body that C{obj} was decoded from.
    @return: The argument of L{remove_floats}.
    """
    undo: list[Undo] = []
    if isinstance(sent, dict):
        _restore(obj, {name: value for name, value in sent.items() if name != "metadata"}, undo)
    return undo


def _restore(holder: JSONValue, sent: JSONValue, undo: list[Undo]) -> None:
    if sent.__class__ is dict and holder.__class__ is dict:
        pairs = [(name, value) for name, value in sent.items() if name in holder]
    elif sent.__class__ is list and holder.__class__ is list and len(sent) == len(holder):
        pairs = list(enumerate(sent))
    else:
        return
    for key, value in pairs:
        if value.__class__ is not float:
            _restore(holder[key], value, undo)
        elif holder[key].__class__ is int and holder[key] == value:
            undo.append((holder, key, holder[key]))
            holder[key] = value


def remove_floats(undo: Sequence[Undo]) -> None:
    """Revert L{restore_floats} where the floats remain."""
    for holder, key, number in undo:
        if holder.__class__ is list or key in holder:
            current = holder[key]
            if current.__class__ is float and current == number:
                holder[key] = number
