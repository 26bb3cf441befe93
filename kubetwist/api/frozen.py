"""
Objects that can be read by many and changed by nobody.

They are dictionaries and lists still, so that whatever reads, compares or encodes objects takes them as they are.
"""

from __future__ import annotations

from typing import Any, NoReturn


def _refuse(self: Any, *arguments: Any, **named: Any) -> NoReturn:
    raise TypeError("this object is shared and can not be changed: change a copy, made by thawed()")


class FrozenDict(dict[str, Any]):
    """A dictionary that stays as it is."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return thawed(self)

    def __reduce__(self) -> Any:
        return dict, (thawed(self),)


class FrozenList(list[Any]):
    """A list that stays as it is."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return thawed(self)

    def __reduce__(self) -> Any:
        return list, (thawed(self),)


def frozen(value: Any) -> Any:
    """A copy that can not be changed, nor anything in it."""
    kind = type(value)
    if kind is dict:
        return FrozenDict({name: _frozen_inner(inner) for name, inner in value.items()})
    return FrozenList([frozen(inner) for inner in value]) if kind is list else value


def _frozen_inner(value: Any) -> Any:
    # Most values are strings and numbers: for those this saves a call.
    kind = type(value)
    return frozen(value) if kind is dict or kind is list else value


def thawed(value: Any) -> Any:
    """A copy that is the caller's to change."""
    if isinstance(value, dict):
        return {name: thawed(inner) for name, inner in value.items()}
    return [thawed(inner) for inner in value] if isinstance(value, list) else value
