"""
Immutable objects that can be shared by many readers.

They are still dictionaries and lists, so that code that reads, compares or encodes objects accepts them.
"""

from __future__ import annotations

from typing import NoReturn

from .jsontypes import JSONObject, JSONValue


def _refuse(self: object, *arguments: object, **named: object) -> NoReturn:
    raise TypeError("object is immutable: modify a copy made with mutable_copy()")


class FrozenDict(dict[str, JSONValue]):
    """An immutable dictionary."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> JSONValue:
        return mutable_copy(self)

    def __reduce__(self) -> tuple[type, tuple[JSONObject]]:
        return dict, (mutable_copy(self),)


class FrozenList(list[JSONValue]):
    """An immutable list."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: object) -> JSONValue:
        return mutable_copy(self)

    def __reduce__(self) -> tuple[type, tuple[list[JSONValue]]]:
        return list, (mutable_copy(self),)


def frozen(value: JSONValue) -> JSONValue:
    """Return a deeply immutable copy."""
    kind = type(value)
    if kind is dict:
        return FrozenDict({name: _frozen_inner(inner) for name, inner in value.items()})
    return FrozenList([frozen(inner) for inner in value]) if kind is list else value


def _frozen_inner(value: JSONValue) -> JSONValue:
    # Avoids a call for strings and numbers, which are most values.
    kind = type(value)
    return frozen(value) if kind is dict or kind is list else value


def mutable_copy(value: JSONValue) -> JSONValue:
    """Return a deep copy that the caller may modify."""
    if isinstance(value, dict):
        return {name: mutable_copy(inner) for name, inner in value.items()}
    return [mutable_copy(inner) for inner in value] if isinstance(value, list) else value
