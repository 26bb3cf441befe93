"""
Lists as field ownership sees them: whole, as sets of scalars, or as maps of items with keys.

The latter two share L{Associative}: the step to an item does not depend on its position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from ...api.go.text import go_text
from ...api.jsonequality import same_value
from ...api.jsontypes import JSONObject, JSONValue
from .fieldpath import (
    SELF,
    key_step,
    shown_step,
    value_step,
)
from .fieldset import (
    LEAF,
    FieldSet,
    is_member,
)
from .types import (
    Changes,
    MergeType,
    Problem,
    TypedError,
    emptied,
)

#: The value of a key that an item leaves out and that has no default.
ABSENT = object()
#: The maximum length of keys kept in memory: clients choose them.
MOST_CACHED = 256


class AtomicList(MergeType):
    """
    A list that is owned whole.

    @ivar item: The type of its items.
    """

    __slots__ = ("item",)

    def __init__(self, item: MergeType | None = None) -> None:
        self.leaf = True
        self.item = item

    def parts(self) -> Iterable[MergeType]:
        """See L{MergeType.parts}."""
        return () if self.item is None else (self.item,)

    def untyped(self) -> bool:
        """See L{MergeType.untyped}."""
        return self.item is None

    def fits(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        if value.__class__ is not list:
            return value is None
        item = self.item
        return item is None or all(map(item.fits, value))

    def check(self, value: JSONValue, duplicates: bool) -> list[Problem]:
        """See L{MergeType.check}."""
        if value is None:
            return []
        if value.__class__ is not list:
            return [("", f"expected list, got &{{{go_text(value)}}}")]
        item = self.item
        if item is None:
            return []
        problems = []
        for index, one in enumerate(value):
            problems += [(f"[{index}]{path}", message) for path, message in item.check(one, duplicates)]
        return problems

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconciled}."""
        return LEAF


class Associative(MergeType):
    """A list whose items are identified by their keys or values."""

    __slots__ = ()

    def step(self, item: JSONValue) -> str:
        """
        Return the step to an item.

        @raise TypedError: It has none.
        """
        raise NotImplementedError

    def item_added(self, item: JSONValue) -> FieldSet:
        """Return the fields under the step to an added item."""
        return LEAF

    def item_changes(self, old: JSONValue, new: JSONValue) -> Changes:
        """Return the changes between two items with the same step."""
        return LEAF, None

    def item_owned(self, item: JSONValue) -> FieldSet:
        """Return the fields below an item that its applier owns."""
        return LEAF

    def item_merged(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """Return an item merged with an applied one."""
        return applied

    def item_without(self, item: JSONValue, fields: FieldSet) -> JSONValue:
        """Return an item without some fields."""
        return item

    def item_problems(self, item: JSONValue, duplicates: bool) -> list[Problem]:
        """Validate an item and return the errors."""
        return []

    def _items(self, value: JSONValue) -> dict[str, list[JSONValue]]:
        """Return the items by their steps."""
        if value.__class__ is not list:
            raise TypedError(f"expected list, got &{{{go_text(value)}}}")
        result: dict[str, list[JSONValue]] = {}
        step = self.step
        for index, item in enumerate(value):
            try:
                where = step(item)
            except TypedError as error:
                raise TypedError(f"element {index}: {error}") from None
            if where in result:
                result[where].append(item)
            else:
                result[where] = [item]
        return result

    def _all(self, value: JSONValue) -> FieldSet:
        return {
            step: LEAF if len(items) > 1 else self.item_added(items[0]) for step, items in self._items(value).items()
        }

    def added(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added}."""
        return {SELF: LEAF, **self._all(value)} if value else LEAF

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{MergeType.compare}."""
        if not old:
            return (self._all(new), None) if new else (LEAF, None)
        if not new:
            return None, self._all(old)
        before, after, mixes = self._items(old), self._items(new), self.mixes()
        changed: FieldSet = {}
        removed: FieldSet = {}
        for step, items in after.items():
            had = before.get(step)
            if had is None:
                changed[step] = LEAF if len(items) > 1 else self.item_added(items[0])
            elif had != items or (mixes and not same_value(had, items)):
                here, gone = self._item_changes(had, items)
                if here is not None:
                    changed[step] = here
                if gone is not None:
                    removed[step] = gone
        for step, items in before.items():
            if step not in after:
                removed[step] = LEAF if len(items) > 1 else self.item_added(items[0])
        return changed or None, removed or None

    def _item_changes(self, old: list[JSONValue], new: list[JSONValue]) -> Changes:
        """Return the changes of repeated items, which are owned as a whole, all of a step together."""
        if len(old) == 1:
            return self.item_changes(old[0], new[0]) if len(new) == 1 else (LEAF, self.item_added(old[0]))
        return (self.item_added(new[0]), LEAF) if len(new) == 1 else (LEAF, None)

    def owned(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.owned}."""
        result = {}
        for step, items in self._items(value).items():
            found = self.item_owned(items[0]) if len(items) == 1 else LEAF
            result[step] = {SELF: LEAF, **found} if found else LEAF
        return result

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """
        See L{MergeType.merge}.

        Items that only one side has stay where they stand among the shared ones, whose order is that of C{applied}.
        """
        if not live:
            return applied
        if not applied:
            return live
        theirs = self._items(applied)
        mine = self._items(live)
        steps = list(mine) if len(mine) == len(live) else [self.step(item) for item in live]
        wanted = list(theirs)
        shared = iter([step for step in wanted if step in mine])
        following = next(shared, None)
        result: list[JSONValue] = []
        merged: set[str] = set()
        left = right = 0
        while left < len(steps) or right < len(wanted):
            if left < len(steps):
                step = steps[left]
                if right < len(wanted):
                    if step == wanted[right]:
                        merged.add(step)
                        result.append(self._merged(mine[step], theirs[step]))
                        left += 1
                        right += 1
                        following = next(shared, None)
                        continue
                    if step in theirs and following is not None and following != step:
                        left += 1
                        continue
                if step not in theirs:
                    result.append(live[left])
                    left += 1
                    continue
                if step in merged:
                    left += 1
            if right < len(wanted):
                step = wanted[right]
                merged.add(step)
                result.append(self._merged(mine[step], theirs[step]) if step in mine else theirs[step][0])
                right += 1
                if following == step:
                    following = next(shared, None)
        return result

    def _merged(self, live: list[JSONValue], applied: list[JSONValue]) -> JSONValue:
        """Replace items that were repeated."""
        return self.item_merged(live[0], applied[0]) if len(live) == 1 else applied[0]

    def without(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.without}."""
        if not value or value.__class__ is not list:
            return None
        result = []
        for item in value:
            found = fields.get(self.step(item))
            if found is None:
                result.append(item)
            elif not is_member(found):
                result.append(emptied(item, self.item_without(item, found)))
        return result or None

    def check(self, value: JSONValue, duplicates: bool) -> list[Problem]:
        """See L{MergeType.check}."""
        if value is None:
            return []
        if value.__class__ is not list:
            return [("", f"expected list, got &{{{go_text(value)}}}")]
        problems: list[Problem] = []
        seen = set()
        for index, item in enumerate(value):
            try:
                step = self.step(item)
            except TypedError as error:
                problems.append(("", f"element {index}: {error}"))
                break
            if step in seen and not duplicates:
                problems.append(("", f"duplicate entries for key {shown_step(step)}"))
            seen.add(step)
            found = self.item_problems(item, duplicates)
            if found:
                problems += [(f"{shown_step(step)}{path}", message) for path, message in found]
        return problems


#: Classes of values that cannot be items of a set.
_NO_MEMBERS = frozenset((dict, list, type(None)))


class SetList(Associative):
    """
    A list of scalars that are owned one by one.

    @ivar item: Their type.
    """

    __slots__ = ("item",)

    def __init__(self, item: MergeType) -> None:
        self.leaf = False
        self.item = item

    def parts(self) -> Iterable[MergeType]:
        """See L{MergeType.parts}."""
        return (self.item,)

    def step(self, item: JSONValue) -> str:
        """See L{Associative.step}."""
        if item.__class__ is dict:
            raise TypedError("associative list without keys has an element that's a map type")
        if item.__class__ is list:
            raise TypedError("not supported: associative list with lists as elements")
        if item is None:
            raise TypedError("associative list without keys has an element that's an explicit null")
        return value_step(item)

    def fits(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        if value.__class__ is not list:
            return value is None
        classes = {item.__class__ for item in value}
        return classes.isdisjoint(_NO_MEMBERS) and all(map(self.item.fits, value))

    def item_problems(self, item: JSONValue, duplicates: bool) -> list[Problem]:
        """See L{Associative.item_problems}."""
        return self.item.check(item, duplicates)


class MapList(Associative):
    """
    A list of structs that are known by the values of some of their fields.

    @ivar item: The type of the structs.
    @ivar keys: The names of those fields.
    """

    __slots__ = ("_defaults", "item", "keys")

    def __init__(self, item: MergeType, keys: Sequence[str]) -> None:
        self.leaf = False
        self.item = item
        self.keys = tuple(keys)
        self.define({})

    def parts(self) -> Iterable[MergeType]:
        """See L{MergeType.parts}."""
        return (self.item,)

    def define(self, defaults: JSONObject) -> None:
        """Return the default values of keys that an item leaves out."""
        self._defaults = tuple((name, defaults.get(name, ABSENT)) for name in sorted(self.keys))

    def step(self, item: JSONValue) -> str:
        """See L{Associative.step}."""
        if item.__class__ is not dict:
            why = "a null element" if item is None else "non-map elements"
            raise TypedError(f"associative list with keys may not have {why}")
        parts: list[JSONValue] = []
        make: Callable[..., str] = _cached_step
        for name, default in self._defaults:
            value = item.get(name, default)
            if value is not ABSENT:
                parts += (name, value)
                if value.__class__ is str and len(value) > MOST_CACHED:
                    make = _step
        if not parts:
            names = " ".join(f'"{name}"' for name in self.keys)
            raise TypedError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        try:
            return make(*parts)
        except TypeError:
            # Keys that are lists or maps are not cached either.
            return _step(*parts)

    def fits(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        if value.__class__ is not list:
            return value is None
        keys = () if any(default is not ABSENT for _, default in self._defaults) else self.keys
        for item in value:
            if item.__class__ is not dict or (keys and not any(key in item for key in keys)):
                return False
        return all(map(self.item.fits, value))

    def item_added(self, item: JSONValue) -> FieldSet:
        """See L{Associative.item_added}."""
        return self.item.added(item)

    def item_changes(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{Associative.item_changes}."""
        return self.item.compare(old, new)

    def item_owned(self, item: JSONValue) -> FieldSet:
        """See L{Associative.item_owned}."""
        return self.item.owned(item)

    def item_merged(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """See L{Associative.item_merged}."""
        return self.item.merge(live, applied)

    def item_without(self, item: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{Associative.item_without}."""
        return self.item.without(item, fields)

    def item_problems(self, item: JSONValue, duplicates: bool) -> list[Problem]:
        """See L{Associative.item_problems}."""
        return self.item.check(item, duplicates)

    def named(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.named}."""
        return {step: self.item.named(part) if part and step[0] == "k" else part for step, part in fields.items()}

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconciled}."""
        result = fields
        for step, part in fields.items():
            if part and (now := self.item.reconciled(part)) is not part:
                if result is fields:
                    result = dict(fields)
                result[step] = now
        return result


def _step(*parts: JSONValue) -> str:
    return key_step(dict(zip(parts[::2], parts[1::2], strict=True)))


# The same items come again and again, also within one write: the size is for lists as long as they get.
# Values of different types that Python treats as equal are distinguished.
_cached_step = lru_cache(maxsize=1 << 15, typed=True)(_step)
