"""
Empty lists and maps in requests.

Decoding drops an empty list or map that Go omits from the encoded object. In the reference, the object contains it
until it is encoded: error messages show C{[]} or C{{}} instead of C{null}, and a few kinds consider an empty map a
change (C{reflect.DeepEqual} in C{ValidateConfigMapUpdate}). For these cases dropped values are restored temporarily.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ...api.errors import FieldError
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject

#: A restored container, for its removal: its parent, its name, and whether it was C{null} before.
Undo = tuple[JSONObject, str, bool]

_EMPTY: Final[tuple[Any, ...]] = ([], {})


def restore_empties(obj: JSONObject, sent: JSONValue) -> list[Undo]:
    """
    Restore the empty lists and maps of C{sent} in C{obj}, outside of its metadata.

    @param obj: The decoded object.
    @param sent: The body that C{obj} was decoded from.
    @return: The argument of L{remove_empties}.
    """
    undo: list[Undo] = []
    if isinstance(sent, dict):
        _restore(obj, {name: value for name, value in sent.items() if name != "metadata"}, undo)
    return undo


def _restore(obj: JSONObject, sent: JSONObject, undo: list[Undo]) -> None:
    for name, value in sent.items():
        decoded = obj.get(name)
        if value in _EMPTY:
            if decoded is None:
                undo.append((obj, name, name in obj))
                obj[name] = type(value)()
        elif isinstance(value, dict):
            if isinstance(decoded, dict):
                _restore(decoded, value, undo)
        elif isinstance(value, list) and isinstance(decoded, list) and len(decoded) == len(value):
            for item, sent_item in zip(decoded, value, strict=True):
                if isinstance(item, dict) and isinstance(sent_item, dict):
                    _restore(item, sent_item, undo)


def remove_empties(undo: Sequence[Undo]) -> None:
    """Revert L{restore_empties}."""
    for holder, name, null in undo:
        if null:
            holder[name] = None
        else:
            holder.pop(name, None)


def as_sent(
    errors: Sequence[FieldError], obj: JSONObject, sent: JSONValue, validate: Callable[[], Sequence[FieldError]]
) -> list[FieldError]:
    """
    Return the errors with the messages for an object that has the empty lists and maps of the request.

    Only messages change; whether a value is valid does not depend on empty values.

    @param errors: The errors that C{validate} found in the decoded object.
    @param obj: The decoded object.
    @param sent: The body that C{obj} was decoded from.
    @param validate: Validates C{obj}.
    """
    undo = restore_empties(obj, sent)
    if not undo:
        return list(errors)
    found: dict[tuple[str, str], list[FieldError]] = {}
    try:
        for field_error in validate():
            found.setdefault((field_error.field, field_error.reason), []).append(field_error)
    finally:
        # Also if a long validation is cancelled and repeated.
        remove_empties(undo)
    count: dict[tuple[str, str], int] = {}
    for field_error in errors:
        key = (field_error.field, field_error.reason)
        count[key] = count.get(key, 0) + 1
    same = {key for key, number in count.items() if len(found.get(key, ())) == number}
    return [
        found[key].pop(0) if (key := (field_error.field, field_error.reason)) in same else field_error
        for field_error in errors
    ]
