"""
Empty lists and maps that a client sent.

Decoding drops an empty list or map where Go leaves it out, as the encoded object has neither. Until it is encoded,
though, the reference's object has it: error messages show C{[]} or C{{}}, not C{null}, and a few kinds take an empty
map for a change (C{reflect.DeepEqual} in C{ValidateConfigMapUpdate}). What was dropped is put back for that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..api.errors import Cause
from ..api.resource import JSONObject

#: How a container that was put back is taken away again: its holder, its name, and whether it was shown as C{null}.
Undo = tuple[JSONObject, str, bool]

_EMPTY: Final[tuple[Any, ...]] = ([], {})


def put_back(obj: JSONObject, sent: Any) -> list[Undo]:
    """
    Put the empty lists and maps of C{sent} back in C{obj}, outside of its metadata.

    @param sent: What C{obj} was decoded from.
    @return: For L{take_away}.
    """
    undo: list[Undo] = []
    if isinstance(sent, dict):
        _put_back(obj, {name: value for name, value in sent.items() if name != "metadata"}, undo)
    return undo


def _put_back(obj: JSONObject, sent: JSONObject, undo: list[Undo]) -> None:
    for name, value in sent.items():
        held = obj.get(name)
        if value in _EMPTY:
            if held is None:
                undo.append((obj, name, name in obj))
                obj[name] = type(value)()
        elif isinstance(value, dict):
            if isinstance(held, dict):
                _put_back(held, value, undo)
        elif isinstance(value, list) and isinstance(held, list) and len(held) == len(value):
            for item, part in zip(held, value, strict=True):
                if isinstance(item, dict) and isinstance(part, dict):
                    _put_back(item, part, undo)


def take_away(undo: Sequence[Undo]) -> None:
    """Make an object what it was before L{put_back}."""
    for holder, name, null in undo:
        if null:
            holder[name] = None
        else:
            holder.pop(name, None)


def as_sent(
    causes: Sequence[Cause], obj: JSONObject, sent: Any, validate: Callable[[], Sequence[Cause]]
) -> list[Cause]:
    """
    The causes as they are when C{obj} has the empty lists and maps that were sent.

    Only messages change: whether something is wrong does not depend on them.

    @param validate: Has found C{causes} in C{obj} as it is.
    """
    undo = put_back(obj, sent)
    if not undo:
        return list(causes)
    found: dict[tuple[str, str], list[Cause]] = {}
    try:
        for cause in validate():
            found.setdefault((cause.field, cause.reason), []).append(cause)
    finally:
        # Also where rules take long, and are about to be run again.
        take_away(undo)
    count: dict[tuple[str, str], int] = {}
    for cause in causes:
        key = (cause.field, cause.reason)
        count[key] = count.get(key, 0) + 1
    same = {key for key, number in count.items() if len(found.get(key, ())) == number}
    return [found[key].pop(0) if (key := (cause.field, cause.reason)) in same else cause for cause in causes]
